package transport

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Loop is the face of a connection for one event loop, on whose thread nothing may block:
//
//	l, err := c.NewLoop()                  loop.add_reader(l.FD())
//	id, ev, ok, err := l.Begin(payload, look)
//	l.Pump(); id, ev, ok, err := l.Take()  when it is readable, and Take until not ok
//
// Its descriptor is an epoll instance of its own, which holds an eventfd and, while there is something to do at it, the socket. So the
// event loop watches one descriptor from the first call to the last, whatever the connection makes of the socket; it is not woken by the
// answers to calls of threads that read for themselves, nor by those to other loops' calls while it waits for none. What
// another thread receives for it comes with a ring of the eventfd.
type Loop struct {
	c     *Conn
	watch int // epoll
	bell  int // eventfd

	// The connection's lock guards these.
	armed   uint32   // what the socket is watched for
	rung    bool     // the bell is readable
	closed  bool     // the descriptors are not ours any more
	pending int      // calls whose last event has not come
	fresh   []uint64 // calls that have events to take, in the order in which they got them
}

const (
	// pumpRounds bounds what one Pump receives: the loop has other things to do.
	pumpRounds = 64
	// lookMost bounds how long Begin holds the event loop up, where output comes before the answer.
	lookMost = spinTime + spinTime/2
)

// NewLoop makes a face for an event loop; to be closed when that loop or the connection is over.
func (c *Conn) NewLoop() (*Loop, error) {
	if c.forked() {
		return nil, ErrForked
	}
	watch, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("transport: epoll: %w", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil {
		if err = control(watch, unix.EPOLL_CTL_ADD, bell, unix.EPOLLIN); err != nil {
			_ = unix.Close(bell)
		}
	}
	if err != nil {
		_ = unix.Close(watch)
		return nil, fmt.Errorf("transport: eventfd: %w", err)
	}
	l := &Loop{c: c, watch: watch, bell: bell}
	c.mu.Lock()
	defer c.unlock()
	c.loops = append(c.loops, l)
	if c.dead != nil {
		l.ring()
	}
	return l, nil
}

// FD becomes readable when Pump has something to do. It stays the loop's own, and is valid until Close.
func (l *Loop) FD() int { return l.watch }

// Close gives the loop's calls up, whose numbers it returns, and closes its descriptors.
func (l *Loop) Close() []uint64 {
	c := l.c
	if c.forked() {
		return nil // the calls are the parent's, and so is what the epoll instance holds
	}
	c.mu.Lock()
	defer c.unlock()
	if l.closed {
		return nil
	}
	var given []uint64
	for id, k := range c.calls {
		if k.loop == l && !k.dropped {
			given = append(given, id)
			c.cancel(k)
		}
	}
	c.loops = slices.DeleteFunc(c.loops, func(other *Loop) bool { return other == l })
	l.closed = true
	_ = unix.Close(l.watch)
	_ = unix.Close(l.bell)
	return given
}

// Begin sends a call. With look it also looks for a moment whether the answer comes at once, if nothing else is under way: the
// event loop is held up for some ten microseconds, and spared a trip through its selector, which takes longer. ok says that the
// first event is there; an err together with an id is that call's end. What the socket does not take at once waits for Pump.
func (l *Loop) Begin(payload []byte, look bool) (id uint64, e Event, ok bool, err error) {
	id, err = l.c.begin(payload, l)
	if err != nil || !look {
		return id, Event{}, false, err
	}
	k, e, ok := l.look(id)
	if ok {
		e, err = l.c.checked(k, e)
	}
	return id, e, ok && err == nil, err
}

// look reads for a moment, until the call has an event.
func (l *Loop) look(id uint64) (*call, Event, bool) {
	c := l.c
	c.mu.Lock()
	defer c.unlock()
	k := c.calls[id]
	if k == nil || c.dead != nil || c.ended || c.reading || c.claimed || l.pending != 1 || c.unsent() {
		return nil, Event{}, false
	}
	c.pump(l)
	for until := time.Now().Add(lookMost); len(k.events) == 0; {
		c.unlock()
		n, err := c.spin.receive(c.fd, c.in.space())
		c.took(n, err)
		c.mu.Lock()
		if err != nil || n == 0 || c.dead != nil || time.Now().After(until) {
			break
		}
	}
	c.pumped()
	e, ok := c.pop(k)
	if ok && len(k.events) == 0 {
		l.fresh = slices.DeleteFunc(l.fresh, func(other uint64) bool { return other == id })
	}
	if len(l.fresh) > 0 {
		l.ring() // nobody is about to take these
	}
	return k, e, ok
}

// Pump sends and receives what can be had without waiting. It leaves the socket to a thread that reads already, or that has
// just begun a call and is about to.
func (l *Loop) Pump() error {
	c := l.c
	if c.forked() {
		return ErrForked
	}
	c.mu.Lock()
	defer c.unlock()
	if l.rung && !l.closed {
		drain(l.bell)
		l.rung = false
	}
	if c.dead != nil {
		return nil // Take tells
	}
	c.flush()
	if c.ended || c.reading {
		return nil
	}
	if c.claimed {
		c.claimed = false
		return nil
	}
	c.pump(l)
	for range pumpRounds {
		c.unlock()
		space := c.in.space()
		n, err := receive(c.fd, space, false)
		c.took(n, err)
		c.mu.Lock()
		if err != nil || n < len(space) || c.dead != nil {
			break // what comes from now on makes the descriptor readable again
		}
	}
	c.pumped()
	return nil
}

// pump takes the reader's role for a loop; pumped gives it back. The lock is held.
func (c *Conn) pump(l *Loop) {
	c.reading, c.pumping = true, l
	c.users++
	c.resume()
}

func (c *Conn) pumped() {
	c.reading, c.pumping = false, nil
	c.release(1)
	c.handOn()
}

// Take returns the next event of any call of this loop, in the order in which the calls got theirs. With an err and an id that call is over;
// with an err and no id the connection is, and every call knows. A dead connection gives each call its error once.
func (l *Loop) Take() (id uint64, e Event, ok bool, err error) {
	c := l.c
	if c.forked() {
		return 0, Event{}, false, ErrForked
	}
	c.mu.Lock()
	for len(l.fresh) > 0 {
		id := l.fresh[0]
		k := c.calls[id]
		if k != nil && !k.dropped {
			e, ok := c.pop(k)
			if ok {
				if len(k.events) == 0 {
					l.fresh = l.fresh[1:]
				}
				c.unlock()
				e, err := c.checked(k, e)
				return id, e, err == nil, err
			}
			if c.dead != nil {
				delete(c.calls, id)
				l.fresh = l.fresh[1:]
				err := c.dead
				c.unlock()
				return id, Event{}, false, err
			}
		}
		l.fresh = l.fresh[1:]
	}
	l.fresh = nil // with the memory before its start
	err = c.dead
	c.unlock()
	return 0, Event{}, false, err
}

// ring makes the descriptor readable. The lock is held.
func (l *Loop) ring() {
	if !l.rung && !l.closed {
		l.rung = true
		ring(l.bell)
	}
}

// arm brings what the socket is watched for in line with what there is to do at it. The lock is held.
func (l *Loop) arm() {
	c := l.c
	var want uint32
	if c.dead == nil && !c.ended && !c.closed {
		if c.leader == nil {
			want = l.armed & unix.EPOLLIN // as it is: a call costs no system call for this
			if l.pending > 0 && len(c.followers) == 0 {
				want = unix.EPOLLIN
			}
		}
		if c.unsent() {
			want |= unix.EPOLLOUT
		}
	}
	if want == l.armed || l.closed || c.fd < 0 {
		return
	}
	op := unix.EPOLL_CTL_MOD
	switch {
	case l.armed == 0:
		op = unix.EPOLL_CTL_ADD
	case want == 0: // not MOD to nothing: the end of the connection would be told all the same
		op = unix.EPOLL_CTL_DEL
	}
	if err := control(l.watch, op, c.fd, want); err != nil {
		c.fail(fmt.Errorf("transport: watching the call socket: %w", err))
		return
	}
	l.armed = want
}

func control(epoll, op, fd int, events uint32) error {
	return unix.EpollCtl(epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)})
}
