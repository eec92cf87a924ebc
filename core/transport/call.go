package transport

import "sync/atomic"

// Event is one step of a call's answer.
type Event struct {
	Kind       int    // KindStdout, KindStderr, KindLog, KindResult, KindException, KindCancelled; for NextInto KindBuffer
	Data       []byte // output; RESULT: the pickle, accepted
	Rich       []byte // EXCEPTION: the pickle, accepted; nil where there is none that may be loaded
	Descriptor []byte // EXCEPTION, LOG: JSON; RESULT in mode objects: whether it is guarded

	Buffers []*Buffer // RESULT: those that belong to the pickle, in order; BUFFER: the one to make memory for
	Index   int       // BUFFER: its place among them

	native bool // output that did not come by the socket
}

// Last reports whether it is the call's last event.
func (e Event) Last() bool {
	return e.Kind == KindResult || e.Kind == KindException || e.Kind == KindCancelled
}

// call is the state of one id. The connection's lock guards it, but for result: while finished is false that belongs to the
// thread that holds the reader's role.
type call struct {
	id       uint64
	loop     *Loop // whose events a loop takes
	waiter   waiter
	events   []Event
	queued   int64  // cost of the output in events
	native   int64  // cost of the native output in events
	taken    int64  // cost of the output that was taken, and the child does not know it yet
	result   []byte // of the CHUNKs so far
	buffers  []*Buffer
	filling  *Buffer // the last one that NextInto has told of
	missing  int64   // bytes of the open buffer that have not come
	straight bool    // who waits makes memory for buffers
	held     int64   // bytes that count in the connection's
	size     int64   // of the result so far, kept or not
	tooBig   bool    // past MaxResult: counted on, not kept
	finished bool    // its last event has come
	dropped  bool    // cancelled: whatever comes is thrown away
}

// waiter is a thread that sleeps until it is woken.
type waiter struct {
	word    uint32 // futex: 1 when woken
	waiting bool   // a thread is in Next or Ready for it
}

func (w *waiter) wake() {
	atomic.StoreUint32(&w.word, 1)
	rouse(&w.word)
}

// wakeLater has w woken when the lock is given back.
func (c *Conn) wakeLater(w *waiter) {
	if w.waiting {
		c.wakes = append(c.wakes, w)
	}
}

// unlock gives the lock back and does what may only be done without it: wake threads.
func (c *Conn) unlock() {
	c.armAll()
	if len(c.wakes) == 0 {
		c.mu.Unlock()
		return
	}
	var few [4]*waiter
	wakes := append(few[:0], c.wakes...)
	c.wakes = c.wakes[:0]
	c.mu.Unlock()
	for _, w := range wakes {
		w.wake()
	}
}

// announce tells the event loop of a call that there is something to take, unless it is reading itself.
func (c *Conn) announce(k *call) {
	if k.loop == nil {
		return
	}
	k.loop.fresh = append(k.loop.fresh, k.id)
	if c.pumping != k.loop {
		k.loop.ring()
	}
}

// ringAll has every event loop look.
func (c *Conn) ringAll() {
	for _, l := range c.loops {
		l.ring()
	}
}

// armAll has every event loop's descriptor watch for what there is to do.
func (c *Conn) armAll() {
	for _, l := range c.loops {
		l.arm()
	}
}

// push queues an event for a call.
func (c *Conn) push(k *call, e Event) {
	if len(k.events) == 0 {
		c.announce(k)
	}
	k.events = append(k.events, e)
	c.wakeLater(&k.waiter)
}

// pop takes a call's next event. The last one ends the call.
func (c *Conn) pop(k *call) (Event, bool) {
	if len(k.events) == 0 {
		return Event{}, false
	}
	e := k.events[0]
	k.events = k.events[1:]
	if e.Last() {
		delete(c.calls, k.id)
		c.held -= k.held
	} else {
		if e.Kind == KindBuffer {
			k.filling = e.Buffers[0]
		}
		switch {
		case e.native:
			k.native -= cost(e.Data)
			select {
			case c.nativeRoom <- struct{}{}:
			default:
			}
		case e.Kind != KindBuffer:
			c.credit(k, cost(e.Data))
		}
	}
	return e, true
}
