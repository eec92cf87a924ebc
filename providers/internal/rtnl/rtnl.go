//go:build linux && (amd64 || arm64)

// Package rtnl sets up the devices of a network namespace: the few requests of rtnetlink(7) that init needs.
package rtnl

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket is a route socket of the network namespace in which it was opened.
type Socket struct {
	fd  int
	seq uint32
}

// Open makes one in the network namespace of the calling thread.
func Open() (*Socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("netlink: %w", err)
	}
	return &Socket{fd: fd}, nil
}

// Close closes it.
func (n *Socket) Close() { unix.Close(n.fd) }

// attribute is one struct rtattr.
type attribute struct {
	kind uint16
	data []byte
}

func number32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

// structure is the memory of a kernel structure without pointers.
func structure[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

// encode lays attributes out one after the other, each aligned to four bytes.
func encode(attributes ...attribute) []byte {
	var out []byte
	for _, a := range attributes {
		out = binary.NativeEndian.AppendUint16(out, uint16(unix.SizeofRtAttr+len(a.data)))
		out = binary.NativeEndian.AppendUint16(out, a.kind)
		out = append(out, a.data...)
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
	}
	return out
}

// do sends one request and waits for its acknowledgement.
func (n *Socket) do(kind, flags uint16, body []byte, attributes ...attribute) error {
	n.seq++
	payload := append(append([]byte(nil), body...), encode(attributes...)...)
	header := unix.NlMsghdr{Len: uint32(unix.SizeofNlMsghdr + len(payload)), Type: kind,
		Flags: unix.NLM_F_REQUEST | unix.NLM_F_ACK | flags, Seq: n.seq}
	message := append(append([]byte(nil), structure(&header)...), payload...)
	if err := unix.Sendto(n.fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 8192)
	for {
		got, _, err := unix.Recvfrom(n.fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if got < unix.SizeofNlMsghdr+4 {
			return unix.EBADMSG
		}
		answer := (*unix.NlMsghdr)(unsafe.Pointer(&buf[0]))
		if answer.Seq != n.seq || answer.Type != unix.NLMSG_ERROR {
			continue
		}
		if code := int32(binary.NativeEndian.Uint32(buf[unix.SizeofNlMsghdr:])); code != 0 {
			return unix.Errno(-code)
		}
		return nil
	}
}

// Loopback is the number of lo in every network namespace.
const Loopback = 1

// largest is the size of the largest packet that there is, one of IPv6. The loopback device's own is a little less.
const largest = 40 + 0xffff

// Up switches the loopback device on, for packets of every size: pieces of larger ones would not be told from other packets.
func (n *Socket) Up() error {
	link := unix.IfInfomsg{Index: Loopback, Flags: unix.IFF_UP, Change: unix.IFF_UP}
	return n.do(unix.RTM_NEWLINK, 0, structure(&link), attribute{unix.IFLA_MTU, number32(largest)})
}

// Address puts one address on the loopback device, for itself alone. One that is there already is no error. One of IPv6 that
// is no source is never what a packet comes from by itself; for IPv4 the routes say that.
func (n *Socket) Address(a netip.Addr, source bool) error {
	header := unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: uint8(a.BitLen()), Index: Loopback}
	attributes := []attribute{{unix.IFA_LOCAL, a.AsSlice()}, {unix.IFA_ADDRESS, a.AsSlice()}}
	if a.Is6() {
		header.Family, header.Flags = unix.AF_INET6, unix.IFA_F_NODAD
		if !source {
			const forever = ^uint32(0)
			life := [4]uint32{0, forever} // struct ifa_cacheinfo: preferred, valid
			attributes = append(attributes, attribute{unix.IFA_CACHEINFO, structure(&life)})
		}
	}
	err := n.do(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, structure(&header), attributes...)
	if err == unix.EEXIST {
		return nil
	}
	return err
}

// Outward sends everything of IPv4 that is not local to the loopback device, from an address.
func (n *Socket) Outward(source netip.Addr) error {
	return n.Route(netip.PrefixFrom(netip.IPv4Unspecified(), 0), source)
}

// Route sends a network of IPv4 to the loopback device.
func (n *Socket) Route(to netip.Prefix, source netip.Addr) error {
	route := unix.RtMsg{Family: unix.AF_INET, Dst_len: uint8(to.Bits()), Table: unix.RT_TABLE_MAIN, Protocol: unix.RTPROT_STATIC,
		Scope: unix.RT_SCOPE_LINK, Type: unix.RTN_UNICAST}
	attributes := []attribute{{unix.RTA_OIF, number32(Loopback)}, {unix.RTA_PREFSRC, source.AsSlice()}}
	if to.Bits() > 0 {
		attributes = append(attributes, attribute{unix.RTA_DST, to.Addr().AsSlice()})
	}
	return n.do(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, structure(&route), attributes...)
}

// Outward6 has the loopback device take IPv6 packets for the addresses of a network that are not its own, and drop them behind
// it, as it does those of IPv4 by [Socket.Outward]. By netlink such a route becomes one that refuses (fib6_is_reject in
// net/ipv6/route.c), unless it is a local one, whose packets reach whoever listens here. The older request tells the two
// parts of that apart: a route that may lead to the loopback device, and packets that are to be forwarded, which nobody does.
func Outward6(to netip.Prefix) error {
	const up, local = 0x1, 0x80000000 // RTF_UP, RTF_LOCAL
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	route := struct { // in6_rtmsg (linux/ipv6_route.h)
		to, from, by   [16]byte
		kind           uint32
		length, origin uint16
		metric         uint32
		info           uint64
		flags          uint32
		index          int32
	}{to: to.Addr().As16(), length: uint16(to.Bits()), kind: unix.RTN_UNICAST, metric: 1, flags: up | local, index: Loopback}
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCADDRT, uintptr(unsafe.Pointer(&route))); e != 0 {
		return e
	}
	return nil
}
