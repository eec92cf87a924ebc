package resolver

import (
	"context"
	"sync"
	"time"
)

// cache keeps what look-ups came to, and has those who ask for the same at once wait for one look-up.
type cache struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[key]*entry
}

type key struct {
	name string
	six  bool
}

type entry struct {
	done chan struct{} // closed when it is known
	found
}

const maxEntries = 4096

func (c *cache) init(now func() time.Time) { c.now, c.entries = now, map[key]*entry{} }

// get returns what is known of a key; else it asks, once for all who want it. An asker that gives up does not end that.
func (c *cache) get(ctx context.Context, k key, ask func() found) found {
	c.mu.Lock()
	e := c.entries[k]
	if e != nil && e.known() && !c.now().Before(e.until) {
		e = nil
	}
	if e == nil {
		c.room()
		e = &entry{done: make(chan struct{}), found: found{failed: true}} // what a look-up that panics came to
		c.entries[k] = e
		c.mu.Unlock()
		go c.fill(e, ask)
	} else {
		c.mu.Unlock()
	}
	select {
	case <-e.done:
		return e.found
	case <-ctx.Done():
		return found{failed: true}
	}
}

func (c *cache) fill(e *entry, ask func() found) {
	defer close(e.done)
	defer func() {
		_ = recover() // an upstream that panics has failed
		keep := keepFound
		switch {
		case e.failed:
			keep = keepFailed
		case e.missing:
			keep = keepMissing
		}
		e.until = c.now().Add(keep)
	}()
	e.found = ask()
}

// peek returns what is known of a key, without asking.
func (c *cache) peek(k key) (found, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[k]
	if e == nil || !e.known() || !c.now().Before(e.until) {
		return found{}, false
	}
	return e.found, true
}

func (e *entry) known() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// room makes room for one more: what is over goes, and where nothing is, everything.
func (c *cache) room() {
	if len(c.entries) < maxEntries {
		return
	}
	for k, e := range c.entries {
		if e.known() && !c.now().Before(e.until) {
			delete(c.entries, k)
		}
	}
	if len(c.entries) >= maxEntries {
		clear(c.entries)
	}
}
