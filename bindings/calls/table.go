// Package calls keeps the connections of one sandbox apart: each restart brings a new child and a new connection, whose calls are
// numbered from the beginning again, while calls of the old one may still be waited for.
//
// A call's id is the number of its connection and the connection's own id in one integer, so that an answer never reaches a
// call of another child. Which events there are and when a thread waits is core/transport's matter.
package calls

import (
	"fmt"
	"sync"
	"time"

	"github.com/pysandboxes/pysandboxes/core/transport"
)

// Conn is what a call needs of a connection; *transport.Conn is one.
type Conn interface {
	Begin(payload []byte) (uint64, error)
	BeginAsync(payload []byte) (uint64, error)
	Next(id uint64, wait time.Duration) (transport.Event, error)
	Poll(id uint64) (transport.Event, bool, error)
	Pump() error
	Cancel(id uint64) error
	FDs() (socket, wake int)
}

// An id has the connection's number above this many bits. A connection could make a million calls a second for twelve days.
const idBits = 40

// maxGeneration keeps ids within a positive int64.
const maxGeneration = 1<<(63-idBits) - 1

// The kinds of event that end a call (docs/implementation.md).
const (
	kindResult    = 14
	kindException = 15
	kindCancelled = 16
)

// Table holds the connections of one sandbox. Its methods may be called from any goroutine.
type Table struct {
	mu         sync.Mutex
	current    *generation
	generation map[uint64]*generation
	begun      uint64
}

// generation is one connection and the calls on it that are not over.
type generation struct {
	number  uint64
	conn    Conn
	pending map[uint64]struct{}
}

// Stats counts calls.
type Stats struct {
	Begun   uint64 `json:"begun"`
	Pending int    `json:"pending"`
}

// Use makes conn the connection of new calls, under a number greater than that of all before it. Connections without a call
// that is waited for are forgotten.
func (t *Table) Use(number uint64, conn Conn) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if number > maxGeneration {
		return fmt.Errorf("the sandbox was restarted %d times, which is the most there can be; open a new one", number)
	}
	if t.current != nil && number <= t.current.number {
		return nil
	}
	if t.generation == nil {
		t.generation = map[uint64]*generation{}
	}
	for old, g := range t.generation {
		if len(g.pending) == 0 {
			delete(t.generation, old)
		}
	}
	t.current = &generation{number: number, conn: conn, pending: map[uint64]struct{}{}}
	t.generation[number] = t.current
	return nil
}

// Begin sends a call on the current connection. payload is not kept. loop says that an event loop will wait for it.
func (t *Table) Begin(payload []byte, loop bool) (int64, error) {
	t.mu.Lock()
	g := t.current
	t.mu.Unlock()
	if g == nil {
		return 0, errNotOpen
	}
	begin := g.conn.Begin
	if loop {
		begin = g.conn.BeginAsync
	}
	id, err := begin(payload)
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun++
	g.pending[id] = struct{}{}
	t.generation[g.number] = g // it may have been forgotten since
	return int64(g.number<<idBits | id&(1<<idBits-1)), nil
}

// Next waits for the next event of a call on the calling thread; wait below zero is for ever.
func (t *Table) Next(id int64, wait time.Duration) (transport.Event, error) {
	g, inner, err := t.find(id)
	if err != nil {
		return transport.Event{}, err
	}
	event, err := g.conn.Next(inner, wait)
	if err == nil {
		t.passed(g, inner, event)
	}
	return event, err
}

// Poll gives the next event of a call, if there is one.
func (t *Table) Poll(id int64) (transport.Event, bool, error) {
	g, inner, err := t.find(id)
	if err != nil {
		return transport.Event{}, false, err
	}
	event, ok, err := g.conn.Poll(inner)
	if err == nil && ok {
		t.passed(g, inner, event)
	}
	return event, ok, err
}

// Cancel asks the child to end a call; its last event says that it did.
func (t *Table) Cancel(id int64) error {
	g, inner, err := t.find(id)
	if err != nil {
		return err
	}
	return g.conn.Cancel(inner)
}

// Pump reads what the current connection's socket holds.
func (t *Table) Pump() error {
	g, err := t.now()
	if err != nil {
		return err
	}
	return g.conn.Pump()
}

// FDs gives the current connection's socket, and the descriptor that becomes readable when another thread read an event of a call
// that an event loop waits for.
func (t *Table) FDs() (socket, wake int, err error) {
	g, err := t.now()
	if err != nil {
		return -1, -1, err
	}
	socket, wake = g.conn.FDs()
	return socket, wake, nil
}

// Stats counts the calls of all connections.
func (t *Table) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	stats := Stats{Begun: t.begun}
	for _, g := range t.generation {
		stats.Pending += len(g.pending)
	}
	return stats
}

var errNotOpen = fmt.Errorf("this sandbox has no connection; it was not opened")

func (t *Table) now() (*generation, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return nil, errNotOpen
	}
	return t.current, nil
}

func (t *Table) find(id int64) (*generation, uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.generation[uint64(id)>>idBits]
	if id < 0 || g == nil {
		return nil, 0, fmt.Errorf("there is no call %d on this sandbox", id)
	}
	return g, uint64(id) & (1<<idBits - 1), nil
}

// passed notes that event went out.
func (t *Table) passed(g *generation, id uint64, event transport.Event) {
	switch event.Kind {
	case kindResult, kindException, kindCancelled:
		t.mu.Lock()
		delete(g.pending, id)
		t.mu.Unlock()
	}
}
