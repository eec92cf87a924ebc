package broker

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A datagram socket gets a port with the first thing that it sends, and would then hear whoever sends to that port. What no IN
// rule lets be reached hears only those whom it has spoken to: a filter on the socket drops the rest. The program cannot take
// it off (the boundary refuses the options).

// Bounds of what is remembered: sockets, and the addresses that one of them hears. The oldest is forgotten.
const (
	maxHearing = 1024
	maxHeard   = 64
)

// hearing are the datagram sockets that hear some addresses only, by their cookies.
type hearing struct {
	peers map[uint64][]netip.AddrPort
	order []uint64
}

// add has a socket hear one more address. It does nothing for a socket that a rule let be reached.
func (h *hearing) add(fd int, peer netip.AddrPort) unix.Errno {
	cookie := cookieOf(fd)
	known, filtered := h.peers[cookie]
	if !filtered {
		if at, e := boundTo(fd); e != 0 {
			return e
		} else if at.Port() != 0 && !h.silent(fd) {
			return 0 // bound by a rule, or spoken with before it was forgotten here
		}
	}
	peer = netip.AddrPortFrom(peer.Addr().Unmap().WithZone(""), peer.Port())
	for _, have := range known {
		if have == peer {
			return 0
		}
	}
	if len(known) >= maxHeard {
		known = append(known[:0:0], known[1:]...)
	}
	return h.set(fd, cookie, append(known, peer))
}

// none has a socket hear nobody.
func (h *hearing) none(fd int) unix.Errno { return h.set(fd, cookieOf(fd), nil) }

// silent tells that the socket has a filter.
func (h *hearing) silent(fd int) bool {
	n, err := filterLength(fd)
	return err == nil && n > 0
}

func (h *hearing) set(fd int, cookie uint64, peers []netip.AddrPort) unix.Errno {
	if e := attach(fd, peers); e != 0 {
		return e
	}
	if cookie == 0 {
		return 0
	}
	if h.peers == nil {
		h.peers = map[uint64][]netip.AddrPort{}
	}
	if _, known := h.peers[cookie]; !known {
		if len(h.order) >= maxHearing {
			delete(h.peers, h.order[0])
			h.order = h.order[1:]
		}
		h.order = append(h.order, cookie)
	}
	h.peers[cookie] = peers
	return 0
}

// networkHeader is SKF_NET_OFF (linux/filter.h): offsets from there on are of the IP header; others are of the UDP header.
const networkHeader = 0xfff00000

// hears is the program of a socket filter that takes datagrams of these addresses.
func hears(peers []netip.AddrPort) []bpf.Instruction {
	drop, take := bpf.RetConstant{Val: 0}, bpf.RetConstant{Val: ^uint32(0)}
	var four, six []bpf.Instruction
	for _, p := range peers {
		a := p.Addr()
		var words []bpf.Instruction
		port := []bpf.Instruction{
			bpf.LoadAbsolute{Off: 0, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(p.Port()), SkipTrue: 1},
			take,
		}
		if a.Is4() {
			b := a.As4()
			words = []bpf.Instruction{bpf.LoadAbsolute{Off: networkHeader + 12, Size: 4},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(b[:]), SkipTrue: uint8(len(port))}}
			four = append(append(four, words...), port...)
			continue
		}
		b := a.As16()
		for i := range 4 {
			past := uint8(len(port) + 2*(3-i))
			words = append(words, bpf.LoadAbsolute{Off: networkHeader + 8 + uint32(4*i), Size: 4},
				bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(b[4*i:]), SkipTrue: past})
		}
		six = append(append(six, words...), port...)
	}
	four, six = append(four, drop), append(six, drop)
	code := []bpf.Instruction{
		bpf.LoadAbsolute{Off: networkHeader, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 4, SkipFalse: 1},
		bpf.Jump{Skip: uint32(len(six))},
	}
	return append(append(code, six...), four...)
}

func attach(fd int, peers []netip.AddrPort) unix.Errno {
	raw, err := bpf.Assemble(hears(peers))
	if err != nil {
		return unix.EINVAL
	}
	code := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return errnoOf(unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}))
}
