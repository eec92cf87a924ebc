package providers

import (
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/broker"
	"github.com/pysandboxes/pysandboxes/core/resolver"
	"github.com/pysandboxes/pysandboxes/providers/contract"
	"github.com/pysandboxes/pysandboxes/providers/plan"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// NetworkOf reads the word by which a person chooses how network rules are held; "" leaves it open.
func NetworkOf(word string) (Network, error) {
	switch n := Network(word); n {
	case "", Walled, Unwalled:
		return n, nil
	}
	return "", fmt.Errorf("PYSANDBOXES_NETWORK=%s: there are %s and %s", word, Walled, Unwalled)
}

// networkPlan describes a network namespace in which programs find the addresses that they find on the host.
func networkPlan(system resolver.System) *plan.Network {
	// Addresses of documentation (RFC 5737, 3849); nothing is sent.
	n := &plan.Network{
		Source:  sourceOf(netip.AddrFrom4([4]byte{192, 0, 2, 1})),
		Source6: sourceOf(netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1})),
		Cookie:  networkCookie(),
		File:    plan.NetworkFile(),
	}
	if n.Source == "" {
		n.Source = "192.0.2.1" // a host without a network: any address that is nobody's
	}
	if n.Source6 != "" {
		n.Reach6 = []string{netip.PrefixFrom(netip.IPv6Unspecified(), 0).String()}
	} else {
		n.Source6, n.Reach6 = neighbours6()
	}
	for _, a := range system.Inside() {
		n.Servers = append(n.Servers, a.String())
	}
	for _, a := range append([]string{n.Source, n.Source6}, n.Servers...) {
		if a != "" && !netip.MustParseAddr(a).IsLoopback() {
			n.Addresses = append(n.Addresses, a)
		}
	}
	return n
}

// neighbours6 is one of this host's IPv6 addresses and the networks that it is in, for one that knows no way to others: what
// it does not reach must not seem to be within reach, or clients would try it first.
func neighbours6() (source string, networks []string) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", nil
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().Is6() || !p.Addr().IsGlobalUnicast() || p.IsSingleIP() {
			continue
		}
		if source == "" {
			source = p.Addr().String()
		}
		networks = append(networks, p.Masked().String())
	}
	return source, networks
}

// sourceOf is the address that packets of this host to another bear, "" where there is no way to it.
func sourceOf(to netip.Addr) string {
	family, addr := unix.AF_INET, unix.Sockaddr(nil)
	if to.Is6() {
		family, addr = unix.AF_INET6, &unix.SockaddrInet6{Port: 9, Addr: to.As16()}
	} else {
		addr = &unix.SockaddrInet4{Port: 9, Addr: to.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	if unix.Connect(fd, addr) != nil {
		return ""
	}
	own, err := unix.Getsockname(fd)
	if err != nil {
		return ""
	}
	var a netip.Addr
	switch own := own.(type) {
	case *unix.SockaddrInet4:
		a = netip.AddrFrom4(own.Addr)
	case *unix.SockaddrInet6:
		a = netip.AddrFrom16(own.Addr)
	}
	if !a.IsGlobalUnicast() {
		return ""
	}
	return a.String()
}

// networkCookie is the kernel's number of this process's network namespace, 0 where it tells none. A variable for tests.
var networkCookie = func() uint64 {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0
	}
	return cookie
}

// inNetwork is the command with the boundary that its network asks for.
func inNetwork(cmd Command, how Network) Command {
	if cmd.Boundary == nil {
		return cmd
	}
	b := *cmd.Boundary
	keep := how != Walled && !contract.MayFetch()
	if keep {
		// Sends cannot be told from those on sockets of which the supervisor has given up its copy, so nothing may exist
		// that sends without a connection.
		b.Filter.UDP, b.Filter.UnixDatagram = false, false
	}
	b.Filter.Ask = asked(&b, how) | givenSockets(cmd.Child)
	if keep && b.Filter.Ask != 0 {
		b.Filter.Ask |= seccomp.AskSocket
	}
	b.Network = nil
	if how == Walled {
		b.Network = networkPlan(systemOf(cmd.Resolver))
		b.Filter.UDP = true // where it goes is judged as it is sent
		b.Filter.Ask |= seccomp.AskOutcome
		if cmd.LocalUDP {
			b.Filter.Ask |= seccomp.AskSend
		}
		if cmd.Serves {
			b.Filter.Ask |= seccomp.AskServe
		}
	} else if cmd.LooksUp {
		b.Filter.Ask |= seccomp.AskReceive
		if b.Filter.Exec || !usesGlibc(cmd.Child) {
			b.Filter.Ask |= seccomp.AskReceiveMessage
		}
	}
	cmd.Boundary = &b
	return cmd
}

// asked is what the filter puts to the supervisor. A unix socket is reached by connect wherever a sandbox lives, and only
// from ABI 9 on does Landlock judge that. One that listens is reached from outside by a name that is no path, unless the
// sandbox has a network of its own, to which such names belong.
func asked(b *plan.Boundary, how Network) seccomp.Ask {
	var ask seccomp.Ask
	n := b.Filter
	if n.Inet || b.ABI < 9 {
		ask |= seccomp.AskConnect
	}
	if how != Walled {
		ask |= seccomp.AskListen
		if n.Inet {
			ask |= seccomp.AskServe
		}
	}
	if n.UnixDatagram || n.Inet && n.UDP && how != Walled {
		ask |= seccomp.AskSend
	}
	return ask
}

// givenSockets is what is put to the supervisor besides where a standard stream of the program is a socket, as services have
// it that are started for what comes: the filter's list of what may be made says nothing of it.
func givenSockets(c Child) seccomp.Ask {
	var ask seccomp.Ask
	for _, f := range []*os.File{c.Stdin, c.Stdout, c.Stderr} {
		if f == nil {
			continue
		}
		family, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err != nil {
			continue
		}
		ask |= seccomp.AskConnect
		if family != unix.AF_UNIX {
			ask |= seccomp.AskServe
		}
		switch kind, err := unix.GetsockoptInt(int(f.Fd()), unix.SOL_SOCKET, unix.SO_TYPE); {
		case err == nil && (kind == unix.SOCK_STREAM || kind == unix.SOCK_SEQPACKET):
		default: // it sends without being connected
			ask |= seccomp.AskSend
		}
	}
	return ask
}

// doorOf is what init has handed over, and the sockets of the name servers.
func doorOf(fds []int, n *plan.Network) (*broker.Door, []int) {
	d := &broker.Door{Datagrams: fds[plan.DoorDatagrams], Attempts: fds[plan.DoorAttempts], Raw: fds[plan.DoorRaw], Raw6: fds[plan.DoorRaw6], List: fds[plan.DoorList]}
	for _, a := range n.Addresses {
		d.Own = append(d.Own, netip.MustParseAddr(a))
	}
	for _, a := range n.Servers {
		d.Servers = append(d.Servers, netip.MustParseAddr(a))
	}
	return d, fds[plan.DoorServers:]
}
