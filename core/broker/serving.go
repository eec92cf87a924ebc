package broker

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// onCopy copies an address, fetches the descriptor, asks whether the caller still waits, and does the rest on these copies.
func (b *Broker) onCopy(n seccomp.Notification, do func(fd int, f socketFacts, raw []byte) outcome) outcome {
	var raw []byte
	if n.NR != unix.SYS_LISTEN {
		var e unix.Errno
		if raw, e = copyAddress(n, n.Args[1], int32(n.Args[2])); e != 0 {
			return failed(e)
		}
	}
	fd, e := b.fetch(n, int32(n.Args[0]))
	switch e {
	case 0:
	case isListening:
		return outcome{}
	default:
		return failed(e)
	}
	defer unix.Close(fd)
	if !b.standing(n) {
		return elsewhere
	}
	f, e := factsOf(fd)
	if e != 0 {
		return failed(e)
	}
	return do(fd, f, raw)
}

// bind gives a socket its local address, where a rule lets it be reached there.
func (b *Broker) bind(n seccomp.Notification) outcome {
	return b.onCopy(n, func(fd int, f socketFacts, raw []byte) outcome {
		switch {
		case f.family == unix.AF_UNIX:
			return b.bindUnix(n, fd, raw)
		case f.family == unix.AF_NETLINK:
			return bindNetlink(fd, raw)
		case !f.inet():
			return failed(unix.EACCES)
		}
		t, e := inetTarget(f, toBind, raw)
		if e != 0 {
			return failed(e)
		}
		if b.walled != nil {
			return b.bindWalled(n, fd, f, t)
		}
		if b.anyPort(f, t) {
			if e := b.hearing.none(fd); e != 0 {
				return failed(e)
			}
		} else if !b.allows(n, "bind", f, t) {
			return failed(unix.EACCES)
		}
		e = bindTo(fd, t.raw)
		if e == unix.EADDRINUSE && b.kept.sweep(b.config.Program) { // perhaps by a copy of one that the program has closed
			e = bindTo(fd, t.raw)
		}
		if e == 0 && f.kind == unix.SOCK_STREAM && t.asked.Port() == 0 {
			b.bound.add(cookieOf(fd))
		}
		return failed(e)
	})
}

// maxBound bounds what is remembered of sockets that asked for any port. The oldest is forgotten: to listen on it then takes
// a rule for its port.
const maxBound = 1024

// boundSockets are sockets that a rule for port 0 let be bound to whichever was free, by their cookies.
type boundSockets struct {
	known map[uint64]bool
	order []uint64
}

func (s *boundSockets) add(cookie uint64) {
	if cookie == 0 || s.known[cookie] {
		return
	}
	if s.known == nil {
		s.known = map[uint64]bool{}
	}
	if len(s.order) >= maxBound {
		delete(s.known, s.order[0])
		s.order = s.order[1:]
	}
	s.known[cookie] = true
	s.order = append(s.order, cookie)
}

func (s *boundSockets) has(cookie uint64) bool { return cookie != 0 && s.known[cookie] }

// anyPort tells a datagram socket that takes any port on any address, as the kernel would give it one with the first thing
// that it sends: clients of names do so. It hears nobody until it has sent something.
func (b *Broker) anyPort(f socketFacts, t target) bool {
	return f.word() == "udp" && t.asked.Port() == 0 && t.asked.Addr().Unmap().IsUnspecified() &&
		!b.decide(policy.NetQuestion{Op: "bind", Proto: "udp", Host: t.asked.Addr().String()}).Allow
}

// listen is judged by the address that the socket has. Without one the kernel gives it a port, on all addresses. A unix socket
// with a path is reached where its file is; one with another name by everybody of the machine, and by nobody inside.
func (b *Broker) listen(n seccomp.Notification) outcome {
	return b.onCopy(n, func(fd int, f socketFacts, _ []byte) outcome {
		if name := nameOf(fd); f.family == unix.AF_UNIX && b.walled == nil && len(name) > 0 && name[0] == 0 {
			q := unixQuestion("listen", "@"+string(name[1:]))
			b.refused(n, q, b.decide(q))
			return failed(unix.EACCES)
		}
		if f.inet() && b.walled != nil {
			return b.listenWalled(n, fd, f)
		}
		if f.inet() {
			at, e := boundTo(fd)
			if e != 0 {
				return failed(e)
			}
			if f.kind == unix.SOCK_STREAM && !b.bound.has(cookieOf(fd)) && !b.allows(n, "listen", f, target{asked: at}) {
				return failed(unix.EACCES)
			}
		}
		return failed(errnoOf(unix.Listen(fd, int(int32(n.Args[1])))))
	})
}

// bindNetlink: the C library does it before it asks for the machine's addresses. Groups tell of all that happens to them.
func bindNetlink(fd int, raw []byte) outcome {
	const length, groups = 12, 8 // struct sockaddr_nl
	if len(raw) < length || binary.NativeEndian.Uint16(raw) != unix.AF_NETLINK {
		return failed(unix.EINVAL)
	}
	if binary.NativeEndian.Uint32(raw[groups:]) != 0 {
		return failed(unix.EPERM)
	}
	return failed(bindTo(fd, raw[:length]))
}

// unixQuestion is about a socket by its canonical path.
func unixQuestion(op, path string) policy.NetQuestion {
	return policy.NetQuestion{Op: op, Proto: "unix", Host: path}
}
