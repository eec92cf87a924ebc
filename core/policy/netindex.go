package policy

import (
	"net/netip"
	"strings"
)

// netIndex finds the rules for an address without a walk over all of them.
type netIndex struct {
	any      []*netRule
	named    [sets][]*netRule
	prefixes map[netip.Prefix][]*netRule
	lengths  []lengthOf // the lengths of prefixes that occur
	names    map[string][]*netRule
	domains  map[string][]*netRule // rules for what is below a name
}

type lengthOf struct {
	bits int
	six  bool
}

// put files a rule that names no host.
func (x *netIndex) put(r *netRule) {
	switch {
	case r.domain != "":
		if x.domains == nil {
			x.domains = map[string][]*netRule{}
		}
		x.domains[r.domain] = append(x.domains[r.domain], r)
	case r.any:
		x.any = append(x.any, r)
	case r.named != public:
		x.named[r.named] = append(x.named[r.named], r)
	default:
		x.putPrefix(r.prefix, r)
	}
}

func (x *netIndex) putPrefix(p netip.Prefix, r *netRule) {
	if x.prefixes == nil {
		x.prefixes = map[netip.Prefix][]*netRule{}
	}
	x.prefixes[p] = append(x.prefixes[p], r)
	l := lengthOf{p.Bits(), p.Addr().Is6()}
	for _, have := range x.lengths {
		if have == l {
			return
		}
	}
	x.lengths = append(x.lengths, l)
}

// pin files a rule that names a host under the name and under each of its addresses.
func (n *netRules) pin(x *netIndex, r *netRule, addrs []netip.Addr) {
	if x.names == nil {
		x.names = map[string][]*netRule{}
	}
	if n.pins == nil {
		n.pins = map[string][]netip.Addr{}
	}
	x.names[r.name] = append(x.names[r.name], r)
	if !r.deny {
		n.pins[r.name] = addrs
	}
	var except []*netRule
	if !r.deny {
		n.deny.forName(r.name, func(d *netRule) bool {
			if d.domain != "" {
				except = append(except, d)
			}
			return false
		})
	}
	for _, a := range addrs {
		a = unfold(a)
		at := *r
		at.except = except
		at.set(netip.PrefixFrom(a, a.BitLen()))
		x.putPrefix(at.prefix, &at)
	}
}

// forName returns the first rule for a name, by the name itself or by a domain above it, that fits; nil if none does.
func (x *netIndex) forName(name string, fits func(*netRule) bool) *netRule {
	for _, r := range x.names[name] {
		if fits(r) {
			return r
		}
	}
	if len(x.domains) == 0 {
		return nil
	}
	for {
		_, domain, found := strings.Cut(name, ".")
		if !found {
			return nil
		}
		for _, r := range x.domains[domain] {
			if fits(r) {
				return r
			}
		}
		name = domain
	}
}

// denied returns the rule that refuses an address, 0 if none does.
func (x *netIndex) denied(a netip.Addr, q *question) int {
	for _, r := range x.any {
		if r.holds(q) {
			return r.line
		}
	}
	for s := metadata; s < sets; s++ {
		if len(x.named[s]) == 0 || !setHolds(s, a) {
			continue
		}
		for _, r := range x.named[s] {
			if r.holds(q) {
				return r.line
			}
		}
	}
	return x.byPrefix(a, q, func(*netRule) bool { return true })
}

// allowed returns the rule that allows an address, 0 if none does. An address of a named set needs a rule that names
// the set or lies in it.
func (x *netIndex) allowed(a netip.Addr, q *question) int {
	class := setOf(a)
	for _, r := range x.named[class] {
		if r.holds(q) {
			return r.line
		}
	}
	if class == public {
		for _, r := range x.any {
			if r.holds(q) {
				return r.line
			}
		}
	}
	return x.byPrefix(a, q, func(r *netRule) bool { return r.class == class })
}

func (x *netIndex) byPrefix(a netip.Addr, q *question, fits func(*netRule) bool) int {
	for _, l := range x.lengths {
		if l.six != a.Is6() {
			continue
		}
		p, err := a.Prefix(l.bits)
		if err != nil {
			continue
		}
		for _, r := range x.prefixes[p] {
			if r.holds(q) && fits(r) && !r.excepted(q) {
				return r.line
			}
		}
	}
	return 0
}
