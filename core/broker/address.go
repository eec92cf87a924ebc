package broker

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// socketFacts are what a descriptor is, read from the copy. They do not change while the socket lives, but for an IPv6
// socket that is turned into an IPv4 one, which is decided like one: the kernel takes the same addresses for it.
type socketFacts struct {
	family, kind, protocol int
}

// factsOf reads them; ENOTSOCK where it is no socket.
func factsOf(fd int) (socketFacts, unix.Errno) {
	var f socketFacts
	for _, o := range []struct {
		to     *int
		option int
	}{{&f.family, unix.SO_DOMAIN}, {&f.kind, unix.SO_TYPE}, {&f.protocol, unix.SO_PROTOCOL}} {
		v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, o.option)
		if err != nil {
			return f, errnoOf(err)
		}
		*o.to = v
	}
	return f, 0
}

func (f socketFacts) inet() bool { return f.family == unix.AF_INET || f.family == unix.AF_INET6 }

// word is the protocol as rules name it.
func (f socketFacts) word() string {
	switch {
	case f.inet() && f.kind == unix.SOCK_STREAM && f.protocol == unix.IPPROTO_TCP:
		return "tcp"
	case f.inet() && f.kind == unix.SOCK_DGRAM && f.protocol == unix.IPPROTO_UDP:
		return "udp"
	case f.family == unix.AF_UNIX:
		return "unix"
	}
	return "raw" // which no rule grants
}

// Lengths of addresses (linux/socket.h, linux/in6.h).
const (
	maxAddress   = 128
	familyLength = 2
	inet4Length  = 16
	inet6Short   = 24 // without a scope
	inet6Length  = 28
)

// copyAddress reads an address as the kernel does.
func copyAddress(n seccomp.Notification, at uint64, length int32) ([]byte, unix.Errno) {
	if length < 0 || length > maxAddress {
		return nil, unix.EINVAL
	}
	raw := make([]byte, length)
	return raw, copyIn(n.Thread, at, raw)
}

// target is an address that was read and understood, in the one form in which it is given to the kernel: what is judged
// is what is used.
type target struct {
	raw   []byte
	asked netip.AddrPort // what is judged; raw says this host where it says any
	none  bool           // AF_UNSPEC: connected to nothing, or sent to whom it is connected to
}

// purpose tells apart the calls that read one address differently.
type purpose int

const (
	toConnect purpose = iota
	toBind
	toSend
)

// inetTarget reads the address of an internet socket's call. Each case is one of the kernel's (net/ipv4/af_inet.c, udp.c,
// net/ipv6/af_inet6.c, udp.c, datagram.c); where a family is taken for another one, it is written as that one.
func inetTarget(f socketFacts, p purpose, raw []byte) (target, unix.Errno) {
	if len(raw) < familyLength {
		return target{}, unix.EINVAL
	}
	family := int(binary.NativeEndian.Uint16(raw))
	if family == unix.AF_UNSPEC {
		switch {
		case p == toConnect:
			return target{raw: unspecified(), none: true}, 0
		case p == toSend && f.family == unix.AF_INET6:
			return target{none: true}, 0 // as if none were given
		case f.family == unix.AF_INET6:
			return target{}, unix.EAFNOSUPPORT
		}
		family = unix.AF_INET // an IPv4 socket takes it for its own
		if len(raw) < inet4Length {
			return target{}, unix.EINVAL
		}
		if p == toBind && binary.NativeEndian.Uint32(raw[4:]) != 0 {
			return target{}, unix.EAFNOSUPPORT
		}
	}
	port := uint16(0)
	if len(raw) >= 4 {
		port = binary.BigEndian.Uint16(raw[2:])
	}
	switch {
	case family == unix.AF_INET && len(raw) >= inet4Length:
		asked := netip.AddrFrom4([4]byte(raw[4:8]))
		addr := asked
		if asked.IsUnspecified() && p != toBind {
			// The kernel goes to the socket's own address then, which need not be one that is allowed.
			addr = loopback4
		}
		return target{inet4(netip.AddrPortFrom(addr, port)), netip.AddrPortFrom(asked, port), false}, 0
	case family == unix.AF_INET6 && f.family == unix.AF_INET6 && len(raw) >= inet6Short:
		asked := netip.AddrFrom16([16]byte(raw[8:24]))
		addr := asked
		switch {
		case p == toBind:
		case asked.IsUnspecified():
			addr = netip.IPv6Loopback()
		case asked.Is4In6() && asked.Unmap().IsUnspecified():
			addr = netip.AddrFrom16(loopback4.As16())
		}
		canonical := inet6(netip.AddrPortFrom(addr, port))
		copy(canonical[4:8], raw[4:8]) // flow information
		if len(raw) >= inet6Length {
			copy(canonical[24:28], raw[24:28]) // scope
		}
		return target{canonical, netip.AddrPortFrom(asked, port), false}, 0
	case family == unix.AF_INET || family == unix.AF_INET6 && f.family == unix.AF_INET6:
		return target{}, unix.EINVAL
	}
	return target{}, unix.EAFNOSUPPORT
}

// unspecified is an address of AF_UNSPEC, which is 0.
func unspecified() []byte { return make([]byte, inet4Length) }

var loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})

func inet4(addr netip.AddrPort) []byte {
	raw := make([]byte, inet4Length)
	binary.NativeEndian.PutUint16(raw, unix.AF_INET)
	binary.BigEndian.PutUint16(raw[2:], addr.Port())
	a := addr.Addr().As4()
	copy(raw[4:], a[:])
	return raw
}

func inet6(addr netip.AddrPort) []byte {
	raw := make([]byte, inet6Length)
	binary.NativeEndian.PutUint16(raw, unix.AF_INET6)
	binary.BigEndian.PutUint16(raw[2:], addr.Port())
	a := addr.Addr().As16()
	copy(raw[8:], a[:])
	return raw
}

// peerOf reads an address that inet4 or inet6 wrote.
func peerOf(raw []byte) netip.AddrPort {
	port := binary.BigEndian.Uint16(raw[2:])
	if len(raw) == inet4Length {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])), port)
}

// boundTo gives the local address of an internet socket.
func boundTo(fd int) (netip.AddrPort, unix.Errno) {
	name, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, errnoOf(err)
	}
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)), 0
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port)), 0
	}
	return netip.AddrPort{}, unix.EAFNOSUPPORT
}
