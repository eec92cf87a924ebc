package broker

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// A connection that is made in the supervisor's network, and how it comes in.

// quickConnect is how long a program that does not wait is made to: a host near by answers within it, and the sockets are
// exchanged in one go.
const quickConnect = 2 * time.Millisecond

// connectOutside makes an allowed connection in the supervisor's network.
func (b *Broker) connectOutside(n seccomp.Notification, fd int, f socketFacts, t target) outcome {
	host, err := b.walled.hostSocket(f.family)
	if err != nil {
		b.noteOnce("host socket", "the supervisor cannot make the sockets of the sandbox's connections: "+err.Error())
		return failed(errnoOf(err))
	}
	e := carryOptions(fd, host, f.family, true)
	if e == 0 {
		e = b.carryPort(fd, host)
	}
	if e != 0 {
		unix.Close(host)
		return failed(e)
	}
	wait := blocking(fd)
	switch e := connectAtOnce(host, t.raw); e {
	case 0:
		return b.handOver(n, fd, host, wait)
	case unix.EALREADY, unix.EINPROGRESS:
	default:
		unix.Close(host)
		return b.failed(fd, f, t, e, wait)
	}
	// The call keeps fd, the program's socket, and what it waits for is ours.
	p := &pending{n: n, fd: fd}
	ours := true
	p.gone = func() {
		delete(b.walled.calls, host)
		if ours {
			unix.Close(host)
		}
	}
	take := func() { // it goes to the program, or to an attempt
		ours = false
		_ = unix.EpollCtl(b.waiting.epoll, unix.EPOLL_CTL_DEL, host, nil)
	}
	hold := func(e unix.Errno) func() outcome {
		return func() outcome {
			take()
			return b.hold(n, fd, host, f, t, e)
		}
	}
	p.again = func() outcome {
		switch e := connectTo(host, t.raw); e {
		case 0, unix.EISCONN:
			take()
			return b.handOver(n, fd, host, wait)
		case unix.EALREADY, unix.EINPROGRESS:
			return elsewhere
		default:
			return b.failed(fd, f, t, e, wait)
		}
	}
	if wait {
		p.deadline = sendDeadline(fd)
		p.interrupted = hold(restart)
	} else {
		p.deadline = time.Now().Add(quickConnect)
		p.interrupted = func() outcome { return elsewhere } // it is on its way back anyhow
	}
	p.timeout = hold(unix.EINPROGRESS)
	o := b.wait(p, 0)
	if !o.later {
		return o
	}
	p.polled = true // though by the other socket
	b.walled.calls[host] = p
	if err := unix.EpollCtl(b.waiting.epoll, unix.EPOLL_CTL_ADD, host, &unix.EpollEvent{Events: unix.EPOLLOUT, Fd: int32(host)}); err != nil {
		p.polled = false // each look tries
	}
	return o
}

// hostSocket gives a stream socket of the supervisor's network that does not wait. One is made after each answer: the next
// caller does not wait for that.
func (w *walled) hostSocket(family int) (int, error) {
	have := &w.spare[0]
	if family == unix.AF_INET6 {
		have = &w.spare[1]
	}
	w.taken = true
	if have.made {
		have.made = false
		return have.fd, nil
	}
	have.family = family
	return newHostSocket(family)
}

func newHostSocket(family int) (int, error) {
	return unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
}

// restock makes the sockets for the next callers.
func (w *walled) restock() {
	if w == nil || !w.taken {
		return
	}
	w.taken = false
	for i := range w.spare {
		if have := &w.spare[i]; have.family != 0 && !have.made {
			fd, err := newHostSocket(have.family)
			have.fd, have.made = fd, err == nil
		}
	}
}

// spare is a socket that nobody has yet; family 0: none of it was wanted so far.
type spare struct {
	family, fd int
	made       bool
}

// carryPort binds the supervisor's socket where the program has bound its own, if a rule let it. Without one nobody outside
// is to see a port of the program's choice; the host's network gives one then.
func (b *Broker) carryPort(fd, host int) unix.Errno {
	if len(b.walled.chosen.order) == 0 || !b.walled.chosen.has(cookieOf(fd)) {
		return 0
	}
	at, e := boundTo(fd)
	if e != 0 {
		return e
	}
	raw := inet6
	if at.Addr().Is4() {
		raw = inet4
	}
	return bindTo(host, raw(at))
}

// failed ends a connection that did not come about. Who does not wait learns it as from its own kernel: the connection is
// on the way, and then its socket has an error.
func (b *Broker) failed(fd int, f socketFacts, t target, e unix.Errno, wait bool) outcome {
	var a attempt
	if wait || b.walled.connectNowhere(fd, f, t.asked.Port(), &a) != 0 {
		return failed(e)
	}
	b.walled.fail(&a, e)
	return failed(unix.EINPROGRESS)
}

// handOver puts an established socket in the place of the program's, wherever the caller's process has that. It owns host.
func (b *Broker) handOver(n seccomp.Notification, fd, host int, waited bool) outcome {
	o := outcome{socket: host, spent: true}
	switch o.errno = b.exchange(n, fd, host); {
	case o.errno != 0:
	case waited:
		o.connected = true
	default:
		o.errno = unix.EINPROGRESS
	}
	return o
}

// exchange does it. fd is a copy of the program's.
func (b *Broker) exchange(n seccomp.Notification, fd, host int) unix.Errno {
	inode, e := inodeOf(fd)
	if e != 0 {
		return e
	}
	first := number{int(int32(n.Args[0])), true}
	p, err := placesOf(n.Thread, inode)
	if err != nil {
		b.noteOnce("places", "the supervisor cannot read /proc of the sandbox: a connection that a program has under two descriptors, "+
			"or in an epoll instance, is replaced under one alone: "+err.Error())
		p.numbers = []number{first}
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err == nil {
		_, _ = unix.FcntlInt(uintptr(host), unix.F_SETFL, flags)
	}
	if len(p.watches) > 0 {
		fetch := func(fd int) (int, unix.Errno) {
			poll, e := b.fetch(n, int32(fd))
			if e == 0 && !b.standing(n) { // it may be another's
				unix.Close(poll)
				return -1, unix.ESRCH
			}
			return poll, e
		}
		if err := moveWatches(p.watches, fetch, fd, host); err != nil {
			b.noteOnce("watches", "an epoll instance of the sandbox does not watch a connection that was made for it: "+err.Error())
			return unix.ECONNABORTED
		}
	}
	for _, at := range p.numbers {
		e := replace(b.config.Listener, n.ID, host, at)
		if e == unix.EBADF {
			e = withRoom(n.Thread, at.fd, func() unix.Errno { return replace(b.config.Listener, n.ID, host, at) })
		}
		if e != 0 {
			return e
		}
	}
	return 0
}
