package broker

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// A call that cannot end at once waits here, so that the next one is served meanwhile: one epoll instance for all of them,
// and a look at each now and then for what no descriptor tells: its caller was interrupted or is gone, its time is over.

// pending is one such call.
type pending struct {
	n  seccomp.Notification
	fd int // our copy of the caller's descriptor
	// again tries once more; later means that it still has to wait.
	again func() outcome
	// interrupted says how the call ends when a signal came.
	interrupted func() outcome
	// timeout is how it ends at the deadline, where there is one.
	deadline time.Time
	timeout  func() outcome
	gone     func() // lets go of what it holds besides fd; may be nil

	polled    bool // the descriptor tells when to try again; else each look does
	step      time.Duration
	next      time.Time // of the next look
	suspected int       // looks in a row at which a signal for the process was there
}

// How often a waiting call is looked at: soon at first, as a Ctrl-C would be, then less.
const (
	firstLook = 2 * time.Millisecond
	lastLook  = 100 * time.Millisecond
	lastTry   = 20 * time.Millisecond // where only trying tells
)

// maxPending bounds the calls that wait; each holds a descriptor of the supervisor's.
const maxPending = 1024

// waiting are all such calls.
type waiting struct {
	epoll int // 0: none yet
	calls map[int]*pending
}

func (w *waiting) poll() int {
	if w.epoll == 0 {
		return -1
	}
	return w.epoll
}

// patience is how long to sleep, in milliseconds.
func (w *waiting) patience() int {
	if len(w.calls) == 0 {
		return -1
	}
	now := time.Now()
	left := lastLook
	for _, p := range w.calls {
		left = min(left, p.next.Sub(now))
	}
	return max(0, int((left+time.Millisecond-1)/time.Millisecond))
}

func (w *waiting) close() {
	for _, p := range w.calls {
		p.close()
	}
	w.calls = nil
	if w.epoll != 0 {
		unix.Close(w.epoll)
	}
}

// wait takes a call over, with the descriptor where the outcome is later. events is 0 where no event tells that it may go on.
func (b *Broker) wait(p *pending, events uint32) outcome {
	w := &b.waiting
	fail := func(e unix.Errno) outcome { // the caller closes the descriptor of a call that ends here
		if p.gone != nil {
			p.gone()
		}
		return failed(e)
	}
	if len(w.calls) >= maxPending {
		b.noteOnce("pending", "too many network calls of the sandbox wait at once; further ones fail with ENOBUFS")
		return fail(unix.ENOBUFS)
	}
	if w.epoll == 0 {
		fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return fail(unix.ENFILE)
		}
		w.epoll, w.calls = fd, map[int]*pending{}
	}
	if events != 0 {
		p.polled = true
		if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, p.fd, &unix.EpollEvent{Events: events, Fd: int32(p.fd)}); err != nil {
			return fail(errnoOf(err))
		}
	}
	p.step = firstLook
	p.next = time.Now().Add(p.step)
	w.calls[p.fd] = p
	return elsewhere
}

// look tries the calls whose descriptors are ready.
func (b *Broker) look() {
	var events [64]unix.EpollEvent
	n, err := unix.EpollWait(b.waiting.epoll, events[:], 0)
	if err != nil {
		return
	}
	for _, e := range events[:n] {
		if p := b.waiting.calls[int(e.Fd)]; p != nil {
			b.retry(p)
		} else {
			b.hostReady(int(e.Fd))
		}
	}
}

// tick looks at the calls whose time for that has come.
func (b *Broker) tick() {
	if len(b.waiting.calls) == 0 {
		return
	}
	now := time.Now()
	for _, p := range b.waiting.calls {
		if now.Before(p.next) {
			continue
		}
		limit := lastLook
		if !p.polled {
			limit = lastTry
		}
		p.step = min(2*p.step, limit)
		p.next = now.Add(p.step)
		switch {
		case !b.standing(p.n):
			b.end(p)
		case b.signalled(p):
			b.finish(p, p.interrupted)
		case p.suspected > manySuspicions:
			// Whose it is cannot be told. The kernel undoes ERESTARTSYS only where it has the signal: another would see it.
			b.finish(p, func() outcome {
				o := p.interrupted()
				if o.errno == restart {
					o.errno = unix.EINTR
				}
				return o
			})
		case !p.deadline.IsZero() && !now.Before(p.deadline):
			b.finish(p, p.timeout)
		case !p.polled:
			b.retry(p)
		case !p.deadline.IsZero():
			p.next = earlier(p.next, p.deadline)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// retry goes on with a call, unless its caller is gone.
func (b *Broker) retry(p *pending) {
	if !b.standing(p.n) {
		b.end(p)
		return
	}
	b.finish(p, p.again)
}

// finish answers a call, unless do says that it has to go on waiting.
func (b *Broker) finish(p *pending, do func() outcome) {
	more := false
	b.guarded(p.n, func() outcome {
		o := do()
		more = o.later
		return o
	})
	if !more {
		b.end(p)
	}
}

// end forgets a call. The descriptor is another number's by then, so nothing else may close it.
func (b *Broker) end(p *pending) {
	if p.polled {
		_ = unix.EpollCtl(b.waiting.epoll, unix.EPOLL_CTL_DEL, p.fd, nil)
	}
	delete(b.waiting.calls, p.fd)
	p.close()
}

func (p *pending) close() {
	if p.gone != nil {
		p.gone()
	}
	unix.Close(p.fd)
}

// signalled tells that a signal waits for the caller, and that its kernel will look at it when the call ends: one for its
// thread, or one for its process, which is the first thread's where it does not block it (complete_signal in kernel/signal.c).
// Where that one does, it is some other thread's, which then takes it soon: only when some are still there at later looks
// is it most likely for this one.
func (b *Broker) signalled(p *pending) bool {
	s := statusOf(p.n.Thread)
	switch {
	case s.pending == 0:
		p.suspected = 0
		return false
	case s.own, s.threads == 1, s.process == int(p.n.Thread):
		return true
	}
	p.suspected++
	return false
}

// manySuspicions is how many looks in a row that is.
const manySuspicions = 2

// restart is ERESTARTSYS (linux/errno.h): the kernel makes it EINTR, or makes the call again, as the handler wants it. It does so
// on its way to a signal, and nowhere else.
const restart = unix.Errno(512)
