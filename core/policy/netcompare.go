package policy

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// NetRule is a net line as tools that review profiles compare it with others.
type NetRule struct{ r netRule }

// ParseNet reads the fields of a net rule as Compile does, without looking any name up.
func ParseNet(items []string) (NetRule, error) {
	r, err := parseNet(slices.Clone(items))
	if err != nil {
		return NetRule{}, err
	}
	return NetRule{r}, nil
}

// Deny tells a DENY.
func (n NetRule) Deny() bool { return n.r.deny }

// Any tells the network `*`.
func (n NetRule) Any() bool { return n.r.any }

// Set is the named set of the rule with its `@`, "" where it names none.
func (n NetRule) Set() string {
	for name, s := range setNames {
		if s == n.r.named {
			return name
		}
	}
	return ""
}

// Name is the host name of the rule, "" where it has none.
func (n NetRule) Name() string { return n.r.name }

// Domain is the domain whose names the rule means, "" where it means none.
func (n NetRule) Domain() string { return n.r.domain }

// Prefix is the address or the network of the rule; invalid where it names none.
func (n NetRule) Prefix() netip.Prefix { return n.r.prefix }

// AllPorts tells that every port is meant.
func (n NetRule) AllPorts() bool { return n.r.ports == nil }

// AllProtocols tells that every protocol is meant.
func (n NetRule) AllProtocols() bool { return n.r.protos == protoAll }

// Inward tells that waiting for others is meant too.
func (n NetRule) Inward() bool { return n.r.dirs&dirIn != 0 }

// Network is the network in the one spelling that rules are compared by.
func (n NetRule) Network() string {
	switch {
	case n.r.any:
		return "*"
	case n.r.named != public:
		return n.Set()
	case n.r.name != "":
		return n.r.name
	case n.r.domain != "":
		return "*." + n.r.domain
	case n.r.prefix.IsSingleIP():
		return n.r.prefix.Addr().String()
	}
	return n.r.prefix.String()
}

// String is the rule in the one spelling that equal rules share.
func (n NetRule) String() string {
	action, ports := "ALLOW", "*"
	if n.r.deny {
		action = "DENY"
	}
	if n.r.ports != nil {
		var parts []string
		for _, p := range joined(n.r.ports) {
			text := strconv.Itoa(int(p.from))
			if p.to != p.from {
				text += "-" + strconv.Itoa(int(p.to))
			}
			parts = append(parts, text)
		}
		ports = strings.Join(parts, ",")
	}
	proto := map[uint8]string{protoTCP: "TCP", protoUDP: "UDP", protoICMP: "ICMP", protoAll: "*"}[n.r.protos]
	dir := map[uint8]string{dirIn: "IN", dirOut: "OUT", dirAll: "*"}[n.r.dirs]
	return strings.Join([]string{action, proto, n.Network(), ports, dir}, "|")
}

// joined unites ranges that touch. They are sorted by their start.
func joined(ranges []portRange) []portRange {
	var out []portRange
	for _, p := range ranges {
		if last := len(out) - 1; last >= 0 && int(p.from) <= int(out[last].to)+1 {
			out[last].to = max(out[last].to, p.to)
			continue
		}
		out = append(out, p)
	}
	return out
}

// Covers tells that n speaks of all that o speaks of, whatever their actions. What cannot be told, such as which
// addresses a name has, is no cover.
func (n NetRule) Covers(o NetRule) bool {
	return n.r.protos&o.r.protos == o.r.protos && n.r.dirs&o.r.dirs == o.r.dirs && portsCover(n.r.ports, o.r.ports) && n.coversNetwork(o)
}

func (n NetRule) coversNetwork(o NetRule) bool {
	a, b := &n.r, &o.r
	switch {
	case a.any && (a.deny || b.any):
		return true
	case a.any: // an ALLOW of * holds no named set
		return b.name != "" && publicName(b.name) || b.domain != "" && publicName("x."+b.domain) || b.prefix.IsValid() && b.class == public
	case b.any:
		return false
	case a.domain != "" && b.name != "": // whose addresses are known when the profile is loaded, those below a domain are not
		return a.deny && !b.deny && strings.HasSuffix(b.name, "."+a.domain)
	case a.domain != "":
		return b.domain == a.domain || strings.HasSuffix(b.domain, "."+a.domain)
	case a.name != "" || b.name != "" || b.domain != "":
		return a.name != "" && a.name == b.name
	case a.named != public && b.named != public:
		return a.named == b.named
	case a.named != public && a.deny:
		return slices.ContainsFunc(setTable, func(row setRow) bool {
			return row.set == a.named && row.prefix.Bits() <= b.prefix.Bits() && row.prefix.Contains(b.prefix.Addr())
		})
	case a.named != public:
		return b.class == a.named
	case b.named != public:
		return false
	}
	return a.prefix.Bits() <= b.prefix.Bits() && a.prefix.Contains(b.prefix.Addr()) && (a.deny || a.class == b.class)
}

func portsCover(a, b []portRange) bool {
	if a == nil {
		return true
	}
	if b == nil {
		return portsCover(a, []portRange{{0, 65535}})
	}
	a = joined(a)
	return !slices.ContainsFunc(b, func(p portRange) bool {
		return !slices.ContainsFunc(a, func(q portRange) bool { return q.from <= p.from && p.to <= q.to })
	})
}

// Meets tells that something may be in both rules. Where it cannot be told, it is.
func (n NetRule) Meets(o NetRule) bool {
	a, b := &n.r, &o.r
	if a.protos&b.protos == 0 || a.dirs&b.dirs == 0 || !portsMeet(a.ports, b.ports) {
		return false
	}
	if a.prefix.IsValid() && b.prefix.IsValid() {
		return a.prefix.Overlaps(b.prefix)
	}
	return true
}

func portsMeet(a, b []portRange) bool {
	if a == nil || b == nil {
		return true
	}
	return slices.ContainsFunc(a, func(p portRange) bool {
		return slices.ContainsFunc(b, func(q portRange) bool { return p.from <= q.to && q.from <= p.to })
	})
}

// PublicName decides on an operation at a host that no rule names, supposing that its address is public: what a rule for
// `*` says. Enforcement decides on the address itself.
func (p *Policy) PublicName(n NetQuestion) Decision {
	q := question{proto: protocols[n.Proto], dir: netOps[n.Op].dir, port: n.Port}
	if d := p.byName(n, &q); d.Allow || !d.Rule.IsZero() {
		return d
	}
	for _, r := range p.net.allow.any {
		if r.holds(&q) {
			return p.allow("net", n.Op, n.Host, r.line)
		}
	}
	return p.refuseNet(n, 0, "")
}

// Networks lists the networks of the rule's named set, nil where it names none.
func (n NetRule) Networks() []netip.Prefix {
	var out []netip.Prefix
	named := setNames[n.Set()]
	for _, row := range setTable {
		if named != public && row.set == named {
			out = append(out, row.prefix)
		}
	}
	return out
}
