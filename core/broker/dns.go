package broker

import (
	"net/netip"
	"slices"
)

// redirect gives the address to which a look-up goes instead. What the resolver answers is by rule, so that this needs none.
func (b *Broker) redirect(f socketFacts, t target) (raw []byte, ours bool) {
	d := b.config.DNS
	if d == nil || d.Listen == nil {
		return nil, false
	}
	asked := netip.AddrPortFrom(t.asked.Addr().Unmap(), t.asked.Port())
	if !slices.Contains(d.Servers, asked) || f.word() != "udp" && f.word() != "tcp" {
		return nil, false
	}
	if b.dns == nil {
		at, err := d.Listen()
		if err != nil {
			b.noteOnce("dns", "names cannot be looked up in the sandbox: "+err.Error())
			return nil, false
		}
		b.dns = at
	}
	six := len(t.raw) == inet6Length
	for _, at := range b.dns {
		switch {
		case at.Addr().Is4() && !six:
			return inet4(at), true
		case at.Addr().Is6() && six && !t.asked.Addr().Is4In6():
			return inet6(at), true
		case at.Addr().Is4() && six && t.asked.Addr().Is4In6():
			return inet6(netip.AddrPortFrom(netip.AddrFrom16(at.Addr().As16()), at.Port())), true
		}
	}
	return nil, false
}
