package broker

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// Door is what init made inside a walled sandbox's network namespace before any code of the sandbox ran. These sockets
// belong to that namespace wherever they are used.
type Door struct {
	// Datagrams and Attempts see what is sent to addresses outside, without what is below IP (packet(7)): datagrams
	// of UDP, and the first packet of each TCP connection over IPv4.
	Datagrams, Attempts int
	// Raw and Raw6 send whole IP packets into the namespace.
	Raw, Raw6 int
	// List tells of the sockets there (sock_diag(7)).
	List int
	// Own are the addresses on the sandbox's loopback device, besides 127.0.0.0/8 and ::1. The first is the one that
	// what it sends bears.
	Own []netip.Addr
	// Servers are the addresses at which names are answered inside.
	Servers []netip.Addr
}

// Close closes the sockets.
func (d *Door) Close() {
	abandon(d.Datagrams, d.Attempts)
	for _, fd := range []int{d.Datagrams, d.Attempts, d.Raw, d.Raw6, d.List} {
		unix.Close(fd)
	}
}

// abandon has the kernel close descriptors later: the last close of a packet socket waits ten milliseconds for the others of
// the machine. They are sent on their way over a socket that is on its way itself, which nobody can ever receive: the kernel's
// collector of such finds them, in a thread of its own (since Linux 6.9; before, in whoever closes). The caller closes its own.
func abandon(fds ...int) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return // the caller's close does it
	}
	_ = unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(append(fds, pair[1])...), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	unix.Close(pair[0])
	unix.Close(pair[1])
}

// local tells an address that is the sandbox's own.
func (d *Door) local(a netip.Addr) bool {
	a = a.Unmap()
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	for _, own := range d.Own {
		if own == a {
			return true
		}
	}
	return false
}

// ownOf is an address of the sandbox's in the family of another.
func (d *Door) ownOf(other netip.Addr) (netip.Addr, bool) {
	for _, own := range d.Own {
		if own.Is4() == other.Is4() {
			return own, true
		}
	}
	return netip.Addr{}, false
}

// drain reads away what is old.
func (d *Door) drain() {
	var buf [128]byte
	for {
		if _, _, err := unix.Recvfrom(d.Attempts, buf[:], unix.MSG_DONTWAIT); err != nil && err != unix.EINTR {
			return
		}
	}
}

// attempt finds the first packet of a connection that has just been tried from an address inside.
func (d *Door) attempt(from netip.AddrPort) (packet, bool) {
	var buf [128]byte
	for {
		n, _, err := unix.Recvfrom(d.Attempts, buf[:], unix.MSG_DONTWAIT)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return packet{}, false
		}
		if p, ok := parsePacket(buf[:n]); ok && p.from == from {
			return p, true
		}
	}
}
