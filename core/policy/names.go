package policy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Looking names up when the profile is loaded: the sandbox sees these addresses for as long as it lives, besides those that
// the same names give while it does (live.go).

// retries are the waits before a look-up that failed for a passing reason is tried again.
var retries = []time.Duration{200 * time.Millisecond, 400 * time.Millisecond}

const (
	lookupTime    = 5 * time.Second // of one try
	lookupWorkers = 16
)

// hostResolver is the machine's own.
type hostResolver struct{}

func (hostResolver) LookupIP(host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

type answer struct {
	addrs []netip.Addr
	err   error
}

// lookup resolves every host name of the rules, a few at a time.
func (c *compiler) lookup() map[string]answer {
	answers := map[string]answer{}
	var names []string
	for i := range c.net.parsed {
		if name := c.net.parsed[i].name; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, lookupWorkers)
	for _, name := range names {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			a := c.lookupOne(name)
			mu.Lock()
			defer mu.Unlock()
			answers[name] = a
		})
	}
	wg.Wait()
	return answers
}

// lookupOne resolves one name; a resolver that panics has failed.
func (c *compiler) lookupOne(name string) (a answer) {
	defer func() {
		if r := recover(); r != nil {
			a = answer{err: fmt.Errorf("the resolver failed: %v", r)}
		}
	}()
	for try := 0; ; try++ {
		a.addrs, a.err = c.ctx.Resolver.LookupIP(name)
		if a.err == nil && len(a.addrs) == 0 {
			a.err = errors.New("it has no address")
			return a
		}
		var dns *net.DNSError
		if a.err == nil || try == len(retries) || errors.As(a.err, &dns) && dns.IsNotFound && !dns.IsTemporary {
			return a
		}
		c.ctx.Sleep(retries[try])
	}
}

// internalSuffixes end names that belong to a private network, whose addresses are private as a matter of course.
var internalSuffixes = []string{"localhost", "local", "internal", "lan", "intranet", "private", "corp", "home", "home.arpa", "test", "svc"}

// publicName tells a name of the public DNS.
func publicName(name string) bool {
	if !strings.Contains(name, ".") {
		return false
	}
	return !slices.ContainsFunc(internalSuffixes, func(s string) bool { return strings.HasSuffix(name, "."+s) })
}

// opens tells that some ALLOW rule opens an address of a named set, by the set's name or by the address's own.
func (x *netIndex) opens(a netip.Addr) bool {
	s := setOf(a)
	if len(x.named[s]) > 0 {
		return true
	}
	for _, l := range x.lengths {
		if prefix, err := a.Prefix(l.bits); err == nil && l.six == a.Is6() &&
			slices.ContainsFunc(x.prefixes[prefix], func(r *netRule) bool { return r.name == "" && r.class == s }) {
			return true
		}
	}
	return false
}

// surprising tells an answer that a rule for a name does not mean: a public name that points into a private network, and
// any name that points to the cloud's credentials. A rule that names the range means it.
func (n *netRules) surprising(name string, a netip.Addr) bool {
	plain := unfold(a.WithZone(""))
	s := setOf(plain)
	return s != public && (s == metadata || s == unspecified || publicName(name)) && !n.allow.opens(plain)
}

// withoutSurprises drops such answers.
func (c *compiler) withoutSurprises(p *parsedRule, addrs []netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range addrs {
		if c.net.surprising(p.name, a) {
			c.warn(p.rule, fmt.Sprintf("%s points to %s, which is not public: that address is left out; a net rule for the address or its set would keep it", p.name, a))
			continue
		}
		out = append(out, a.WithZone(""))
	}
	return out
}

// resolve decides on a look-up. Names that no rule allows are not looked up: a look-up is a message to whoever runs
// the name's server.
func (p *Policy) resolve(n NetQuestion, q *question) Decision {
	if n.Host == "" {
		return p.allow("net", n.Op, n.Host, 0)
	}
	if _, isAddress := hostAddr(n.Host); isAddress {
		return p.allow("net", n.Op, n.Host, 0)
	}
	name := hostName(n.Host)
	x := &p.net
	wholly := func(r *netRule) bool { return r.dirs&q.dir != 0 && r.ports == nil && r.protos == protoAll }
	for _, r := range x.deny.any {
		if wholly(r) {
			return p.refuseNet(n, r.line, "")
		}
	}
	if r := x.deny.forName(name, wholly); r != nil {
		return p.refuseNet(n, r.line, "")
	}
	if r := x.allow.forName(name, func(*netRule) bool { return true }); r != nil {
		return p.allow("net", n.Op, n.Host, r.line)
	}
	if name == "localhost" {
		if line := x.allow.anyOf(loopback); line > 0 {
			return p.allow("net", n.Op, n.Host, line)
		}
	}
	for _, r := range x.allow.any {
		if r.dirs&q.dir != 0 && name != "" {
			return p.allow("net", n.Op, n.Host, r.line)
		}
	}
	return p.refuseNet(n, 0, "")
}

// anyOf returns a rule that allows something of a set.
func (x *netIndex) anyOf(s set) int {
	for _, r := range x.named[s] {
		return r.line
	}
	for _, rules := range x.prefixes {
		for _, r := range rules {
			if r.class == s {
				return r.line
			}
		}
	}
	return 0
}

// reverse decides on the look-up of an address's name: allowed where something may be reached at that address.
func (p *Policy) reverse(n NetQuestion, q *question, l *Live) Decision {
	addr, ok := hostAddr(n.Host)
	if !ok {
		return p.resolve(n, q)
	}
	addr = unfold(addr)
	if line := l.allowedOf(addr); line > 0 {
		return p.allow("net", n.Op, n.Host, line)
	}
	class := setOf(addr)
	for _, r := range p.net.allow.named[class] {
		return p.allow("net", n.Op, n.Host, r.line)
	}
	for _, l := range p.net.allow.lengths {
		if prefix, err := addr.Prefix(l.bits); err == nil && l.six == addr.Is6() {
			for _, r := range p.net.allow.prefixes[prefix] {
				if r.class == class {
					return p.allow("net", n.Op, n.Host, r.line)
				}
			}
		}
	}
	if class == public && len(p.net.allow.any) > 0 {
		return p.allow("net", n.Op, n.Host, p.net.allow.any[0].line)
	}
	return p.refuseNet(n, 0, "")
}
