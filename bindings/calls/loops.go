package calls

import (
	"fmt"

	"github.com/pysandboxes/pysandboxes/core/transport"
)

// loop is one event loop's face of one connection. It outlives the connection's being the current one: the calls that it has
// there are still answered there.
type loop struct {
	of   *generation
	face *transport.Loop
}

// OpenLoop makes a face of the current connection for an event loop: its number, and the descriptor to watch.
func (t *Table) OpenLoop() (number int64, fd int, err error) {
	g, err := t.now()
	if err != nil {
		return 0, -1, err
	}
	face, err := g.conn.NewLoop()
	if err != nil {
		return 0, -1, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loops == nil {
		t.loops = map[int64]*loop{}
	}
	t.lastLoop++
	t.loops[t.lastLoop] = &loop{g, face}
	return t.lastLoop, face.FD(), nil
}

// CloseLoop gives up what calls the loop has, and its descriptor.
func (t *Table) CloseLoop(number int64) error {
	l, err := t.loop(number)
	if err != nil {
		return err
	}
	t.mu.Lock()
	delete(t.loops, number)
	t.mu.Unlock()
	for _, id := range l.face.Close() {
		t.over(l.of, id)
	}
	return nil
}

// BeginOn sends a call for an event loop, and with look looks for a moment whether its answer comes at once (transport.Loop).
func (t *Table) BeginOn(number int64, payload []byte, look bool) (int64, transport.Event, bool, error) {
	l, err := t.loop(number)
	if err != nil {
		return 0, transport.Event{}, false, err
	}
	id, event, ok, err := l.face.Begin(payload, look)
	if id == 0 {
		return 0, event, false, err
	}
	t.begin(l.of, id)
	t.taken(l.of, id, event, ok, err)
	return l.of.outer(id), event, ok, err
}

// Take gives the next event of any call of the loop. With pump it receives what has come first; without it gives what was left.
// With an err and an id that call is over; with an err and no id the connection is.
func (t *Table) Take(number int64, pump bool) (int64, transport.Event, bool, error) {
	l, err := t.loop(number)
	if err == nil && pump {
		err = l.face.Pump()
	}
	if err != nil {
		return 0, transport.Event{}, false, err
	}
	id, event, ok, err := l.face.Take()
	if id == 0 {
		return 0, event, false, err
	}
	t.taken(l.of, id, event, ok, err)
	return l.of.outer(id), event, ok, err
}

// taken forgets a call whose last event was given out.
func (t *Table) taken(g *generation, id uint64, event transport.Event, ok bool, err error) {
	if err != nil || ok && event.Last() {
		t.over(g, id)
	}
}

func (t *Table) loop(number int64) (*loop, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.loops[number]
	if l == nil {
		return nil, fmt.Errorf("there is no event loop %d on this sandbox", number)
	}
	return l, nil
}
