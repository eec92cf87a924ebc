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

// Up switches a device on.
func (n *Socket) Up(index int32) error {
	link := unix.IfInfomsg{Index: index, Flags: unix.IFF_UP, Change: unix.IFF_UP}
	return n.do(unix.RTM_NEWLINK, 0, structure(&link))
}

// Address puts one address on the loopback device, for itself alone. One that is there already is no error.
func (n *Socket) Address(a netip.Addr) error {
	header := unix.IfAddrmsg{Family: unix.AF_INET, Prefixlen: uint8(a.BitLen()), Index: Loopback}
	if a.Is6() {
		header.Family, header.Flags = unix.AF_INET6, unix.IFA_F_NODAD
	}
	err := n.do(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, structure(&header),
		attribute{unix.IFA_LOCAL, a.AsSlice()}, attribute{unix.IFA_ADDRESS, a.AsSlice()})
	if err == unix.EEXIST {
		return nil
	}
	return err
}

// Outward sends everything that is not local to a device.
func (n *Socket) Outward(index uint32, source netip.Addr) error {
	return n.Route(index, netip.PrefixFrom(netip.IPv6Unspecified(), 0), source)
}

// Route sends a network to a device, from an address. The family is the address's; a prefix of no bits is everything.
func (n *Socket) Route(index uint32, to netip.Prefix, source netip.Addr) error {
	route := unix.RtMsg{Family: unix.AF_INET, Dst_len: uint8(to.Bits()), Table: unix.RT_TABLE_MAIN, Protocol: unix.RTPROT_STATIC,
		Scope: unix.RT_SCOPE_LINK, Type: unix.RTN_UNICAST}
	if source.Is6() {
		route.Family, route.Scope = unix.AF_INET6, unix.RT_SCOPE_UNIVERSE
	}
	attributes := []attribute{{unix.RTA_OIF, number32(index)}, {unix.RTA_PREFSRC, source.AsSlice()}}
	if to.Bits() > 0 {
		attributes = append(attributes, attribute{unix.RTA_DST, to.Addr().AsSlice()})
	}
	return n.do(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_EXCL, structure(&route), attributes...)
}

// Pair makes a pair of connected devices without address resolution and gives the number of the first.
func (n *Socket) Pair(first, second string) (int32, error) {
	const infoKind, infoData, vethPeer = 1, 2, 1 // linux/if_link.h, linux/veth.h
	name := func(s string) attribute { return attribute{unix.IFLA_IFNAME, append([]byte(s), 0)} }
	link := unix.IfInfomsg{Flags: unix.IFF_UP | unix.IFF_NOARP, Change: unix.IFF_UP | unix.IFF_NOARP}
	peer := append(append([]byte(nil), structure(&link)...), encode(name(second))...)
	info := encode(attribute{infoKind, []byte("veth")}, attribute{infoData, encode(attribute{vethPeer, peer})})
	err := n.do(unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, structure(&link), name(first), attribute{unix.IFLA_LINKINFO, info})
	if err != nil {
		return 0, err
	}
	index, err := n.index(first)
	if err != nil {
		return 0, err
	}
	other, err := n.index(second)
	if err == nil {
		err = n.Up(other)
	}
	if err == nil {
		err = n.Up(index)
	}
	return index, err
}

// index asks for the number of a device by its name (netdevice(7)).
func (n *Socket) index(name string) (int32, error) {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, request); err != nil {
		return 0, err
	}
	return int32(request.Uint32()), nil
}
