package broker

import (
	"encoding/binary"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Walled mode. The sandbox's sockets live in a network of their own, out of which nothing leads; its loopback is its
// own. A connection that a rule allows is made here, in the supervisor's network, and the established socket is put in
// the place of the program's: what did not become a connection never comes in.
//
// A program that does not wait for its connection is told that it is on the way, and waits for its own socket. That one is
// then connected to nowhere inside, until the real connection stands: its kernel is told so by the answer of the peer that
// it never had, the program finds its socket connected and, as all do, asks for the outcome (SO_ERROR). That call is put
// to the supervisor, which now exchanges the sockets.

// walled is the state of that mode. It is the service's own, but for the relay.
type walled struct {
	door     *Door
	network  uint64           // of the sandbox
	byHost   map[int]*attempt // by the supervisor's socket
	byCookie map[uint64]*attempt
	calls    map[int]*pending  // that wait for such a socket
	served   map[uint16]uint64 // ports at which a socket was put in that listens, by its inode
	relay    *relay
	swept    time.Time
}

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

const (
	// quickConnect is how long a program that does not wait is made to: a host near by answers within it, and the sockets
	// are exchanged in one go.
	quickConnect = 2 * time.Millisecond
	// sweepTime is how often attempts are looked at whose program may have given them up.
	sweepTime   = time.Second
	maxAttempts = 1024
)

// nowhere is where a program's socket is connected to meanwhile. The address is one of documentation (RFC 5737).
var nowhere = netip.AddrFrom4([4]byte{198, 51, 100, 1})

func newWalled(b *Broker, door *Door) *walled {
	w := &walled{door: door, network: networkOf(door.Raw), byHost: map[int]*attempt{}, byCookie: map[uint64]*attempt{}, calls: map[int]*pending{}, served: map[uint16]uint64{}}
	w.relay = newRelay(b, door)
	return w
}

// close ends the mode. The door is closed by its relay, which may be reading from it.
func (w *walled) close() {
	for fd := range w.byHost {
		unix.Close(fd)
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
		return b.connectInet(n, fd, t)
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
	wait := blocking(fd)
	e := withoutWaiting(fd, func() unix.Errno {
		e := connectTo(fd, t.raw)
		if e == unix.EINPROGRESS && writable(fd) {
			e = connectTo(fd, t.raw) // the outcome
		}
		return e
	})
	switch {
	case e == unix.EINPROGRESS && wait:
		return b.connectInet(n, fd, t)
	case e == unix.ECONNREFUSED && (b.walled.servesItself(t.asked) || b.allows(n, "connect", f, t)):
		return b.connectOutside(n, fd, f, t)
	case e == 0 && !wait:
		return failed(unix.EINPROGRESS) // as the kernel has it, though it is done
	}
	return failed(e)
}

// connectOutside makes an allowed connection in the supervisor's network.
func (b *Broker) connectOutside(n seccomp.Notification, fd int, f socketFacts, t target) outcome {
	host, err := unix.Socket(f.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		b.noteOnce("host socket", "the supervisor cannot make the sockets of the sandbox's connections: "+err.Error())
		return failed(errnoOf(err))
	}
	if e := carryOptions(fd, host, f.family, true); e != 0 {
		unix.Close(host)
		return failed(e)
	}
	wait := blocking(fd)
	switch e := connectTo(host, t.raw); e {
	case 0:
		return b.handOver(n, fd, host, wait)
	case unix.EINPROGRESS:
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
	defer unix.Close(host)
	if e := b.exchange(n, fd, host); e != 0 {
		return failed(e)
	}
	if !waited {
		return failed(unix.EINPROGRESS)
	}
	return outcome{connected: cookieOf(host)}
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
		fetch := func(fd int) (int, unix.Errno) { return b.fetch(n, int32(fd)) }
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
	e := withoutWaiting(fd, func() unix.Errno { return connectTo(fd, raw) })
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

// peerName answers for a socket that is connected to a stand-in: with the address that the program has connected it to.
func (b *Broker) peerName(n seccomp.Notification) (outcome, bool) {
	if !b.walled.relay.stand.any() {
		return outcome{}, false
	}
	fd, e := b.fetch(n, int32(n.Args[0]))
	if e != 0 {
		return outcome{}, false
	}
	defer unix.Close(fd)
	name, err := unix.Getpeername(fd)
	if err != nil {
		return outcome{}, false
	}
	var at netip.AddrPort
	six := false
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		at = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		at, six = netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port)), true
	}
	real, _, ok := b.walled.relay.stand.standsFor(at.Addr())
	if !ok {
		return outcome{}, false
	}
	at = netip.AddrPortFrom(real, at.Port())
	var raw []byte
	if six {
		raw = inet6(netip.AddrPortFrom(netip.AddrFrom16(real.As16()), at.Port()))
	} else {
		raw = inet4(at)
	}
	var size [4]byte
	if e := copyIn(n.Thread, n.Args[2], size[:]); e != 0 {
		return failed(e), true
	}
	room := int32(binary.NativeEndian.Uint32(size[:]))
	if room < 0 {
		return failed(unix.EINVAL), true
	}
	binary.NativeEndian.PutUint32(size[:], uint32(len(raw)))
	if !b.standing(n) {
		return elsewhere, true
	}
	copyOut(n.Thread, n.Args[1], raw[:min(int(room), len(raw))])
	copyOut(n.Thread, n.Args[2], size[:])
	return outcome{}, true
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
