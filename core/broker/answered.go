package broker

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Clients of names take an answer only from the server that they asked (musl, c-ares), and the answers of our resolver come
// from where it listens. So a receive that asks for the sender is done here for the sockets whose look-ups were led there,
// and tells the server that was asked. On all other sockets it goes on in the caller: it sends nothing, and its arguments
// say only where to put what comes.

// maxLed bounds the sockets that are remembered; the oldest is forgotten.
const maxLed = 1024

// led are the datagram sockets whose look-ups go to our resolver, by their cookies, and whom they asked last.
type led struct {
	asked map[uint64]netip.AddrPort
	order []uint64
}

func (l *led) keep(fd int, f socketFacts, server netip.AddrPort) {
	cookie := cookieOf(fd)
	if f.kind != unix.SOCK_DGRAM || cookie == 0 {
		return
	}
	if _, known := l.asked[cookie]; !known {
		if l.asked == nil {
			l.asked = map[uint64]netip.AddrPort{}
		}
		if len(l.order) >= maxLed {
			delete(l.asked, l.order[0])
			l.order = l.order[1:]
		}
		l.order = append(l.order, cookie)
	}
	l.asked[cookie] = server
}

// reception is a receive as the caller described it.
type reception struct {
	n          seccomp.Notification
	flags      int
	vectors    []vector
	name       uint64 // where the sender goes, and how much room is there
	room       uint32
	nameLength uint64 // where its length goes
	header     uint64 // of recvmsg, 0: none
}

// receive decides on recvfrom with an address, and on recvmsg.
func (b *Broker) receive(n seccomp.Notification) outcome {
	if len(b.led.asked) == 0 {
		return b.proceed(n)
	}
	fd, e := b.fetch(n, int32(n.Args[0]))
	if e != 0 {
		return b.proceed(n) // and the kernel says what is wrong with it
	}
	server, known := b.led.asked[cookieOf(fd)]
	r, e := readReception(n)
	if !known || e != 0 || r.flags&unix.MSG_ERRQUEUE != 0 {
		unix.Close(fd)
		return b.proceed(n)
	}
	o := b.receiveCopy(r, fd, server)
	if !o.later {
		unix.Close(fd)
	}
	return o
}

// proceed lets a receive go on in its caller.
func (b *Broker) proceed(n seccomp.Notification) outcome {
	_ = seccomp.Continue(b.config.Listener, n.ID)
	return elsewhere
}

func readReception(n seccomp.Notification) (reception, unix.Errno) {
	if n.NR == unix.SYS_RECVFROM {
		r := reception{n: n, flags: int(int32(n.Args[3])), vectors: []vector{{n.Args[1], n.Args[2]}}, name: n.Args[4], nameLength: n.Args[5]}
		var room [4]byte
		e := copyIn(n.Thread, n.Args[5], room[:])
		r.room = binary.NativeEndian.Uint32(room[:])
		return r, e
	}
	var raw [headerSize]byte
	if e := copyIn(n.Thread, n.Args[1], raw[:]); e != 0 {
		return reception{}, e
	}
	h := (*header)(unsafe.Pointer(&raw))
	if h.count > maxVectors || h.nameLength < 0 {
		return reception{}, unix.EMSGSIZE
	}
	r := reception{n: n, flags: int(int32(n.Args[2])), name: h.name, room: uint32(h.nameLength), header: n.Args[1]}
	r.nameLength = r.header + uint64(unsafe.Offsetof(h.nameLength))
	r.vectors = make([]vector, h.count)
	if h.count == 0 {
		return r, 0
	}
	return r, copyIn(n.Thread, h.vectors, unsafe.Slice((*byte)(unsafe.Pointer(&r.vectors[0])), int(h.count)*int(unsafe.Sizeof(vector{}))))
}

// receiveCopy receives, or waits for something to come.
func (b *Broker) receiveCopy(r reception, fd int, server netip.AddrPort) outcome {
	wait := r.flags&unix.MSG_DONTWAIT == 0 && blocking(fd)
	again := func() outcome {
		if !b.standing(r.n) {
			return elsewhere // and nothing is taken from the socket
		}
		o := b.receiveOnce(r, fd, server)
		if wait && o.errno == unix.EAGAIN {
			return elsewhere
		}
		return o
	}
	o := again()
	if !o.later {
		return o
	}
	p := &pending{n: r.n, fd: fd, again: again, deadline: receiveDeadline(fd)}
	p.interrupted = func() outcome {
		if p.deadline.IsZero() {
			return failed(restart)
		}
		return failed(unix.EINTR)
	}
	p.timeout = func() outcome { return failed(unix.EAGAIN) }
	return b.wait(p, unix.EPOLLIN)
}

// receiveDeadline is when SO_RCVTIMEO ends a receive that waits; zero: never.
func receiveDeadline(fd int) time.Time {
	tv, err := unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO)
	if err != nil || tv.Sec == 0 && tv.Usec == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(tv.Nano()))
}

func (b *Broker) receiveOnce(r reception, fd int, server netip.AddrPort) outcome {
	const largest = 65535 // a datagram
	total := uint64(0)
	for _, v := range r.vectors {
		total = min(total+min(v.length, largest), largest)
	}
	data := make([]byte, total)
	size, _, flags, from, err := unix.RecvmsgBuffers(fd, [][]byte{data}, nil, r.flags|unix.MSG_DONTWAIT)
	if err != nil {
		return failed(errnoOf(err))
	}
	left := data[:min(size, len(data))]
	var pieces []piece
	for _, v := range r.vectors {
		part := left[:min(uint64(len(left)), v.length)]
		pieces = append(pieces, piece{v.base, part})
		left = left[len(part):]
	}
	if e := b.copyOut(r.n, append(pieces, r.told(b.sender(from, server), flags)...)...); e != 0 {
		return failed(e)
	}
	return outcome{value: int64(size)}
}

// sender is the address that the caller is told, in the form of its socket's family.
func (b *Broker) sender(from unix.Sockaddr, server netip.AddrPort) []byte {
	switch a := from.(type) {
	case *unix.SockaddrInet4:
		at := netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
		if slices.Contains(b.dns, at) && server.Addr().Is4() {
			at = server
		}
		return inet4(at)
	case *unix.SockaddrInet6:
		at := netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
		if slices.Contains(b.dns, netip.AddrPortFrom(at.Addr().Unmap(), at.Port())) {
			at = netip.AddrPortFrom(netip.AddrFrom16(server.Addr().As16()), server.Port())
		}
		raw := inet6(at)
		binary.NativeEndian.PutUint32(raw[24:], a.ZoneId)
		return raw
	}
	return nil
}

// told is the sender and, for recvmsg, what else its header says of what came.
func (r *reception) told(sender []byte, flags int) []piece {
	var pieces []piece
	if r.name != 0 {
		length := binary.NativeEndian.AppendUint32(nil, uint32(len(sender)))
		pieces = append(pieces, piece{r.name, sender[:min(len(sender), int(r.room))]}, piece{r.nameLength, length})
	}
	if r.header == 0 {
		return pieces
	}
	rest := binary.NativeEndian.AppendUint64(nil, 0) // no control messages
	rest = binary.NativeEndian.AppendUint32(rest, uint32(flags&^unix.MSG_CMSG_CLOEXEC))
	return append(pieces, piece{r.header + uint64(unsafe.Offsetof(header{}.controlLen)), rest})
}
