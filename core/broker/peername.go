package broker

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

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
	return failed(b.copyOut(n, piece{n.Args[1], raw[:min(int(room), len(raw))]}, piece{n.Args[2], size[:]})), true
}
