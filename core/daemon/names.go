package daemon

import (
	"github.com/pysandboxes/pysandboxes/core/broker"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/resolver"
)

// names are the host names of one sandbox: the rules, what they gave while it runs, and who answers its queries. The guard's
// questions and the boundary's calls are judged by the same.
type names struct {
	live     *policy.Live
	resolver *resolver.Resolver // nil: nothing is looked up
}

// names makes those of a child. Nothing of it runs before something asks.
func (p *Plan) names(c *Child) names {
	n := names{live: p.policy.Live()}
	if p.policy.NetNeeded() && !p.Learning() {
		resolver.GiveListed(n.live)
		n.resolver = resolver.New(resolver.Config{
			Live: n.live, System: resolver.ReadSystem(), Note: c.brokerNote,
			Denied: func(d policy.Decision) { c.native(broker.Denial{Op: d.Op, Subject: d.Subject, Decision: &d}) },
		})
	}
	return n
}

func (n names) close() {
	if n.resolver != nil {
		n.resolver.Close()
	}
}

// decide decides on a question of the guard. What a name that the program looks up leads to is looked up here as well,
// while it does so: the connection that follows is judged by it.
func (n names) decide(q policy.NetQuestion) policy.Decision {
	d := n.live.Net(q)
	switch {
	case n.resolver == nil:
	case d.Allow && q.Op == "resolve":
		if refusal, ok := n.resolver.Expect(q.Host); !ok {
			return refusal
		}
	case !d.Allow && d.Rule.IsZero() && (q.Op == "connect" || q.Op == "sendto") && n.resolver.Settle():
		return n.live.Net(q)
	}
	return d
}
