package broker

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// A program that does not wait for its connection is told that it is on the way, and waits for its own socket. That one is
// then connected to nowhere inside, until the real connection stands: its kernel is told so by the answer of the peer that
// it never had, the program finds its socket connected and, as all do, asks for the outcome (SO_ERROR). That call is put
// to the supervisor, which now exchanges the sockets.

// attempt is a connection for a program that does not wait.
type attempt struct {
	host    int    // the supervisor's socket
	raw     []byte // the address, for the kernel
	cookie  uint64 // of the program's
	inode   uint64
	process int
	flow    flow // of the program's socket, to nowhere
	seq     uint32
	ready   bool
	since   time.Time // when it became that
}

const maxAttempts = 1024

// nowhere is where a program's socket is connected to meanwhile. The address is one of documentation (RFC 5737).
var nowhere = netip.AddrFrom4([4]byte{198, 51, 100, 1})

// hostReady goes on with what waits for a socket of the supervisor's. Without a network of the sandbox's own nothing does.
func (b *Broker) hostReady(host int) {
	w := b.walled
	if w == nil {
		return
	}
	if p := w.calls[host]; p != nil {
		b.retry(p)
	} else if a := w.byHost[host]; a != nil {
		b.progress(a)
	}
}

// hold keeps a connection that is being made for a program that does not wait for it, or whose call a signal has ended:
// the program's own socket is connected to nowhere until then. It owns host. e is the answer.
func (b *Broker) hold(n seccomp.Notification, fd, host int, f socketFacts, t target, e unix.Errno) outcome {
	w := b.walled
	fail := func(e unix.Errno) outcome {
		unix.Close(host)
		return failed(e)
	}
	if len(w.byHost) >= maxAttempts {
		b.noteOnce("attempts", "too many connections of the sandbox are on the way at once; further ones fail with ENOBUFS")
		return fail(unix.ENOBUFS)
	}
	a := &attempt{host: host, raw: t.raw, cookie: cookieOf(fd), process: processOf(n.Thread)}
	var errno unix.Errno
	if a.inode, errno = inodeOf(fd); errno != 0 || a.cookie == 0 {
		return fail(unix.EIO)
	}
	if errno = w.connectNowhere(fd, f, t.asked.Port(), a); errno != 0 {
		return fail(errno)
	}
	if err := unix.EpollCtl(b.waiting.epoll, unix.EPOLL_CTL_ADD, host, &unix.EpollEvent{Events: unix.EPOLLOUT, Fd: int32(host)}); err != nil {
		return fail(errnoOf(err))
	}
	w.byHost[host], w.byCookie[a.cookie] = a, a
	return failed(e)
}

// connectNowhere has the program's socket wait for an answer, and learns what an answer has to say.
func (w *walled) connectNowhere(fd int, f socketFacts, port uint16, a *attempt) unix.Errno {
	w.door.drain()
	raw := inet4(netip.AddrPortFrom(nowhere, port))
	if f.family == unix.AF_INET6 {
		// By IPv4 all the same: the loopback device takes IPv6 packets for its own addresses alone.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
		raw = inet6(netip.AddrPortFrom(netip.AddrFrom16(nowhere.As16()), port))
	}
	flags, e := flagsOf(fd)
	if e == 0 {
		e = withoutWaiting(fd, flags, func() unix.Errno { return connectTo(fd, raw) })
	}
	if e != unix.EINPROGRESS {
		if e == 0 {
			e = unix.EIO
		}
		return e
	}
	from, e := boundTo(fd)
	if e != 0 {
		return e
	}
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	p, ok := w.door.attempt(from)
	if !ok {
		return unix.EIO
	}
	a.flow, a.seq = p.flow, p.seq
	return 0
}

// progress looks at an attempt whose socket has something to say.
func (b *Broker) progress(a *attempt) {
	w := b.walled
	e := connectTo(a.host, a.raw)
	switch e {
	case unix.EALREADY, unix.EINPROGRESS:
		return
	case 0, unix.EISCONN:
		_ = unix.EpollCtl(b.waiting.epoll, unix.EPOLL_CTL_DEL, a.host, nil)
		a.ready, a.since = true, time.Now()
		_ = w.door.send(a.flow.from.Addr(), segment(a.flow.back(), a.seq, tcpSYN|tcpACK))
		return
	}
	w.drop(a)
	w.fail(a, e)
}

// fail tells the kernel of a program's socket that its connection failed.
func (w *walled) fail(a *attempt, e unix.Errno) {
	switch e {
	case unix.ETIMEDOUT: // its own kernel says the same about now
	case unix.EHOSTUNREACH, unix.ENETUNREACH:
		code := uint8(unreachableHost)
		if e == unix.ENETUNREACH {
			code = unreachableNet
		}
		first := tcp(a.flow, a.seq, 0, tcpSYN)
		_ = w.door.send(a.flow.from.Addr(), unreachable(a.flow, code, first))
	default:
		_ = w.door.send(a.flow.from.Addr(), segment(a.flow.back(), a.seq, tcpRST|tcpACK))
	}
}

// drop forgets an attempt and closes its connection.
func (w *walled) drop(a *attempt) {
	delete(w.byHost, a.host)
	delete(w.byCookie, a.cookie)
	unix.Close(a.host)
}

// connectAgain is connect on a socket whose connection is on the way.
func (b *Broker) connectAgain(n seccomp.Notification, fd int, a *attempt, t target) outcome {
	w := b.walled
	switch {
	case t.none:
		w.drop(a)
		return failed(connectTo(fd, t.raw))
	case a.ready:
		return b.deliver(n, fd, a)
	case !blocking(fd):
		return failed(unix.EALREADY)
	}
	p := &pending{n: n, fd: fd, deadline: sendDeadline(fd)}
	p.again = func() outcome {
		switch {
		case w.byCookie[a.cookie] != a: // it failed, as the program's own socket knows
			return failed(connectTo(fd, t.raw))
		case a.ready:
			return b.deliver(n, fd, a)
		}
		return elsewhere
	}
	p.interrupted = func() outcome { return failed(restart) }
	p.timeout = func() outcome { return failed(unix.EINPROGRESS) }
	return b.wait(p, 0)
}

// deliver ends an attempt that has become a connection.
func (b *Broker) deliver(n seccomp.Notification, fd int, a *attempt) outcome {
	f, e := factsOf(fd)
	switch {
	case e != 0:
	case tcpState(a.host) == tcpClose:
		e = unix.ECONNRESET // it ended before the program took it
	default:
		carryOptions(fd, a.host, f.family, false) // what was set meanwhile
		e = b.exchange(n, fd, a.host)
	}
	b.walled.drop(a)
	if e != 0 {
		_ = b.walled.door.send(a.flow.from.Addr(), reset(a.flow.back()))
	}
	return failed(e)
}

// asked is a call by which a program learns what became of its connection (SO_ERROR, getpeername). It goes on as it was
// made: it has no address, and after the exchange it asks the right socket.
func (b *Broker) asked(n seccomp.Notification) outcome {
	if w := b.walled; w != nil && len(w.byHost) > 0 {
		if fd, e := b.fetch(n, int32(n.Args[0])); e == 0 {
			if a := w.byCookie[cookieOf(fd)]; a != nil && b.standing(n) {
				if !a.ready {
					b.progress(a)
				}
				if a.ready {
					b.deliver(n, fd, a)
				}
			}
			unix.Close(fd)
		}
	}
	if b.walled != nil && n.NR == unix.SYS_GETPEERNAME {
		if o, done := b.peerName(n); done {
			return o
		}
	}
	_ = seccomp.Continue(b.config.Listener, n.ID)
	return elsewhere
}
