package policy

import (
	"net/netip"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// netRules are the net lines, allowing and refusing ones apart, indexed by what they name.
type netRules struct {
	allow, deny netIndex
	parsed      []parsedRule            // until the names are looked up
	pins        map[string][]netip.Addr // host names of rules and the addresses they had at load
	vacant      []*netRule              // ALLOW rules whose names had none then; they hold for what look-ups give
}

type parsedRule struct {
	netRule
	rule *profile.Rule
}

// question is a NetQuestion in the form that rules compare.
type question struct {
	proto, dir uint8
	port       int
}

func (c *compiler) addNet(r *profile.Rule) error {
	parsed, err := parseNet(r.Items)
	if err != nil {
		return r.Fail(err.message, err.hint)
	}
	parsed.line = c.keep(r)
	c.net.parsed = append(c.net.parsed, parsedRule{parsed, r})
	if parsed.any && !parsed.deny {
		c.warn(r, "* does not hold @private, @loopback, @link-local, @metadata and 0.0.0.0: they are granted by name or by their own address")
	}
	return nil
}

func (c *compiler) finishNet() error {
	for i := range c.net.parsed {
		p := &c.net.parsed[i]
		if p.name == "" {
			c.net.index(p.deny).put(&p.netRule)
		}
		if p.domain != "" && p.deny {
			c.warn(p.rule, "what is below "+p.domain+" is refused by its name: no look-up, and no address that a look-up gave; an address that the program knows by itself is not recognised")
		}
	}
	answers := c.lookup()
	for i := range c.net.parsed {
		p := &c.net.parsed[i]
		if p.name == "" {
			continue
		}
		addrs, err := answers[p.name].addrs, answers[p.name].err
		if err == nil && !p.deny {
			addrs = c.withoutSurprises(p, addrs)
		}
		switch {
		case len(addrs) > 0:
			c.net.pin(c.net.index(p.deny), &p.netRule, addrs)
		case p.deny:
			return p.rule.Fail("the name "+p.name+" cannot be looked up, so this DENY would refuse nothing: "+reason(err), "Write its addresses, or remove the line.")
		case p.dirs&dirOut == 0: // look-ups while the sandbox runs tell nothing of the addresses here
			c.warn(p.rule, "the rule is dropped: "+p.name+" cannot be looked up: "+reason(err))
		default:
			c.net.pin(&c.net.allow, &p.netRule, nil)
			c.net.vacant = append(c.net.vacant, &p.netRule)
			text := "no address of " + p.name + " is left"
			if err != nil {
				text = p.name + " cannot be looked up now: " + reason(err)
			}
			c.warn(p.rule, text+"; the rule holds for the addresses that the name gives when the sandbox looks it up")
		}
	}
	c.net.parsed = nil
	return nil
}

func (n *netRules) index(deny bool) *netIndex {
	if deny {
		return &n.deny
	}
	return &n.allow
}

func reason(err error) string {
	if err == nil {
		return "it has no address"
	}
	return err.Error()
}

// netOps are the operations and what they are in words. OUT unless they wait for others.
var netOps = map[string]struct {
	words string
	dir   uint8
}{
	"connect": {"connect to", dirOut}, "sendto": {"sendto", dirOut}, "resolve": {"look-up of", dirOut}, "reverse": {"reverse look-up of", dirOut},
	"bind": {"bind to", dirIn}, "listen": {"listen on", dirIn},
	"socket": {"make a socket", dirOut}, // of a kind that no rule can name
}

// Net decides on a network operation by the rules, and by the addresses that names had when the profile was loaded.
// [Live] knows those that they gave since.
func (p *Policy) Net(n NetQuestion) Decision { return p.decideNet(n, nil) }

func (p *Policy) decideNet(n NetQuestion, l *Live) Decision {
	op, known := netOps[n.Op]
	if !known {
		return p.refuseNet(n, 0, "the operation is not known.")
	}
	if n.Proto == "unix" {
		return p.unix(n)
	}
	q := question{proto: protocols[n.Proto], dir: op.dir, port: n.Port}
	if n.Proto == "*" {
		q.proto = 0
	}
	if q.proto == 0 && (n.Op == "resolve" || n.Op == "reverse") {
		n.Proto = "tcp" // look-ups do not say; for the message and for the line to add
	}
	switch {
	case n.Op == "resolve":
		return p.resolve(n, &q)
	case n.Op == "reverse":
		return p.reverse(n, &q, l)
	case q.proto == 0:
		return p.refuseNet(n, 0, "sockets of this kind cannot be granted.")
	}
	addr, ok := hostAddr(n.Host)
	if !ok {
		return p.byName(n, &q)
	}
	line, ok := p.net.address(addr, &q, l)
	if ok {
		return p.allow("net", n.Op, n.Host, line)
	}
	d := p.refuseNet(n, line, "")
	name := l.NameOf(addr)
	if name == "" {
		name = p.net.nameAt(unfold(addr))
	}
	switch {
	case line > 0 || op.dir != dirOut:
	case name != "":
		d.Note = "A look-up of " + name + " gave that address."
		n.Host = name
		d.Add = append(p.suggestNet(n, "OUT"), d.Add...)
	default:
		d.Note = p.vacantFor(&q, l)
	}
	return d
}

// vacantFor says that a rule of this kind stands whose name has had no address so far, "" where none does.
func (p *Policy) vacantFor(q *question, l *Live) string {
	for _, r := range p.net.vacant {
		if r.holds(q) && !l.gave(r.name) {
			return vacancy(p.lines[r.line].pos, r.name)
		}
	}
	return ""
}

// NoAddress says that a name has a rule and had no address when the profile was loaded, "" where that is not so.
func (p *Policy) NoAddress(name string) string {
	for _, r := range p.net.vacant {
		if r.name == hostName(name) {
			return vacancy(p.lines[r.line].pos, r.name)
		}
	}
	return ""
}

func vacancy(at profile.Position, name string) string {
	return "The rule at " + at.String() + " stands, but " + name + " has had no address so far."
}

// hostAddr reads a host as the socket module does: an empty one is the unspecified address.
func hostAddr(host string) (netip.Addr, bool) {
	switch host {
	case "":
		return netip.IPv4Unspecified(), true
	case "<broadcast>":
		return netip.AddrFrom4([4]byte{255, 255, 255, 255}), true
	case "<any>":
		return netip.IPv4Unspecified(), true
	}
	return parseAddr(host)
}

// address decides on an address: line is the rule that refused or allowed, 0 the default.
func (n *netRules) address(literal netip.Addr, q *question, l *Live) (line int, ok bool) {
	plain := unfold(literal)
	if line := n.deny.denied(plain, q); line > 0 {
		return line, false
	}
	if literal != plain {
		if line := n.deny.denied(literal, q); line > 0 {
			return line, false
		}
	}
	self := netip.Addr{} // connecting to 0.0.0.0 reaches this host
	if plain.IsUnspecified() && q.dir == dirOut {
		self = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if plain.Is6() {
			self = netip.IPv6Loopback()
		}
		if line := n.deny.denied(self, q); line > 0 {
			return line, false
		}
	}
	given, denied := l.rulesOf(plain, q)
	if denied > 0 {
		return denied, false
	}
	if line := n.allow.allowed(plain, q); line > 0 {
		return line, true
	}
	if self.IsValid() {
		if line := n.allow.allowed(self, q); line > 0 {
			return line, true
		}
	}
	if literal != plain && setOf(plain) == public {
		if line := n.allow.byPrefix(literal, q, func(r *netRule) bool { return true }); line > 0 {
			return line, true
		}
	}
	return given, given > 0
}

// byName decides on an operation that names its host.
func (p *Policy) byName(n NetQuestion, q *question) Decision {
	name := hostName(n.Host)
	if name == "localhost" {
		if line, ok := p.net.address(netip.AddrFrom4([4]byte{127, 0, 0, 1}), q, nil); ok || line > 0 {
			if ok {
				return p.allow("net", n.Op, n.Host, line)
			}
			return p.refuseNet(n, line, "")
		}
	}
	for _, r := range p.net.deny.any {
		if r.holds(q) {
			return p.refuseNet(n, r.line, "")
		}
	}
	if r := p.net.deny.forName(name, func(r *netRule) bool { return r.holds(q) }); r != nil {
		return p.refuseNet(n, r.line, "")
	}
	r := p.net.allow.forName(name, func(r *netRule) bool { return r.holds(q) })
	if r == nil {
		return p.refuseNet(n, 0, "")
	}
	for _, a := range p.net.pins[name] {
		if line, ok := p.net.address(a, q, nil); !ok && line > 0 {
			return p.refuseNet(n, line, "")
		}
	}
	return p.allow("net", n.Op, n.Host, r.line)
}

// nameAt is the name of an ALLOW rule that had the address when the profile was loaded, "" where none had.
func (n *netRules) nameAt(a netip.Addr) string {
	for _, r := range n.allow.prefixes[netip.PrefixFrom(a, a.BitLen())] {
		if r.name != "" {
			return r.name
		}
	}
	return ""
}

// Pinned returns the addresses that a host name of an ALLOW rule had when the profile was loaded; the sandbox sees
// these for that name. nil where no rule names it.
func (p *Policy) Pinned(name string) []netip.Addr { return p.net.pins[hostName(name)] }

// NetNeeded tells that some rule allows a network operation, so that inet sockets have to exist.
func (p *Policy) NetNeeded() bool {
	x := &p.net.allow
	if len(x.any) > 0 || len(x.prefixes) > 0 || len(x.names) > 0 || len(x.domains) > 0 {
		return true
	}
	for _, rules := range x.named {
		if len(rules) > 0 {
			return true
		}
	}
	return false
}
