package broker

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Walled mode. The sandbox's sockets live in a network of their own, out of which nothing leads; its loopback is its
// own. A connection that a rule allows is made here, in the supervisor's network, and the established socket is put in
// the place of the program's: what did not become a connection never comes in.

// walled is the state of that mode. It is the service's own, but for the relay.
type walled struct {
	door     *Door
	network  uint64           // of the sandbox
	byHost   map[int]*attempt // by the supervisor's socket
	byCookie map[uint64]*attempt
	calls    map[int]*pending  // that wait for such a socket
	served   map[uint16]uint64 // ports at which a socket was put in that listens, by its inode
	chosen   boundSockets      // that a program has bound by a rule
	relay    *relay
	inner    listeners
	spare    [2]spare // by family
	taken    bool     // one of them
	swept    time.Time
}

// sweepTime is how often attempts are looked at whose program may have given them up.
const sweepTime = time.Second

func newWalled(b *Broker, door *Door) *walled {
	w := &walled{door: door, network: networkOf(door.Raw), byHost: map[int]*attempt{}, byCookie: map[uint64]*attempt{}, calls: map[int]*pending{}, served: map[uint16]uint64{}}
	w.inner.socket = door.List
	w.relay = newRelay(b, door)
	return w
}

// close ends the mode. The door is closed by its relay, which may be reading from it.
func (w *walled) close() {
	for fd := range w.byHost {
		unix.Close(fd)
	}
	for i := range w.spare {
		if w.spare[i].made {
			unix.Close(w.spare[i].fd)
		}
	}
	w.byHost, w.byCookie = nil, nil
	w.relay.close()
}

// patience is how long the service may sleep, in milliseconds.
func (w *walled) patience(most int) int {
	const sweep = int(sweepTime / time.Millisecond)
	if w != nil && w.busy() && (most < 0 || most > sweep) {
		return sweep
	}
	return most
}

// inside tells a socket of the sandbox's network from one that was put in.
func (w *walled) inside(fd int) bool { return w.network != 0 && networkOf(fd) == w.network }

// connectWalled decides and acts, with copies of the caller's descriptor and address.
func (b *Broker) connectWalled(n seccomp.Notification, fd int, f socketFacts, t target) outcome {
	w := b.walled
	if !w.inside(fd) {
		return b.connectHost(fd, t)
	}
	if f.kind != unix.SOCK_STREAM {
		return failed(connectTo(fd, b.datagramTarget(n, f, t, true))) // judged when something is sent
	}
	// The kernel would tell of a connection before there is one.
	if on, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT); err == nil && on != 0 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 0)
	}
	if len(w.byCookie) > 0 {
		if a := w.byCookie[cookieOf(fd)]; a != nil {
			return b.connectAgain(n, fd, a, t)
		}
	}
	switch {
	case t.none, tcpState(fd) != tcpClose:
		return b.connectInet(n, fd, f, t)
	case w.door.local(t.asked.Addr()):
		return b.connectInside(n, fd, f, t)
	case !b.allows(n, "connect", f, t):
		return failed(unix.ECONNREFUSED)
	}
	return b.connectOutside(n, fd, f, t)
}

// connectHost is for a socket that was put in: it is connected, or waits for others, and stays what it is.
func (b *Broker) connectHost(fd int, t target) outcome {
	switch {
	case t.none:
		return failed(unix.EACCES) // it would be free to become something else
	case b.lost.take(fd):
		return outcome{}
	}
	return failed(unix.EISCONN)
}

// connectInside tries the sandbox's own network first. Where nobody listens, a service of the host's is meant, if a rule
// names it.
func (b *Broker) connectInside(n seccomp.Notification, fd int, f socketFacts, t target) outcome {
	if b.walled.inner.none(peerOf(t.raw)) && b.decide(b.question("connect", f, t)).Allow {
		return b.connectOutside(n, fd, f, t)
	}
	flags, e := flagsOf(fd)
	if e != 0 {
		return failed(e)
	}
	wait := flags&unix.O_NONBLOCK == 0
	e = withoutWaiting(fd, flags, func() unix.Errno { return connectAtOnce(fd, t.raw) })
	switch {
	case e == unix.EALREADY && wait:
		return b.connectInet(n, fd, f, t)
	case e == unix.EALREADY:
		return failed(unix.EINPROGRESS)
	case e == unix.ECONNREFUSED && (b.walled.servesItself(t.asked) || b.allows(n, "connect", f, t)):
		return b.connectOutside(n, fd, f, t)
	case e == 0 && !wait:
		return failed(unix.EINPROGRESS) // as the kernel has it, though it is done
	}
	return failed(e)
}

// sweep drops the attempts and inlets whose socket the program has closed.
func (b *Broker) sweep() {
	w := b.walled
	if w == nil || time.Since(w.swept) < sweepTime || !w.busy() {
		return
	}
	w.swept = time.Now()
	known := map[int]map[uint64]bool{}
	open := func(process int) map[uint64]bool {
		if known[process] == nil {
			known[process] = socketsOf(process)
		}
		return known[process]
	}
	for _, a := range w.byHost {
		if (!a.ready || time.Since(a.since) > sweepTime) && !open(a.process)[a.inode] {
			w.drop(a)
		}
	}
	w.relay.sweep(open)
}

// busy tells that there is something to sweep.
func (w *walled) busy() bool { return len(w.byHost) > 0 || w.relay.any() }
