package broker

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Being reached, where the sandbox has a network of its own: what it binds to inside nobody outside sees. Where a rule lets
// it be reached, a socket that listens in the supervisor's network is put in the place of its own, and datagrams are
// relayed. These calls are put to the supervisor only where the profile has such a rule.

// bindWalled gives a socket its address inside. What no rule lets be reached is refused, unless it is the sandbox's own
// affair: its loopback, or a port of the kernel's choice for a client.
func (b *Broker) bindWalled(n seccomp.Notification, fd int, f socketFacts, t target) outcome {
	if !b.walled.inside(fd) {
		return failed(unix.EINVAL) // it has its address
	}
	addr := t.asked.Addr().Unmap()
	private := addr.IsLoopback() || addr.IsUnspecified() && t.asked.Port() == 0
	if private && !b.decide(b.question("bind", f, t)).Allow {
		return failed(bindTo(fd, t.raw))
	}
	if !b.allows(n, "bind", f, t) {
		return failed(unix.EACCES)
	}
	// An address of the host's that is not one inside.
	if f.family == unix.AF_INET6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
	raw := t.raw
	anyPort := t.asked.Port() == 0 && f.kind == unix.SOCK_STREAM
	if anyPort {
		raw = freeOnHost(f, t)
	}
	e := bindTo(fd, raw)
	if e == 0 && anyPort {
		b.bound.add(cookieOf(fd))
	}
	if e == 0 && f.kind == unix.SOCK_STREAM {
		b.walled.chosen.add(cookieOf(fd))
	}
	if e != 0 || f.kind != unix.SOCK_DGRAM {
		return failed(e)
	}
	at, e := boundTo(fd)
	if e != 0 {
		return failed(e)
	}
	inode, e := inodeOf(fd)
	if e != 0 {
		return failed(e)
	}
	return failed(b.walled.relay.letIn(at, f.family, processOf(n.Thread), inode))
}

// freeOnHost is an address with a port that is free in the supervisor's network at this moment: the socket will listen there.
func freeOnHost(f socketFacts, t target) []byte {
	host, err := unix.Socket(f.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return t.raw
	}
	defer unix.Close(host)
	if bindTo(host, t.raw) != 0 {
		return t.raw
	}
	at, e := boundTo(host)
	if e != 0 {
		return t.raw
	}
	raw := append([]byte(nil), t.raw...)
	binary.BigEndian.PutUint16(raw[2:], at.Port())
	return raw
}

// listenWalled puts a listening socket of the supervisor's in, where a rule lets the sandbox be reached.
func (b *Broker) listenWalled(n seccomp.Notification, fd int, f socketFacts) outcome {
	backlog := int(int32(n.Args[1]))
	at, e := boundTo(fd)
	if e != 0 {
		return failed(e)
	}
	t := target{asked: at}
	inside, allowed := b.walled.inside(fd), b.bound.has(cookieOf(fd))
	if inside && !allowed && at.Addr().Unmap().IsLoopback() && !b.decide(b.question("listen", f, t)).Allow {
		return failed(errnoOf(unix.Listen(fd, backlog)))
	}
	if !allowed && !b.allows(n, "listen", f, t) {
		return failed(unix.EACCES)
	}
	if !inside || f.kind != unix.SOCK_STREAM || tcpState(fd) != tcpClose {
		return failed(errnoOf(unix.Listen(fd, backlog)))
	}
	host, err := unix.Socket(f.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_TCP)
	if err != nil {
		return failed(errnoOf(err))
	}
	defer unix.Close(host)
	if e := carryOptions(fd, host, f.family, true); e != 0 {
		return failed(e)
	}
	raw := inet6
	if f.family == unix.AF_INET {
		raw = inet4
	}
	if e := bindTo(host, raw(at)); e != 0 {
		return failed(e)
	}
	if err := unix.Listen(host, backlog); err != nil {
		return failed(errnoOf(err))
	}
	if at, e = boundTo(host); e != 0 {
		return failed(e)
	}
	inode, e := inodeOf(host)
	if e != 0 {
		return failed(e)
	}
	if e := b.exchange(n, fd, host); e != 0 {
		return failed(e)
	}
	b.walled.served[at.Port()] = inode
	return outcome{}
}

// servesItself tells a port of the host at which the sandbox itself still listens: it may talk to itself there as on its
// own loopback.
func (w *walled) servesItself(to netip.AddrPort) bool {
	inode, known := w.served[to.Port()]
	if !known {
		return false
	}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		if listensAt(table, to.Port(), inode) {
			return true
		}
	}
	delete(w.served, to.Port())
	return false
}

// listensAt looks for a listening socket in a table of the kernel's (proc_net_tcp.rst).
func listensAt(table string, port uint16, inode uint64) bool {
	f, err := os.Open(table)
	if err != nil {
		return false
	}
	defer f.Close()
	const listening, numberField = "0A", 9
	suffix := ":" + strings.ToUpper(hex.EncodeToString([]byte{byte(port >> 8), byte(port)}))
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > numberField && strings.HasSuffix(fields[1], suffix) && fields[3] == listening && fields[numberField] == fmt.Sprint(inode) {
			return true
		}
	}
	return false
}
