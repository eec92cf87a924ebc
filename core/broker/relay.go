package broker

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// relay carries datagrams between a walled sandbox and the addresses that rules allow. The sandbox's sockets stay in the
// sandbox: one of the host's, connected or not, can send to any address. Each datagram is judged by its addresses as the
// kernel sent it, so that it does not matter by which call that was, or what another thread wrote into memory meanwhile.
// Answers bear the address that they came from.
type relay struct {
	b    *Broker
	door *Door
	file *os.File // the door's Datagrams

	mu      sync.Mutex
	closed  bool
	streams map[flow]*stream
	inlets  map[uint16]*inlet
	stand   standIns
	running sync.WaitGroup
}

// stream is the host's side of one flow.
type stream struct {
	conn    *net.UDPConn
	answers flow // of what comes back

	mu    sync.Mutex
	last  []byte // the beginning of what was sent last, for an error that comes back
	until time.Time
}

const (
	// maxStreams bounds the sockets that a sandbox can have the supervisor open. The one that is idle longest goes.
	maxStreams = 256
	// streamTime is how long a stream without a datagram lives (RFC 4787 asks for two minutes at least).
	streamTime = 2 * time.Minute
	maxPacket  = 1<<16 + headerIP6
)

func newRelay(b *Broker, door *Door) *relay {
	r := &relay{b: b, door: door, file: os.NewFile(uintptr(door.Datagrams), "datagrams"), streams: map[flow]*stream{}, inlets: map[uint16]*inlet{}}
	r.running.Add(1)
	go r.outward()
	return r
}

// close returns when nothing runs any more, and the door is closed.
func (r *relay) close() {
	r.mu.Lock()
	r.closed = true
	for _, s := range r.streams {
		s.conn.Close()
	}
	for _, in := range r.inlets {
		in.conn.Close()
	}
	r.mu.Unlock()
	if raw, err := r.file.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { abandon(int(fd), r.door.Attempts) })
	}
	r.file.Close()
	r.running.Wait()
	for _, fd := range []int{r.door.Attempts, r.door.Raw, r.door.Raw6, r.door.List} {
		unix.Close(fd)
	}
}

// outward reads what is sent inside.
func (r *relay) outward() {
	defer r.running.Done()
	defer func() {
		if v := recover(); v != nil {
			r.b.note("the relay failed, and datagrams of the sandbox go nowhere from here on: %v", v)
		}
	}()
	buf := make([]byte, maxPacket)
	for {
		n, err := r.file.Read(buf)
		if err != nil {
			if errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.ENETDOWN) {
				continue
			}
			return
		}
		if p, ok := parsePacket(buf[:n]); ok && !r.door.local(p.to.Addr()) {
			r.take(p)
		}
	}
}

func (r *relay) take(p packet) {
	if r.throughInlet(p) {
		return
	}
	to, answers := p.to, p.back()
	if real, connected, ok := r.stand.standsFor(p.to.Addr()); ok {
		to = netip.AddrPortFrom(real, p.to.Port())
		if !connected {
			answers = r.fromReal(p.flow, to)
		}
	}
	if !r.allows(to) {
		_ = r.door.send(p.from.Addr(), unreachable(p.flow, unreachablePort, p.whole))
		return
	}
	s, err := r.stream(p.flow, to, answers)
	if err != nil {
		if told(err) { // no way there: the sender learns it as it would
			_ = r.door.send(p.from.Addr(), unreachable(p.flow, codeOf(err), p.whole))
		}
		return
	}
	s.touch(p.whole)
	if _, err := s.conn.Write(p.payload); told(err) {
		// Of a former datagram, or of this one: the sender learns it as it would.
		r.refused(p.flow, s, err)
	}
}

// fromReal is the way of what comes back from a real address to a socket that has sent to its stand-in.
func (r *relay) fromReal(f flow, real netip.AddrPort) flow {
	to := f.from
	if real.Addr().Is6() {
		to = netip.AddrPortFrom(netip.IPv6Loopback(), f.from.Port())
	}
	return flow{real, to}
}

func (r *relay) allows(to netip.AddrPort) bool {
	var d policy.Decision
	if r.b.config.Judge != nil {
		d = r.b.config.Judge.Net(policy.NetQuestion{Op: "sendto", Proto: "udp", Host: to.Addr().String(), Port: int(to.Port())})
	}
	if !d.Allow {
		r.b.denied(Denial{Op: "sendto", Subject: d.Subject, Decision: &d})
	}
	return d.Allow
}

// stream finds the host's side of a flow, or makes it. Where that fails, a datagram is lost, as networks do.
func (r *relay) stream(f flow, to netip.AddrPort, answers flow) (*stream, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.streams[f]; s != nil {
		return s, nil
	}
	if r.closed {
		return nil, net.ErrClosed
	}
	if len(r.streams) >= maxStreams {
		r.evict()
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return nil, err
	}
	s := &stream{conn: conn, answers: answers}
	r.streams[f] = s
	r.running.Add(1)
	go r.inward(f, s)
	return s, nil
}

// evict ends the stream that would end first.
func (r *relay) evict() {
	var oldest *stream
	var at time.Time
	for _, s := range r.streams {
		s.mu.Lock()
		if oldest == nil || s.until.Before(at) {
			oldest, at = s, s.until
		}
		s.mu.Unlock()
	}
	for f, s := range r.streams {
		if s == oldest {
			delete(r.streams, f)
			s.conn.Close()
		}
	}
}

// touch has a stream live on.
func (s *stream) touch(sent []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sent != nil {
		s.last = append(s.last[:0], sent[:min(len(sent), headerIP6+headerUDP)]...)
	}
	if until := time.Now().Add(streamTime); until.Sub(s.until) > time.Second {
		s.until = until
		_ = s.conn.SetReadDeadline(until)
	}
}

// inward reads what comes back.
func (r *relay) inward(f flow, s *stream) {
	defer r.running.Done()
	defer func() {
		_ = recover() // one flow less
		s.conn.Close()
		r.mu.Lock()
		if r.streams[f] == s {
			delete(r.streams, f)
		}
		r.mu.Unlock()
	}()
	buf := make([]byte, maxPacket)
	for {
		n, err := s.conn.Read(buf)
		switch {
		case err == nil:
			s.touch(nil)
			_ = r.door.send(s.answers.to.Addr(), datagram(s.answers, buf[:n]))
		case told(err):
			r.refused(f, s, err)
		default:
			return
		}
	}
}

// refused tells the sender what the network said of its datagrams.
func (r *relay) refused(f flow, s *stream, err error) {
	s.mu.Lock()
	original := append([]byte(nil), s.last...)
	s.mu.Unlock()
	_ = r.door.send(f.from.Addr(), unreachable(f, codeOf(err), original))
}

// codeOf is ICMP's word for an error of the network.
func codeOf(err error) uint8 {
	switch {
	case errors.Is(err, unix.EHOSTUNREACH):
		return unreachableHost
	case errors.Is(err, unix.ENETUNREACH):
		return unreachableNet
	}
	return unreachablePort
}

// told tells an error that the network sent back.
func told(err error) bool {
	return isErrno(err, unix.ECONNREFUSED) || isErrno(err, unix.EHOSTUNREACH) || isErrno(err, unix.ENETUNREACH)
}

func isErrno(err error, e unix.Errno) bool { return errors.Is(err, e) }
