package broker

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// listeners asks the kernel what listens in a walled sandbox's network (sock_diag(7)), which takes a fraction of the time of a
// connection that is refused.
type listeners struct {
	socket  int // the door's
	probed  bool
	present bool // this kernel tells
}

// none tells that nothing takes connections at an address inside. False where something does, and where that cannot be told.
func (l *listeners) none(at netip.AddrPort) bool {
	if !l.probed {
		l.probed = true
		// An answer about no socket at all: without the part of the kernel that lists TCP, "none" would be all it ever says.
		kind, e := l.ask(netip.AddrPort{}, unix.NLM_F_DUMP)
		l.present = kind == unix.NLMSG_DONE && e == 0
	}
	if !l.present {
		return false
	}
	kind, e := l.ask(at, 0)
	return kind == unix.NLMSG_ERROR && e == unix.ENOENT
}

// ask gives the kind of the first message of the answer, and its error number where it has one.
func (l *listeners) ask(at netip.AddrPort, flags uint16) (kind uint16, errno unix.Errno) {
	// struct inet_diag_req_v2 (linux/inet_diag.h)
	const (
		length               = 56
		source, device, mark = 12, 44, 48 // offsets of the listener's address, of the interface, of a cookie that fits all
		loopback             = 1          // the number of lo in each network
	)
	e := binary.NativeEndian
	sequence := listings.Add(1)
	var request [unix.NLMSG_HDRLEN + length]byte
	e.PutUint32(request[:], uint32(len(request)))
	e.PutUint16(request[4:], diagByFamily)
	e.PutUint16(request[6:], unix.NLM_F_REQUEST|flags)
	e.PutUint32(request[8:], sequence)
	body := request[unix.NLMSG_HDRLEN:]
	body[0], body[1] = unix.AF_INET, unix.IPPROTO_TCP
	addr := at.Addr().Unmap()
	if addr.Is6() {
		body[0] = unix.AF_INET6
	}
	copy(body[source:], addr.AsSlice())
	binary.BigEndian.PutUint16(body[8:], at.Port())
	e.PutUint32(body[device:], loopback)
	e.PutUint64(body[mark:], ^uint64(0))
	if err := unix.Sendto(l.socket, request[:], unix.MSG_DONTWAIT, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, errnoOf(err)
	}
	var answer [2048]byte
	for {
		n, _, err := unix.Recvfrom(l.socket, answer[:], unix.MSG_DONTWAIT) // the kernel has answered by now
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, errnoOf(err)
		case n < unix.NLMSG_HDRLEN || e.Uint32(answer[8:]) != sequence: // what an earlier request has left unread
			continue
		}
		if kind = e.Uint16(answer[4:]); (kind == unix.NLMSG_ERROR || kind == unix.NLMSG_DONE) && n >= unix.NLMSG_HDRLEN+4 {
			errno = unix.Errno(-int32(e.Uint32(answer[unix.NLMSG_HDRLEN:])))
		}
		return kind, errno
	}
}
