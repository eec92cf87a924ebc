package broker

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// prepare decides on a message: where it goes and what goes with it. What is done here is done with the supervisor's
// capabilities, so that nothing passes that the kernel would let only some do.
func (s *sending) prepare(r *request) unix.Errno {
	switch {
	case r.flags&unix.MSG_FASTOPEN != 0:
		return unix.EOPNOTSUPP
	case r.flags&unix.MSG_ZEROCOPY != 0:
		return unix.ENOBUFS // as where the kernel has no room to remember; the caller copies then
	}
	var e unix.Errno
	switch {
	case s.facts.inet():
		e = s.prepareInet(r)
	case s.facts.family == unix.AF_UNIX:
		e = s.prepareUnix(r)
	case s.facts.family == unix.AF_NETLINK:
		e = prepareNetlink(r)
	default:
		e = unix.EACCES
	}
	if e != 0 {
		s.release()
	}
	return e
}

// release lets go of what belongs to a message.
func (s *sending) release() {
	for _, fd := range s.held {
		unix.Close(fd)
	}
	s.ready, s.name, s.control, s.held = false, nil, nil, nil
}

func (s *sending) prepareInet(r *request) unix.Errno {
	if s.control = r.control; len(r.control) > 0 {
		for c := range controls(r.control) {
			if c.data == nil || !plainControl[controlKind{c.level, c.kind}] {
				return unix.EPERM
			}
		}
	}
	if r.name == nil || s.stream() {
		byNoDevice(s.control, netip.AddrPort{})
		return 0 // a stream does not look at it
	}
	t, e := inetTarget(s.facts, toSend, r.name)
	byNoDevice(s.control, t.asked)
	if e != 0 || t.none {
		return e
	}
	s.name = t.raw
	if s.b.walled != nil && s.b.walled.inside(s.fd) { // judged as it leaves
		s.name = s.b.datagramTarget(s.n, s.facts, t, false)
		return 0
	}
	if at, ours := s.b.redirect(s.facts, t); ours {
		s.b.led.keep(s.fd, s.facts, t.asked)
		s.name = at
	} else if !s.b.allows(s.n, "sendto", s.facts, t) {
		return unix.ECONNREFUSED
	}
	return s.b.hearing.add(s.fd, peerOf(s.name))
}

func (s *sending) prepareUnix(r *request) unix.Errno {
	if e := s.rights(r.control); e != 0 {
		return e
	}
	switch {
	case r.name == nil, s.facts.kind == unix.SOCK_SEQPACKET: // which does not look at it
		return 0
	case s.stream():
		s.name = binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX) // its error is the same for each
		return 0
	}
	place, raw, e := s.b.reachUnix(s.n, "sendto", r.name)
	if e != 0 {
		return e
	}
	s.held, s.name, s.unpolled = append(s.held, place), raw, true
	return 0
}

// rights translates the descriptors of a message: those of the caller are fetched, and sent as ours.
func (s *sending) rights(control []byte) unix.Errno {
	var fds []int
	for c := range controls(control) {
		if c.data == nil {
			return unix.EINVAL
		}
		if c.level != unix.SOL_SOCKET || c.kind != unix.SCM_RIGHTS || len(c.data)%4 != 0 {
			return unix.EPERM // credentials would have to be the supervisor's
		}
		for at := 0; at < len(c.data); at += 4 {
			fd, e := s.b.fetch(s.n, int32(binary.NativeEndian.Uint32(c.data[at:])))
			if e != 0 {
				return e
			}
			s.held = append(s.held, fd)
			fds = append(fds, fd)
		}
	}
	if len(fds) == 0 {
		return 0
	}
	if !s.b.standing(s.n) {
		return unix.ESRCH // nobody learns it
	}
	s.control = unix.UnixRights(fds...)
	return 0
}

type controlKind struct{ level, kind int32 }

// plainControl is what a datagram may bring along: what any process may say of its own datagrams, and what sends them nowhere else.
var plainControl = map[controlKind]bool{
	{unix.SOL_IP, unix.IP_PKTINFO}:              true,
	{unix.SOL_IP, unix.IP_TTL}:                  true,
	{unix.SOL_IP, unix.IP_TOS}:                  true,
	{unix.SOL_IPV6, unix.IPV6_PKTINFO}:          true,
	{unix.SOL_IPV6, unix.IPV6_HOPLIMIT}:         true,
	{unix.SOL_IPV6, unix.IPV6_TCLASS}:           true,
	{unix.SOL_IPV6, unix.IPV6_DONTFRAG}:         true,
	{unix.SOL_UDP, unix.UDP_SEGMENT}:            true,
	{unix.SOL_SOCKET, unix.SO_TIMESTAMPING}:     true,
	{unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW}: true,
}

// byNoDevice takes the choice of a device out of what goes with a datagram, which would leave the machine by that one, also
// where it is for 127.0.0.1. To a group it says whose group is meant.
func byNoDevice(raw []byte, to netip.AddrPort) {
	if to.Addr().Unmap().IsMulticast() {
		return
	}
	for c := range controls(raw) {
		switch (controlKind{c.level, c.kind}) {
		case controlKind{unix.SOL_IP, unix.IP_PKTINFO}: // struct in_pktinfo
			clear(c.data[:min(len(c.data), 4)])
		case controlKind{unix.SOL_IPV6, unix.IPV6_PKTINFO}: // struct in6_pktinfo
			clear(c.data[min(len(c.data), 16):])
		}
	}
}

// control is one control message; data is nil where the list is malformed from there on.
type control struct {
	level, kind int32
	data        []byte
}

// controls walks over control messages as the kernel does.
func controls(raw []byte) func(func(control) bool) {
	const head = 16 // struct cmsghdr: length, level, type
	return func(yield func(control) bool) {
		for len(raw) >= head {
			length := binary.NativeEndian.Uint64(raw)
			if length < head || length > uint64(len(raw)) {
				yield(control{})
				return
			}
			c := control{int32(binary.NativeEndian.Uint32(raw[8:])), int32(binary.NativeEndian.Uint32(raw[12:])), raw[head:length:length]}
			if !yield(c) {
				return
			}
			raw = raw[min(uint64(len(raw)), (length+7)&^7):]
		}
	}
}

// brokenPipe gives the caller the signal that its own send would have given it.
func (b *Broker) brokenPipe(thread uint32) {
	if pidfd, _, err := b.threads.of(thread); err == nil {
		_ = unix.PidfdSendSignal(pidfd, unix.SIGPIPE, nil, 0)
	}
}

// placePath is a name for what a descriptor of ours refers to, whatever happens to its path.
func placePath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
