package broker

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// connect connects the caller's own socket, so that its options and all who wait for it stay what they are.
func (b *Broker) connect(n seccomp.Notification) outcome {
	raw, e := copyAddress(n, n.Args[1], int32(n.Args[2]))
	if e != 0 {
		return failed(e)
	}
	fd, e := b.fetch(n, int32(n.Args[0]))
	if e != 0 {
		return failed(e)
	}
	if !b.standing(n) {
		unix.Close(fd)
		return elsewhere
	}
	o := b.connectCopy(n, fd, raw)
	if o.later {
		return o
	}
	b.answer(n, o) // first: closing the copy takes a while
	unix.Close(fd)
	return elsewhere
}

// connectCopy decides and acts. A call that has to wait keeps the descriptor.
func (b *Broker) connectCopy(n seccomp.Notification, fd int, raw []byte) outcome {
	f, e := factsOf(fd)
	switch {
	case e != 0:
		return failed(e)
	case f.family == unix.AF_UNIX:
		return b.connectUnix(n, fd, f, raw)
	case !f.inet():
		return failed(unix.EACCES)
	}
	t, e := inetTarget(f, toConnect, raw)
	if e != 0 {
		return failed(e)
	}
	if b.walled != nil {
		return b.connectWalled(n, fd, f, t)
	}
	if !t.none {
		if at, ours := b.redirect(f, t); ours {
			b.led.keep(fd, f, t.asked)
			t.raw = at
		} else if !b.allows(n, "connect", f, t) {
			return failed(unix.ECONNREFUSED)
		}
		if f.kind == unix.SOCK_DGRAM && b.hearing.silent(fd) {
			if e := b.hearing.add(fd, peerOf(t.raw)); e != 0 {
				return failed(e)
			}
		}
	}
	return b.connectInet(n, fd, f, t)
}

// connectInet makes the connection. A second connect on a socket that is being connected takes the outcome of the first
// and leaves the socket as the kernel's own waiting connect leaves it, which reading SO_ERROR would not.
func (b *Broker) connectInet(n seccomp.Notification, fd int, f socketFacts, t target) outcome {
	flags, e := flagsOf(fd)
	if e != 0 {
		return failed(e)
	}
	wait := flags&unix.O_NONBLOCK == 0 && mayWait(fd, f, t)
	try := func() unix.Errno {
		if !wait {
			return connectTo(fd, t.raw)
		}
		return withoutWaiting(fd, flags, func() unix.Errno { return connectAtOnce(fd, t.raw) })
	}
	end := func(e unix.Errno) outcome {
		if e == unix.EISCONN && b.lost.take(fd) {
			e = 0
		}
		o := failed(e)
		if e == 0 && !t.none {
			o.connected, o.socket = true, fd
		}
		return o
	}
	e = try()
	if !wait || e != unix.EINPROGRESS && e != unix.EALREADY {
		return end(e)
	}
	p := &pending{n: n, fd: fd}
	p.again = func() outcome {
		e := try()
		if e == unix.EINPROGRESS || e == unix.EALREADY {
			return elsewhere
		}
		return end(e)
	}
	p.interrupted = func() outcome {
		if p.deadline.IsZero() {
			return failed(restart)
		}
		return failed(unix.EINTR) // the kernel's own: what is left of the time would be lost
	}
	p.timeout = func() outcome { return failed(unix.EINPROGRESS) }
	p.deadline = sendDeadline(fd)
	return b.wait(p, unix.EPOLLOUT)
}

// mayWait tells a socket whose connection may take a while. One of datagrams has its address at once, and one that is
// connected stays so until this thread undoes it: others may wait for what comes there, and must not meet a flag of ours.
func mayWait(fd int, f socketFacts, t target) bool {
	if f.kind != unix.SOCK_STREAM || t.none {
		return false
	}
	const established, finWait1, finWait2, closeWait = 1, 4, 5, 8 // include/net/tcp_states.h
	switch tcpState(fd) {
	case established, finWait1, finWait2, closeWait:
		return false
	}
	return true
}

// sendDeadline is when SO_SNDTIMEO ends a call that waits; zero: never.
func sendDeadline(fd int) time.Time {
	tv, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil || tv.Sec == 0 && tv.Usec == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(tv.Nano()))
}

// allows asks the judge about an internet address, and records a refusal.
func (b *Broker) allows(n seccomp.Notification, op string, f socketFacts, t target) bool {
	q := b.question(op, f, t)
	d := b.decide(q)
	if !d.Allow && !b.sorting(q) {
		b.refused(n, q, d)
	}
	return d.Allow
}

func (b *Broker) question(op string, f socketFacts, t target) policy.NetQuestion {
	return policy.NetQuestion{Op: op, Proto: f.word(), Host: t.asked.Addr().WithZone("").String(), Port: int(t.asked.Port())}
}

// sorting tells that a refused call is most likely the C library's, which orders the addresses of a name by connecting a
// datagram socket to each, and sends nothing: musl to its own port, glibc to the one that the connection will be to. That is
// nothing to tell of. QUIC, which would be, falls back on the connection that is allowed.
func (b *Broker) sorting(q policy.NetQuestion) bool {
	const muslPort = 65535
	if q.Op != "connect" || q.Proto != "udp" {
		return false
	}
	if q.Port == 0 || q.Port == muslPort {
		return true
	}
	q.Proto = "tcp"
	return b.decide(q).Allow
}

func (b *Broker) decide(q policy.NetQuestion) policy.Decision {
	if b.config.Judge == nil {
		return policy.Decision{Family: "net", Op: q.Op, Subject: q.Host}
	}
	return b.config.Judge.Net(q)
}

func (b *Broker) refused(n seccomp.Notification, q policy.NetQuestion, d policy.Decision) {
	b.denied(Denial{Op: q.Op, Subject: d.Subject, Thread: int(n.Thread), Decision: &d})
}

// lostConnects are sockets that were connected for callers who did not learn it: where the kernel gives a call up for a
// signal (before WAIT_KILLABLE_RECV, Linux 5.19), it is made again, and would find the socket connected.
type lostConnects struct {
	cookies [16]uint64
	at      int
}

// cookieOf is a number that no other socket ever has, 0 where there is none.
func cookieOf(fd int) uint64 {
	c, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return 0
	}
	return c
}

// keep remembers a socket until another sixteen were lost.
func (l *lostConnects) keep(cookie uint64) {
	l.cookies[l.at%len(l.cookies)] = cookie
	l.at++
}

// take tells whether a socket is one of them, and forgets it.
func (l *lostConnects) take(fd int) bool {
	if l.at == 0 {
		return false
	}
	c := cookieOf(fd)
	for i, have := range l.cookies {
		if c != 0 && have == c {
			l.cookies[i] = 0
			return true
		}
	}
	return false
}
