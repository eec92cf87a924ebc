package review

import "github.com/pysandboxes/pysandboxes/core/learn"

func (l *linter) net() {
	var allow, deny, broadAllow, broadDeny []*Grant
	allowAt, denyAt := map[string][]*Grant{}, map[string][]*Grant{}
	for _, g := range l.keys("net") {
		network := g.net.Network()
		broad := g.net.Any() || g.net.Set() != "" || g.net.Domain() != "" || g.net.Prefix().IsValid() && !g.net.Prefix().IsSingleIP()
		switch {
		case g.Deny:
			deny = append(deny, g)
			denyAt[network] = append(denyAt[network], g)
			if broad {
				broadDeny = append(broadDeny, g)
			}
		default:
			allow = append(allow, g)
			allowAt[network] = append(allowAt[network], g)
			if broad {
				broadAllow = append(broadAllow, g)
			}
		}
	}
	for _, g := range allow {
		if by := covering(g, denyAt[g.net.Network()], broadDeny); by != nil {
			l.shadowed(g, by)
		} else if by := covering(g, allowAt[g.net.Network()], broadAllow); by != nil {
			l.duplicate(g, by)
		}
		if g.Risk == learn.High {
			l.wide(g, "Name the host and the port: net=ALLOW|TCP|api.example.com|443|OUT.")
		}
	}
	for _, g := range deny {
		if by := covering(g, denyAt[g.net.Network()], broadDeny); by != nil {
			l.duplicate(g, by)
			continue
		}
		if g.net.Any() || g.net.Set() != "" {
			continue // a precaution against what an include may open
		}
		if !meets(l.grants, g) {
			l.add(g, Note, KindNever, "refuses nothing that another rule would allow", "")
		}
	}
}

// covering returns a grant that speaks of all that g speaks of; of two equal ones the first counts.
func covering(g *Grant, lists ...[]*Grant) *Grant {
	for _, list := range lists {
		for _, o := range list {
			if o == g || !o.net.Covers(*g.net) {
				continue
			}
			if o.Deny != g.Deny || !g.net.Covers(*o.net) || before(o, g) {
				return o
			}
		}
	}
	return nil
}
