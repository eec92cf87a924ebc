package broker

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Sizes of what a send may hold. The kernel's own are as large (UIO_MAXIOV, optmem); a datagram is never larger, and a
// stream is sent in steps.
const (
	maxVectors = 1024
	maxControl = 20 << 10
	maxStep    = 256 << 10
	maxSteps   = 8 // at a time
)

// header is struct msghdr as it lies in memory.
type header struct {
	name       uint64
	nameLength int32
	_          uint32
	vectors    uint64
	count      uint64
	control    uint64
	controlLen uint64
	flags      int32
	_          uint32
}

const (
	headerSize = 56
	manySize   = 64 // struct mmsghdr: a header and a length
)

var _ [headerSize]byte = [unsafe.Sizeof(header{})]byte{}

// vector is struct iovec.
type vector struct{ base, length uint64 }

// request is a send as the caller described it. Its data is read as it is sent.
type request struct {
	n       seccomp.Notification
	flags   int
	name    []byte // nil: none
	control []byte
	vectors []vector
	total   uint64
}

// sendto with an address.
func (b *Broker) sendto(n seccomp.Notification) outcome {
	name, e := copyAddress(n, n.Args[4], int32(n.Args[5]))
	if e != 0 {
		return failed(e)
	}
	if len(name) == 0 {
		name = nil
	}
	r := &request{n: n, flags: int(int32(n.Args[3])), name: name, vectors: []vector{{n.Args[1], n.Args[2]}}, total: n.Args[2]}
	return b.perform(&sending{b: b, n: n, count: 1, request: r})
}

func (b *Broker) sendmsg(n seccomp.Notification) outcome {
	var raw [headerSize]byte
	if e := copyIn(n.Thread, n.Args[1], raw[:]); e != 0 {
		return failed(e)
	}
	r, e := readRequest(n, int(int32(n.Args[2])), raw[:])
	if e != 0 {
		return failed(e)
	}
	return b.perform(&sending{b: b, n: n, count: 1, request: r})
}

// sendmmsg reads each message when its turn comes, as the kernel does: a thousand that wait would be memory of the supervisor's.
func (b *Broker) sendmmsg(n seccomp.Notification) outcome {
	count := min(int(uint32(n.Args[2])), maxVectors)
	if count == 0 {
		return failed(0)
	}
	s := &sending{b: b, n: n, count: count, many: true}
	if e := s.read(); e != 0 {
		return failed(e)
	}
	return b.perform(s)
}

// readRequest copies all of a message but its data.
func readRequest(n seccomp.Notification, flags int, raw []byte) (*request, unix.Errno) {
	var h header
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&h)), headerSize), raw)
	r := &request{n: n, flags: flags}
	var e unix.Errno
	if h.name != 0 && h.nameLength != 0 {
		if h.nameLength < 0 {
			return nil, unix.EINVAL
		}
		if r.name, e = copyAddress(n, h.name, min(h.nameLength, maxAddress)); e != 0 {
			return nil, e
		}
	}
	if h.count > maxVectors {
		return nil, unix.EMSGSIZE
	}
	if h.controlLen > maxControl {
		return nil, unix.ENOBUFS
	}
	r.control = make([]byte, h.controlLen)
	if e = copyIn(n.Thread, h.control, r.control); e != 0 {
		return nil, e
	}
	r.vectors = make([]vector, h.count)
	if e = copyIn(n.Thread, h.vectors, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(r.vectors))), 16*len(r.vectors))); e != 0 {
		return nil, e
	}
	for _, v := range r.vectors {
		r.total += v.length
		if v.length > 1<<47 || r.total > 1<<47 {
			return nil, unix.EINVAL
		}
	}
	return r, 0
}

// data copies what is sent next of a request, beginning at from.
func (r *request) data(from uint64, most int) ([]byte, unix.Errno) {
	left := min(r.total-from, uint64(most))
	out := make([]byte, left)
	to := out
	for _, v := range r.vectors {
		if from >= v.length {
			from -= v.length
			continue
		}
		part := min(v.length-from, uint64(len(to)))
		if e := copyIn(r.n.Thread, v.base+from, to[:part]); e != 0 {
			return nil, e
		}
		from, to = 0, to[part:]
		if len(to) == 0 {
			break
		}
	}
	return out, 0
}

// perform fetches the descriptor and sends.
func (b *Broker) perform(s *sending) outcome {
	var e unix.Errno
	if s.fd, e = b.fetch(s.n, int32(s.n.Args[0])); e != 0 {
		return failed(e)
	}
	o := elsewhere
	switch {
	case !b.standing(s.n):
		unix.Close(s.fd)
		return o
	default:
		if s.facts, e = factsOf(s.fd); e != 0 {
			o = failed(e)
		} else {
			o = s.begin()
		}
	}
	if !o.later {
		unix.Close(s.fd)
	}
	return o
}

// begin sends, or waits with the descriptor.
func (s *sending) begin() outcome {
	o := s.step()
	if !o.later {
		return o
	}
	p := &pending{n: s.n, fd: s.fd, again: s.step, gone: s.release, deadline: sendDeadline(s.fd)}
	p.timeout = func() outcome { return s.stopped(unix.EAGAIN) }
	p.interrupted = func() outcome {
		if p.deadline.IsZero() {
			return s.stopped(restart)
		}
		return s.stopped(unix.EINTR)
	}
	if s.unpolled {
		return s.b.wait(p, 0)
	}
	return s.b.wait(p, unix.EPOLLOUT)
}

// sending is a send under way.
type sending struct {
	b     *Broker
	n     seccomp.Notification
	fd    int
	facts socketFacts
	count int  // of messages
	many  bool // by sendmmsg, which wants to know what was sent of each

	at      int      // the message
	request *request // it, once it was read
	sent    uint64   // of that message
	whole   uint64   // of the message before

	ready    bool   // the message has been judged; the next three are its
	name     []byte // nil: none
	control  []byte
	held     []int // descriptors that must stay open until it is sent
	unpolled bool  // no event tells that it may go on
}

// header is where the message lies in the caller's memory, of several.
func (s *sending) header() uint64 { return s.n.Args[1] + uint64(s.at*manySize) }

// read reads the next of several messages.
func (s *sending) read() (e unix.Errno) {
	var raw [headerSize]byte
	if e = copyIn(s.n.Thread, s.header(), raw[:]); e == 0 {
		s.request, e = readRequest(s.n, int(int32(s.n.Args[3])), raw[:])
	}
	return e
}

// step sends until all is sent, or the socket takes no more and the caller would wait.
func (s *sending) step() outcome {
	for s.at < s.count {
		if s.request == nil {
			if e := s.read(); e != 0 {
				return s.stopped(e)
			}
		}
		r := s.request
		if !s.ready {
			if e := s.prepare(r); e != 0 {
				return s.stopped(e)
			}
			s.ready = true
		}
		e := s.message(r)
		if e == unix.EAGAIN && r.flags&unix.MSG_DONTWAIT == 0 && blocking(s.fd) {
			return elsewhere
		}
		if e != 0 {
			return s.stopped(e)
		}
		s.done()
	}
	return s.stopped(0)
}

// message sends one message, or what is left of it.
func (s *sending) message(r *request) unix.Errno {
	for step := 0; ; step++ {
		if step == maxSteps {
			return unix.EAGAIN // others have calls, too; a caller that would not wait has a part sent, as often with it
		}
		data, e := r.data(s.sent, s.most())
		if e != 0 {
			return e
		}
		if s.facts.family == unix.AF_NETLINK && !questionsOnly(data) {
			return unix.EPERM
		}
		if !s.b.standing(s.n) {
			return unix.ESRCH // it may be another's memory that was read, and nobody learns it
		}
		m := message{name: s.name, data: data}
		if s.sent == 0 {
			m.control = s.control
		}
		flags := r.flags
		last := s.sent+uint64(len(data)) == r.total
		if !last && s.stream() {
			flags |= unix.MSG_MORE
		}
		k, e := sendOnce(s.fd, m, flags)
		if e == unix.EPIPE && r.flags&unix.MSG_NOSIGNAL == 0 && s.stream() && s.sent == 0 {
			s.b.brokenPipe(s.n.Thread)
		}
		if e != 0 {
			return e
		}
		s.sent += uint64(k)
		if !s.stream() || s.sent == r.total {
			return 0
		}
	}
}

func (s *sending) stream() bool { return s.facts.kind == unix.SOCK_STREAM }

// most is how much is read of the caller at once. A datagram goes whole or not at all: a little more than can go is enough
// to get the kernel's error.
func (s *sending) most() int {
	if s.stream() {
		return maxStep
	}
	return 8 << 20
}

// done goes on to the next message.
func (s *sending) done() {
	s.report()
	s.whole, s.at, s.sent, s.request = s.sent, s.at+1, 0, nil
	s.release()
}

// report writes what was sent of a message of sendmmsg into the caller's memory. That it cannot be written is the
// caller's own loss.
func (s *sending) report() {
	if !s.many {
		return
	}
	var raw [4]byte
	binary.NativeEndian.PutUint32(raw[:], uint32(s.sent))
	_ = s.b.copyOut(s.n, piece{s.header() + headerSize, raw[:]})
}

// stopped is the answer where it goes no further. What was sent counts before the error.
func (s *sending) stopped(e unix.Errno) outcome {
	if s.sent > 0 {
		s.done()
	}
	s.release()
	switch {
	case s.at == 0:
		return failed(e)
	case !s.many:
		return outcome{value: int64(s.whole)}
	}
	return outcome{value: int64(s.at)}
}
