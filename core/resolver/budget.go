package resolver

import (
	"fmt"
	"sync"
	"time"
)

// budget bounds how much new text a sandbox can send out as names below a domain: each name that was not asked before
// costs its letters, and a little for being one. What a domain's servers are asked cannot be closed where the profile
// allows its names; it is made narrow, and seen.
type budget struct {
	now func() time.Time

	mu      sync.Mutex
	domains map[string]*account
	known   map[string]bool
}

type account struct {
	left  int
	since time.Time // when left was last filled up
	told  bool      // that it is used up, in this minute
}

const (
	budgetBytes = 1024 // of names below one domain
	budgetTime  = time.Minute
	nameCost    = 8 // of a name besides its letters: which of many names is asked says something too
	maxKnown    = 4096
)

func overBudget(domain string) string {
	return fmt.Sprintf("more than %d bytes of new names below %s were looked up within a minute, which is how data leaves by DNS; a rule for the name itself has no such bound.", budgetBytes, domain)
}

func (b *budget) init(now func() time.Time) {
	b.now, b.domains, b.known = now, map[string]*account{}, map[string]bool{}
}

// spend pays for a name below a domain; first reports that the domain's budget is used up and nobody was told yet.
func (b *budget) spend(domain, name string) (ok, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[name] {
		return true, false
	}
	a := b.domains[domain]
	if now := b.now(); a == nil || now.Sub(a.since) >= budgetTime {
		a = &account{left: budgetBytes, since: now}
		b.domains[domain] = a
	}
	cost := len(name) - len(domain) + nameCost
	if cost > a.left {
		first, a.told = !a.told, true
		return false, first
	}
	a.left -= cost
	if len(b.known) >= maxKnown {
		clear(b.known)
	}
	b.known[name] = true
	return true, false
}
