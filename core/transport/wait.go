package transport

import (
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/unpickle"
)

// Next blocks until the call's next event has come, at most wait (negative: without end; zero: not at all), and returns it.
// The errors ErrInterrupted and ErrTimeout leave the call as it is; *unpickle.RefusedError, *unpickle.MalformedError, *LimitError
// and *DeadError end it.
func (c *Conn) Next(id uint64, wait time.Duration) (Event, error) {
	return c.next(id, wait, nil, false)
}

// NextInto is Next for a thread that makes the memory for large parts of a result: a KindBuffer event asks for it, and into is the memory
// that was made for the last of these events, nil before the first. It is written to by this thread, before NextInto returns, and by
// Buffer.CopyTo.
func (c *Conn) NextInto(id uint64, wait time.Duration, into []byte) (Event, error) {
	return c.next(id, wait, into, true)
}

func (c *Conn) next(id uint64, wait time.Duration, into []byte, straight bool) (Event, error) {
	if c.forked() {
		return Event{}, ErrForked
	}
	c.mu.Lock()
	k := c.calls[id]
	if k == nil || k.dropped {
		c.mu.Unlock()
		return Event{}, ErrNoCall
	}
	if k.waiter.waiting {
		c.mu.Unlock()
		return Event{}, ErrBusy
	}
	if k.straight = straight; k.filling != nil && k.filling.Size == int64(len(into)) {
		k.filling.into = into
	}
	err := c.waitFor(&k.waiter, func() bool { return len(k.events) > 0 || k.dropped }, wait)
	if k.filling != nil {
		k.filling.into = nil
	}
	var e Event
	switch {
	case k.dropped:
		err = ErrNoCall // cancelled by another thread meanwhile
	case err == nil:
		e, _ = c.pop(k)
		if c.in.paused && e.Kind != KindBuffer {
			c.ringAll() // what follows lies in the inbox, and this thread may be long at what it was given
		}
	case err == c.dead:
		delete(c.calls, id)
	}
	c.unlock()
	if err != nil {
		return Event{}, err
	}
	return c.checked(k, e)
}

// Ready blocks until the child has said READY, at most wait, through signals: who wants to look for them waits in short steps.
func (c *Conn) Ready(wait time.Duration) (Ready, error) {
	if c.forked() {
		return Ready{}, ErrForked
	}
	c.mu.Lock()
	defer c.unlock()
	if c.awaiting.waiting {
		return Ready{}, ErrBusy
	}
	for start := time.Now(); ; {
		left := wait
		if wait >= 0 {
			left = max(0, wait-time.Since(start))
		}
		switch err := c.waitFor(&c.awaiting, func() bool { return c.ready != nil }, left); err {
		case nil:
			return *c.ready, nil
		case ErrInterrupted:
		default:
			return Ready{}, err
		}
	}
}

// What a result of mode objects says in place of a descriptor: how the application is to load it (pysandboxes/_objects.py).
var guarded, unguarded = []byte("objects"), []byte("objects-unguarded")

// checked looks at what the child sent before it is given out. No lock is held: a great result delays nobody else.
func (c *Conn) checked(k *call, e Event) (Event, error) {
	switch e.Kind {
	case KindResult:
		if k.tooBig {
			return Event{}, &LimitError{Size: k.size, Limit: c.opts.MaxResult, Rule: c.opts.ResultRule}
		}
		limits := unpickle.Limits{Bytes: c.opts.MaxResult}
		if c.opts.Mode == unpickle.Objects {
			e.Descriptor = guarded
			if !c.opts.Guard {
				e.Descriptor = unguarded
			}
		}
		return e, unpickle.ValidateWith(e.Data, besides(e.Buffers), c.opts.Mode, c.opts.Guard, limits)
	case KindException:
		descriptor, err := exceptionJSON(e.Descriptor, c.opts.Vouch, c.opts.Bound)
		if err != nil {
			return Event{}, c.broken("an exception's descriptor: %v", err)
		}
		e.Descriptor = descriptor
		if e.Rich != nil && unpickle.ValidateException(e.Rich, unpickle.Limits{}) != nil {
			e.Rich = nil // the descriptor says the rest
		}
	case KindLog:
		record, err := recordJSON(e.Data)
		if err != nil {
			return Event{}, c.broken("a log record: %v", err)
		}
		e.Data, e.Descriptor = nil, record
	}
	return e, nil
}

// broken is protocol for one who does not hold the lock.
func (c *Conn) broken(format string, args ...any) error {
	c.mu.Lock()
	defer c.unlock()
	c.protocol(format, args...)
	return c.dead
}

// waitFor reads or sleeps until have says true. The lock is held on entry, on return, and while have runs, which changes nothing.
func (c *Conn) waitFor(w *waiter, have func() bool, wait time.Duration) error {
	var deadline time.Time
	if wait >= 0 {
		deadline = time.Now().Add(wait)
	}
	w.waiting = true
	c.users++
	defer func() {
		w.waiting = false
		c.release(1)
		c.handOn()
	}()
	for {
		if have() {
			return nil
		}
		if c.dead != nil {
			return c.dead
		}
		left := slice
		if wait >= 0 {
			if left = time.Until(deadline); left <= 0 {
				return ErrTimeout
			}
			left = min(left, slice)
		}
		var err error
		switch {
		case !c.reading && !c.ended:
			err = c.lead(w, have, deadline, left)
		case c.unsent() && !c.ended:
			err = c.sendOn(left)
		default:
			err = c.follow(w, left)
		}
		if err != nil && !have() && c.dead == nil {
			return err
		}
	}
}

// lead holds the reader's role until have says true, the connection ends, or the thread has to look up: for a signal, at the end
// of its time, after a slice.
func (c *Conn) lead(w *waiter, have func() bool, deadline time.Time, left time.Duration) error {
	c.reading, c.claimed, c.leader = true, false, w
	defer func() {
		c.giveBack()
		c.reading, c.leader = false, nil
	}()
	if c.resume(); c.dead != nil || have() {
		return nil
	}
	for until := time.Now().Add(slice); ; {
		pending := c.unsent()
		c.unlock()
		err := c.read(pending, left)
		c.mu.Lock()
		if pending {
			c.flush()
		}
		if c.dead != nil || c.ended || have() {
			return nil
		}
		now := time.Now()
		switch {
		case !deadline.IsZero() && !now.Before(deadline):
			return ErrTimeout
		case errors.Is(err, unix.EINTR) || !now.Before(until):
			return ErrInterrupted
		}
		if !deadline.IsZero() {
			left = min(deadline.Sub(now), slice)
		}
	}
}

// sendOn waits until the socket takes more of what is queued, and sends it.
func (c *Conn) sendOn(left time.Duration) error {
	c.unlock()
	err := await(c.fd, unix.POLLOUT, 0, left)
	c.mu.Lock()
	c.flush()
	if errors.Is(err, unix.EINTR) {
		return ErrInterrupted
	}
	return nil
}

// follow sleeps until the thread is woken: for an event of its own, or to take the reader's role.
func (c *Conn) follow(w *waiter, left time.Duration) error {
	atomic.StoreUint32(&w.word, 0)
	c.followers = append(c.followers, w)
	c.unlock()
	err := sleep(&w.word, left)
	c.mu.Lock()
	for i, f := range c.followers {
		if f == w {
			c.followers = append(c.followers[:i], c.followers[i+1:]...)
			break
		}
	}
	if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ETIMEDOUT) && left == slice {
		return ErrInterrupted
	}
	return nil
}

// handOn wakes a follower to take the reader's role when nobody has it. When the process is known to be gone, what is left to
// read is read here and now, for which the lock is given back.
func (c *Conn) handOn() {
	switch {
	case c.reading || c.ended || c.dead != nil:
	case c.gone != nil:
		if c.readAll(); c.dead == nil {
			c.fail(c.gone)
		}
	case len(c.followers) > 0:
		c.wakes = append(c.wakes, c.followers[0])
	}
}
