package resolver

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// Config is what a resolver answers from.
type Config struct {
	Live *policy.Live
	// System is what the sandbox's clients read of their resolv.conf, and what its start goes by.
	System System
	// Upstream looks names up; nil is the host's own resolver.
	Upstream Upstream
	// Denied takes each refusal, before its answer is sent. It must not block. May be nil.
	Denied func(policy.Decision)
	// Note takes what a person should know: a domain whose budget is used up. May be nil.
	Note func(string)

	now func() time.Time // nil: time.Now
}

// Resolver answers the queries of one sandbox. Its methods may be called by many goroutines at once.
type Resolver struct {
	Config
	cache  cache
	budget budget
	slots  chan struct{} // look-ups at a time

	ctx     context.Context // over when the resolver is closed
	end     context.CancelFunc
	serving sync.WaitGroup

	mu      sync.Mutex
	closers []func() error
	closed  bool
	pending map[chan struct{}]bool // look-ups of Expect
}

// Bounds of what a sandbox can make this process do at a time.
const (
	maxLookups  = 32
	lookupTime  = 4 * time.Second // under the five seconds after which a client asks again
	settleTime  = 2 * time.Second
	maxPending  = 64
	maxWaiting  = 256 // queries by UDP that wait for a look-up
	maxStreams  = 64  // connections by TCP
	idleStreams = 10 * time.Second
)

// New makes a resolver. Nothing runs until it is asked.
func New(c Config) *Resolver {
	if c.Upstream == nil {
		c.Upstream = host{}
	}
	if c.now == nil {
		c.now = time.Now
	}
	r := &Resolver{Config: c, slots: make(chan struct{}, maxLookups), pending: map[chan struct{}]bool{}}
	r.ctx, r.end = context.WithCancel(context.Background())
	r.cache.init(c.now)
	r.budget.init(c.now)
	return r
}

// Close ends every service and waits for that. Closing twice is no error.
func (r *Resolver) Close() {
	r.mu.Lock()
	r.closed = true
	closers := r.closers
	r.closers = nil
	r.mu.Unlock()
	r.end()
	for _, c := range closers {
		_ = c()
	}
	r.serving.Wait()
}

// judged is the name that a query is judged by. A client appends the search domains to a short name and asks for the
// whole: a rule for the short one means that too.
func (r *Resolver) judged(full string) (string, policy.Decision) {
	rules := r.Live.Policy()
	name, d := full, rules.LookUp(full)
	for _, domain := range r.System.Search {
		short, found := strings.CutSuffix(full, "."+domain)
		if d.Allow || !found || short == "" {
			continue
		}
		if ds := rules.LookUp(short); ds.Allow || d.Rule.IsZero() {
			name, d = short, ds // a refusal names what the program most likely said
		}
	}
	return name, d
}

func (r *Resolver) denied(d policy.Decision) {
	if r.Denied != nil {
		r.Denied(d)
	}
}

// affordable reports whether a name may go out: below a domain, what names are made of is the program's choice.
func (r *Resolver) affordable(name string) bool {
	d, ok := r.pay(name)
	if !ok {
		r.denied(d)
	}
	return ok
}

func (r *Resolver) pay(name string) (refusal policy.Decision, ok bool) {
	domain := r.Live.Policy().BelowDomain(name)
	if domain == "" {
		return refusal, true
	}
	ok, first := r.budget.spend(domain, name)
	if first && r.Note != nil {
		r.Note(overBudget(domain))
	}
	if !ok {
		refusal = r.Live.Policy().RefuseLookUp(name, overBudget(domain))
	}
	return refusal, ok
}

// found is what a look-up came to.
type found struct {
	addrs   []netip.Addr
	missing bool // there is no such name, or it has no such address
	failed  bool // nobody could tell
	until   time.Time
}

// lookUp gives the addresses of one family of a name whose look-up is allowed, as the sandbox may see them. absolute is
// what is asked, judged what the rules speak of. It waits, at most lookupTime.
func (r *Resolver) lookUp(ctx context.Context, absolute, judged string, six bool) found {
	f, ok := loopbackOf(absolute, six)
	if !ok {
		f = r.cache.get(ctx, key{absolute, six}, func() found {
			ctx, cancel := context.WithTimeout(r.ctx, lookupTime) // not the asker's: others may wait for the same
			defer cancel()
			select {
			case r.slots <- struct{}{}:
				defer func() { <-r.slots }()
			case <-ctx.Done():
				return found{failed: true}
			}
			return ask(ctx, r.Upstream, absolute, six)
		})
	}
	return r.given(judged, f)
}

// given makes the addresses that were found reachable, and takes out those that the sandbox may not see.
func (r *Resolver) given(judged string, f found) found {
	kept, refused := r.Live.Given(judged, f.addrs)
	for _, d := range refused {
		r.denied(d)
	}
	f.addrs = kept
	return f
}

// loopbackOf answers localhost and what is below it, which is no server's to answer (RFC 6761).
func loopbackOf(name string, six bool) (found, bool) {
	switch {
	case name != "localhost" && !strings.HasSuffix(name, ".localhost"):
		return found{}, false
	case six:
		return found{addrs: []netip.Addr{netip.IPv6Loopback()}}, true
	}
	return found{addrs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}}, true
}

// Expect looks an allowed name up in the background: the sandbox is about to do so by a way that may not lead here, and
// will then connect to what it found. [Resolver.Settle] waits for it. ok is false where the name is one too many below its
// domain; then it must not be looked up at all, and the refusal says why.
func (r *Resolver) Expect(name string) (refusal policy.Decision, ok bool) {
	name = canonical(name)
	if rules := r.Live.Policy(); !rules.SpeaksOf(name) {
		return refusal, true // what may be reached does not depend on it
	}
	if refusal, ok = r.pay(name); ok {
		r.expect(name)
	}
	return refusal, ok
}

func (r *Resolver) expect(name string) {
	absolute := []string{name}
	for _, domain := range r.System.Search {
		if !strings.Contains(name, ".") {
			absolute = append(absolute, name+"."+domain)
		}
	}
	done := make(chan struct{})
	r.mu.Lock()
	if r.closed || len(r.pending) >= maxPending {
		r.mu.Unlock()
		return
	}
	r.pending[done] = true
	r.serving.Add(1)
	r.mu.Unlock()
	go func() {
		defer r.serving.Done()
		defer func() {
			r.mu.Lock()
			delete(r.pending, done)
			r.mu.Unlock()
			close(done)
		}()
		defer r.recovered()
		ctx, cancel := context.WithTimeout(r.ctx, lookupTime)
		defer cancel()
		var all sync.WaitGroup
		for _, full := range absolute {
			for _, six := range []bool{false, true} {
				all.Go(func() { defer r.recovered(); r.lookUp(ctx, full, name, six) })
			}
		}
		all.Wait()
	}()
}

// Settle waits until what [Resolver.Expect] began so far is known, or too long has gone by. It reports whether it waited.
func (r *Resolver) Settle() bool {
	r.mu.Lock()
	var open []chan struct{}
	for done := range r.pending {
		open = append(open, done)
	}
	r.mu.Unlock()
	if len(open) == 0 {
		return false
	}
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for _, done := range open {
		select {
		case <-done:
		case <-timer.C:
			return true
		}
	}
	return true
}

func (r *Resolver) recovered() {
	if v := recover(); v != nil && r.Note != nil {
		r.Note("the resolver failed on a query of the sandbox, which gets no answer")
	}
}

// canonical is a name as the rules compare it: lower case, no dot at its end.
func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// searchDomains are those of a resolv.conf in their canonical form, each once, the longest first: the short name that is
// left over is then the one that a client had.
func searchDomains(domains []string) []string {
	var out []string
	for _, d := range domains {
		if d = canonical(d); d != "" && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}
