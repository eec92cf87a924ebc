package policy

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// Live is a policy while one sandbox runs: its rules, and the addresses that look-ups gave to the sandbox. An address
// counts as reachable by the rules of the names that gave it, for as long as it is kept: a program may connect to what
// it looked up an hour ago, and a name's next answer may be another.
//
// Its methods may be called by many goroutines at once. A nil *Live knows of no look-up.
type Live struct {
	policy *Policy

	mu    sync.RWMutex
	given map[netip.Addr]*given
	count uint64          // of look-ups, to tell which address was given last
	found map[string]bool // names of rules that had no address at load and have given one since
}

// given is what look-ups say of one address.
type given struct {
	allow, deny []*netRule // of the names that gave it
	name        string     // the one that gave it last
	at          uint64     // when
}

// Bounds of what a sandbox can have remembered by looking names up. Beyond them the address that was given longest ago
// goes, never one that a DENY speaks of.
const (
	maxGiven  = 4096
	maxAnswer = 64  // addresses of one answer
	maxRules  = 256 // ALLOW rules of one address
)

// Live returns the policy for one sandbox.
func (p *Policy) Live() *Live { return &Live{policy: p, given: map[netip.Addr]*given{}} }

// Policy is the policy itself.
func (l *Live) Policy() *Policy { return l.policy }

// Net decides on a network operation by the rules and by what names gave.
func (l *Live) Net(n NetQuestion) Decision { return l.policy.decideNet(n, l) }

// Given takes the addresses that a look-up of name gave. kept are those that the sandbox may be told: connections to them
// are then judged by the rules of the name too. A refusal is returned for each other one: a public name that leads into a
// private network. Whether the name may be looked up at all is another question ("resolve").
func (l *Live) Given(name string, addrs []netip.Addr) (kept []netip.Addr, refused []Decision) {
	p := l.policy
	name = hostName(name)
	if name == "" {
		return nil, nil
	}
	var allow, deny []*netRule
	p.net.allow.forName(name, collect(&allow))
	p.net.deny.forName(name, collect(&deny))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	for _, a := range addrs[:min(len(addrs), maxAnswer)] {
		a = a.WithZone("")
		if p.net.surprising(name, a) {
			refused = append(refused, p.refuseAnswer(name, a, allow))
			continue
		}
		if l.remember(unfold(a), name, allow, deny) {
			kept = append(kept, a)
		}
	}
	if len(kept) > 0 && slices.ContainsFunc(p.net.vacant, func(r *netRule) bool { return r.name == name }) {
		if l.found == nil {
			l.found = map[string]bool{}
		}
		l.found[name] = true
	}
	return kept, refused
}

// gave tells that the name of a rule that had no address at load has given one since.
func (l *Live) gave(name string) bool {
	if l == nil {
		return false
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.found[name]
}

func collect(to *[]*netRule) func(*netRule) bool {
	return func(r *netRule) bool { *to = append(*to, r); return false }
}

// remember notes an address of a name. It fails where there is no room for one more that must not be forgotten.
func (l *Live) remember(a netip.Addr, name string, allow, deny []*netRule) bool {
	g := l.given[a]
	if g == nil {
		if len(l.given) >= maxGiven && !l.forget() {
			return false
		}
		g = &given{}
		l.given[a] = g
	}
	g.name, g.at = name, l.count
	g.deny = united(g.deny, deny)
	g.allow = united(g.allow, allow)
	g.allow = g.allow[max(0, len(g.allow)-maxRules):]
	return true
}

func united(have, more []*netRule) []*netRule {
	for _, r := range more {
		if !slices.Contains(have, r) {
			have = append(have, r)
		}
	}
	return have
}

// forget drops the address that was given longest ago.
func (l *Live) forget() bool {
	var oldest netip.Addr
	var at uint64
	for a, g := range l.given {
		if len(g.deny) == 0 && (!oldest.IsValid() || g.at < at) {
			oldest, at = a, g.at
		}
	}
	delete(l.given, oldest)
	return oldest.IsValid()
}

// rulesOf returns the rules of the names that gave an address: one that allows and one that refuses, 0 where none does.
func (l *Live) rulesOf(a netip.Addr, q *question) (allow, deny int) {
	if l == nil || q.dir != dirOut {
		return 0, 0
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	g := l.given[a]
	if g == nil {
		return 0, 0
	}
	for _, r := range g.deny {
		if r.holds(q) {
			return 0, r.line
		}
	}
	for _, r := range g.allow {
		if r.holds(q) {
			return r.line, 0
		}
	}
	return 0, 0
}

// allowedOf returns a rule of a name that gave the address, whatever it allows.
func (l *Live) allowedOf(a netip.Addr) int {
	if l == nil {
		return 0
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if g := l.given[a]; g != nil && len(g.allow) > 0 {
		return g.allow[0].line
	}
	return 0
}

// NameOf is the name whose look-up gave the address last, "" where none did.
func (l *Live) NameOf(a netip.Addr) string {
	if l == nil {
		return ""
	}
	a = unfold(a.WithZone(""))
	l.mu.RLock()
	defer l.mu.RUnlock()
	if g := l.given[a]; g != nil {
		return g.name
	}
	return ""
}

// refuseAnswer words the refusal of an answer. The line to add is for the address, with the port that the name has.
func (p *Policy) refuseAnswer(name string, a netip.Addr, allow []*netRule) Decision {
	n := NetQuestion{Op: "resolve", Proto: "tcp", Host: name}
	d := p.refuseNet(n, 0, "The name leads to "+a.String()+", which is not public; a rule for the name does not mean that.")
	n.Host = a.String()
	for _, r := range allow {
		if r.ports != nil {
			n.Port = int(r.ports[0].from)
			break
		}
	}
	d.Add = p.suggestNet(n, "OUT")
	return d
}

// DomainRule is a rule for the names below a domain, which needs look-ups to be seen while the sandbox runs.
type DomainRule struct {
	Domain string
	Pos    profile.Position
	line   int
}

// DomainRules returns the rules for domains, in the order of the profile.
func (p *Policy) DomainRules() []DomainRule {
	var out []DomainRule
	for _, x := range []*netIndex{&p.net.allow, &p.net.deny} {
		for _, rules := range x.domains {
			for _, r := range rules {
				out = append(out, DomainRule{r.domain, p.lines[r.line].pos, r.line})
			}
		}
	}
	slices.SortFunc(out, func(a, b DomainRule) int { return a.line - b.line })
	return out
}

// BelowDomain returns the domain of the ALLOW rule by which alone a name may be looked up, "" where the name has a rule
// of its own or every name may be: what such names are made of is the program's choice, and so a channel.
func (p *Policy) BelowDomain(name string) string {
	name = hostName(name)
	x := &p.net.allow
	if len(x.names[name]) > 0 || len(x.any) > 0 {
		return ""
	}
	if r := x.forName(name, func(*netRule) bool { return true }); r != nil {
		return r.domain
	}
	return ""
}

// LookUp decides on a DNS query for a name. It is "resolve" without what needs no query: an address in any spelling and
// the socket module's own words are no names, and whoever asks a server for them sends something out.
func (p *Policy) LookUp(name string) Decision {
	if _, isAddress := hostAddr(name); isAddress || hostName(name) == "" {
		return p.RefuseLookUp(name, "this is not a host's name.")
	}
	return p.Net(NetQuestion{Op: "resolve", Host: name})
}

// SpeaksOf tells that some rule is for this name or a domain above it.
func (p *Policy) SpeaksOf(name string) bool {
	name = hostName(name)
	all := func(*netRule) bool { return true }
	return p.net.allow.forName(name, all) != nil || p.net.deny.forName(name, all) != nil
}

// RefuseLookUp words the refusal of a look-up for a reason that no rule changes.
func (p *Policy) RefuseLookUp(name, why string) Decision {
	return p.refuseNet(NetQuestion{Op: "resolve", Proto: "udp", Host: name}, 0, why)
}
