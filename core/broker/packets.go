package broker

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Packets that the supervisor sends into a walled sandbox in the name of an address outside (RFC 791, 792, 768, 8200,
// 4443, 9293). They go to the sandbox's own kernel, whose word on them is final.

// flow is the two ends of what a socket inside sends.
type flow struct{ from, to netip.AddrPort }

func (f flow) back() flow { return flow{f.to, f.from} }

const (
	headerIP   = 20
	headerIP6  = 40
	headerUDP  = 8
	headerTCP  = 20
	headerICMP = 8
)

// sum adds up 16-bit words in ones' complement (RFC 1071).
func sum(sum uint32, data []byte) uint32 {
	for ; len(data) >= 2; data = data[2:] {
		sum += uint32(data[0])<<8 | uint32(data[1])
	}
	if len(data) == 1 {
		sum += uint32(data[0]) << 8
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return sum
}

func checksum(data []byte, parts ...[]byte) uint16 {
	s := sum(0, data)
	for _, p := range parts {
		s = sum(s, p)
	}
	return ^uint16(s)
}

// pseudo is the part of the network header that a checksum of the transport covers.
func pseudo(f flow, protocol uint8, length int) []byte {
	from, to := f.from.Addr().AsSlice(), f.to.Addr().AsSlice()
	out := append(append(make([]byte, 0, headerIP6), from...), to...)
	if f.from.Addr().Is4() {
		return append(out, 0, protocol, byte(length>>8), byte(length))
	}
	out = binary.BigEndian.AppendUint32(out, uint32(length))
	return append(out, 0, 0, 0, protocol)
}

// ip puts a network header before a payload.
func ip(f flow, protocol uint8, payload []byte) []byte {
	if !f.from.Addr().Is4() {
		out := make([]byte, headerIP6, headerIP6+len(payload))
		out[0] = 6 << 4
		binary.BigEndian.PutUint16(out[4:], uint16(len(payload)))
		out[6], out[7] = protocol, 64
		copy(out[8:], f.from.Addr().AsSlice())
		copy(out[24:], f.to.Addr().AsSlice())
		return append(out, payload...)
	}
	out := make([]byte, headerIP, headerIP+len(payload))
	out[0] = 4<<4 | headerIP/4
	binary.BigEndian.PutUint16(out[2:], uint16(headerIP+len(payload)))
	out[8], out[9] = 64, protocol
	copy(out[12:], f.from.Addr().AsSlice())
	copy(out[16:], f.to.Addr().AsSlice())
	binary.BigEndian.PutUint16(out[10:], checksum(out[:headerIP]))
	return append(out, payload...)
}

// datagram is a UDP packet.
func datagram(f flow, data []byte) []byte {
	out := make([]byte, headerUDP, headerUDP+len(data))
	binary.BigEndian.PutUint16(out, f.from.Port())
	binary.BigEndian.PutUint16(out[2:], f.to.Port())
	binary.BigEndian.PutUint16(out[4:], uint16(headerUDP+len(data)))
	out = append(out, data...)
	c := checksum(pseudo(f, unix.IPPROTO_UDP, len(out)), out)
	if c == 0 {
		c = 0xffff // 0 says that there is none
	}
	binary.BigEndian.PutUint16(out[6:], c)
	return ip(f, unix.IPPROTO_UDP, out)
}

// Flags of a TCP header.
const (
	tcpSYN = 0x02
	tcpRST = 0x04
	tcpACK = 0x10
)

// segment answers the first packet of a connection, whose number was seq.
func segment(f flow, seq uint32, flags uint8) []byte { return tcp(f, 0, seq+1, flags) }

// reset ends a connection that segment has made.
func reset(f flow) []byte { return tcp(f, 1, 0, tcpRST) }

func tcp(f flow, seq, acknowledged uint32, flags uint8) []byte {
	out := make([]byte, headerTCP)
	binary.BigEndian.PutUint16(out, f.from.Port())
	binary.BigEndian.PutUint16(out[2:], f.to.Port())
	binary.BigEndian.PutUint32(out[4:], seq)
	binary.BigEndian.PutUint32(out[8:], acknowledged)
	out[12], out[13] = headerTCP/4<<4, flags
	binary.BigEndian.PutUint16(out[14:], 0xffff)
	binary.BigEndian.PutUint16(out[16:], checksum(pseudo(f, unix.IPPROTO_TCP, len(out)), out))
	return ip(f, unix.IPPROTO_TCP, out)
}

// Codes of ICMP's "destination unreachable".
const (
	unreachableNet  = 0
	unreachableHost = 1
	unreachablePort = 3
)

// unreachable tells the sender of a packet, of which original is the beginning, that it went nowhere.
func unreachable(f flow, code uint8, original []byte) []byte {
	original = original[:min(len(original), 512)]
	out := make([]byte, headerICMP, headerICMP+len(original))
	back := f.back()
	if f.from.Addr().Is4() {
		out[0], out[1] = 3, code
		out = append(out, original...)
		binary.BigEndian.PutUint16(out[2:], checksum(out))
		return ip(back, unix.IPPROTO_ICMP, out)
	}
	out[0] = 1
	switch code { // RFC 4443
	case unreachableNet:
		out[1] = 0
	case unreachableHost:
		out[1] = 3
	default:
		out[1] = 4
	}
	out = append(out, original...)
	binary.BigEndian.PutUint16(out[2:], checksum(pseudo(back, unix.IPPROTO_ICMPV6, len(out)), out))
	return ip(back, unix.IPPROTO_ICMPV6, out)
}

// send puts a packet into the sandbox's network.
func (d *Door) send(to netip.Addr, packet []byte) error {
	if to.Is4() {
		return unix.Sendto(d.Raw, packet, unix.MSG_DONTWAIT, &unix.SockaddrInet4{Addr: to.As4()})
	}
	return unix.Sendto(d.Raw6, packet, unix.MSG_DONTWAIT, &unix.SockaddrInet6{Addr: to.As16()})
}

// packet is one that was sent from inside.
type packet struct {
	flow
	whole   []byte // from the network header on
	payload []byte // from behind the transport's
	seq     uint32 // TCP
}

// parsePacket reads a packet of UDP, or the first of a TCP connection. The sandbox's kernel wrote the headers, for all
// that it must not be believed to have been whole.
func parsePacket(raw []byte) (p packet, ok bool) {
	if len(raw) < 1 {
		return p, false
	}
	p.whole = raw
	var from, to netip.Addr
	var protocol uint8
	var rest []byte
	switch raw[0] >> 4 {
	case 4:
		header := int(raw[0]&0xf) * 4
		if header < headerIP || len(raw) < header {
			return p, false
		}
		from, to = netip.AddrFrom4([4]byte(raw[12:16])), netip.AddrFrom4([4]byte(raw[16:20]))
		protocol, rest = raw[9], raw[header:]
	case 6:
		if len(raw) < headerIP6 {
			return p, false
		}
		from, to = netip.AddrFrom16([16]byte(raw[8:24])), netip.AddrFrom16([16]byte(raw[24:40]))
		protocol, rest = raw[6], raw[headerIP6:]
	default:
		return p, false
	}
	if len(rest) < headerUDP {
		return p, false
	}
	p.from = netip.AddrPortFrom(from, binary.BigEndian.Uint16(rest))
	p.to = netip.AddrPortFrom(to, binary.BigEndian.Uint16(rest[2:]))
	switch protocol {
	case unix.IPPROTO_UDP:
		length := int(binary.BigEndian.Uint16(rest[4:]))
		if length < headerUDP || length > len(rest) {
			return p, false
		}
		p.payload = rest[headerUDP:length]
	case unix.IPPROTO_TCP:
		p.seq = binary.BigEndian.Uint32(rest[4:])
	default:
		return p, false
	}
	return p, true
}
