package review

import (
	"strings"

	"github.com/pysandboxes/pysandboxes/core/learn"
)

// tally holds the grants of a family by their target.
type tally struct{ allow, deny map[string]*Grant }

func (l *linter) tally(key string) (all []*Grant, t tally) {
	all = l.keys(key)
	t = tally{map[string]*Grant{}, map[string]*Grant{}}
	for _, g := range all {
		m := t.allow
		if g.Deny {
			m = t.deny
		}
		if m[g.target] == nil {
			m[g.target] = g
		}
	}
	return all, t
}

func (l *linter) imports() {
	all, t := l.tally("python-import")
	for _, g := range all {
		same := t.allow
		if g.Deny {
			same = t.deny
		}
		first := same[g.target]
		wider := nearestAbove(same, g.target)
		switch refused := nearestAbove(t.deny, g.target); {
		case !g.Deny && t.deny[g.target] != nil:
			l.shadowed(g, t.deny[g.target])
		case !g.Deny && refused != nil && g.target != "*":
			l.shadowed(g, refused)
		case first != g:
			l.duplicate(g, first)
		case wider != nil:
			l.duplicate(g, wider)
		case g.Deny && g.target != "*" && !meets(l.grants, g):
			l.add(g, Note, KindNever, "refuses nothing that another rule would allow", "")
		}
		if g.target == "*" && !g.Deny {
			l.wide(g, "Name the modules: a learning run lists them.")
		}
	}
}

// package_ is the package of a dotted name, "" at the top.
func package_(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return ""
	}
	return name[:i]
}

// nearestAbove returns the grant for a package above name, or for `*`.
func nearestAbove(m map[string]*Grant, name string) *Grant {
	if name == "*" {
		return nil
	}
	for up := package_(name); up != ""; up = package_(up) {
		if m[up] != nil {
			return m[up]
		}
	}
	return m["*"]
}

func (l *linter) calls() {
	all, t := l.tally("python-api")
	for _, g := range all {
		same := t.allow
		if g.Deny {
			same = t.deny
		}
		category := categoryOf(g.target)
		switch {
		case !g.Deny && t.deny[g.target] != nil:
			l.shadowed(g, t.deny[g.target])
		case same[g.target] != g:
			l.duplicate(g, same[g.target])
		case said(t, g, category) != nil:
			l.duplicate(g, said(t, g, category))
		case g.Deny && g.target != "*" && !meets(l.grants, g):
			l.add(g, Note, KindNever, "refuses nothing that another rule would allow", "")
		}
		switch {
		case g.Deny:
		case g.target == "*":
			l.wide(g, "Name the functions: a learning run lists them.")
		case isCategory(g.target) && g.Risk == learn.High:
			l.wide(g, "Name the functions of the category that the program needs.")
		}
	}
}

// said returns a wider grant that decides the same way, where no rule of the levels between says otherwise.
func said(t tally, g *Grant, category string) *Grant {
	same, other := t.allow, t.deny
	if g.Deny {
		same, other = t.deny, t.allow
	}
	if other[g.target] != nil || g.Deny && g.target == execCall && t.allow[evalCall] != nil {
		return nil
	}
	if category != "" {
		if other[category] != nil {
			return nil
		}
		if same[category] != nil {
			return same[category]
		}
	}
	if g.target == "*" || other["*"] != nil || t.allow[category] != nil || t.deny[category] != nil {
		return nil
	}
	if !g.Deny && isCategory(g.target) {
		return t.allow["*"]
	}
	return same["*"]
}
