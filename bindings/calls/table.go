// Package calls keeps the connections of one sandbox apart: each restart brings a new child and a new connection, whose calls are
// numbered from the beginning again, while calls of the old one may still be waited for.
//
// A call's id is the number of its connection and the connection's own id in one integer, so that an answer never reaches a
// call of another child. Which events there are and when a thread waits is core/transport's matter.
package calls

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pysandboxes/pysandboxes/core/transport"
)

// Conn is what a call needs of a connection; *transport.Conn is one.
type Conn interface {
	Begin(payload []byte) (uint64, error)
	Next(id uint64, wait time.Duration) (transport.Event, error)
	NextInto(id uint64, wait time.Duration, into []byte) (transport.Event, error)
	Cancel(id uint64) error
	NewLoop() (*transport.Loop, error)
}

// An id has the connection's number above this many bits. A connection could make a million calls a second for twelve days.
const idBits = 40

// maxGeneration keeps ids within a positive int64.
const maxGeneration = 1<<(63-idBits) - 1

// Table holds the connections of one sandbox. Its methods may be called from any goroutine.
type Table struct {
	mu         sync.Mutex
	current    *generation
	generation map[uint64]*generation
	begun      uint64
	loops      map[int64]*loop
	lastLoop   int64
}

// generation is one connection and the calls on it that are not over.
type generation struct {
	number  uint64
	conn    Conn
	pending map[uint64]struct{}
}

// Counts tell how many calls there were.
type Counts struct {
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

// Begin sends a call on the current connection. payload is not kept.
func (t *Table) Begin(payload []byte) (int64, error) {
	g, err := t.now()
	if err != nil {
		return 0, err
	}
	id, err := g.conn.Begin(payload)
	if err != nil {
		return 0, err
	}
	t.begin(g, id)
	return g.outer(id), nil
}

// begin notes a call.
func (t *Table) begin(g *generation, id uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun++
	g.pending[id] = struct{}{}
	t.generation[g.number] = g // it may have been forgotten since
}

// outer is the number by which a call of this connection is known outside.
func (g *generation) outer(id uint64) int64 { return int64(g.number<<idBits | id&(1<<idBits-1)) }

// Next waits for the next event of a call on the calling thread; wait below zero is for ever.
func (t *Table) Next(id int64, wait time.Duration) (transport.Event, error) {
	return t.next(id, func(conn Conn, inner uint64) (transport.Event, error) { return conn.Next(inner, wait) })
}

// NextInto is Next for a thread that makes the memory for large parts of a result (transport.Conn).
func (t *Table) NextInto(id int64, wait time.Duration, into []byte) (transport.Event, error) {
	return t.next(id, func(conn Conn, inner uint64) (transport.Event, error) { return conn.NextInto(inner, wait, into) })
}

func (t *Table) next(id int64, take func(Conn, uint64) (transport.Event, error)) (transport.Event, error) {
	g, inner, err := t.find(id)
	if err != nil {
		return transport.Event{}, err
	}
	event, err := take(g.conn, inner)
	switch {
	case err == nil && !event.Last():
	case errors.Is(err, transport.ErrInterrupted), errors.Is(err, transport.ErrTimeout), errors.Is(err, transport.ErrBusy):
	default: // the last event, a result that is refused, a dead child
		t.over(g, inner)
	}
	return event, err
}

// Cancel gives a call up: the child is told, and its id is not known any more.
func (t *Table) Cancel(id int64) error {
	g, inner, err := t.find(id)
	if err != nil {
		return err
	}
	t.over(g, inner)
	return g.conn.Cancel(inner)
}

// Counts counts the calls of all connections.
func (t *Table) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	counts := Counts{Begun: t.begun}
	for _, g := range t.generation {
		counts.Pending += len(g.pending)
	}
	return counts
}

var errNotOpen = errors.New("this sandbox has no connection; it was not started")

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

// over forgets a call.
func (t *Table) over(g *generation, id uint64) {
	t.mu.Lock()
	delete(g.pending, id)
	t.mu.Unlock()
}
