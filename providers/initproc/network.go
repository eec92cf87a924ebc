//go:build linux && (amd64 || arm64)

package initproc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/internal/rtnl"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// stageError is a failure that a start may do without.
type stageError struct {
	stage string
	err   error
}

func (e *stageError) Error() string { return e.err.Error() }
func (e *stageError) Unwrap() error { return e.err }

// setUpNetwork makes the namespace's loopback device and hands the door to the supervisor: sockets that belong to
// this namespace wherever they are used. It runs with capabilities that the program never has.
func setUpNetwork(n *plan.Network) (notes []string, err error) {
	defer func() {
		if err != nil {
			err = &stageError{plan.StageNetwork, fmt.Errorf("a network of the sandbox's own: %w", err)}
		}
	}()
	if n.Cookie == 0 && n.File == 0 {
		return nil, errors.New("nothing tells it from the host's (/proc, or Linux 5.14)")
	}
	own, err := parseAll(n.Addresses)
	if err != nil {
		return nil, err
	}
	servers, err := parseAll(n.Servers)
	if err != nil {
		return nil, err
	}
	notes, err = devices(n, own)
	if err != nil {
		return nil, err
	}
	door, err := makeDoor(own, servers)
	defer closeAll(door)
	if err != nil {
		return nil, err
	}
	return notes, plan.Send(plan.FDControl, plan.Message{Kind: plan.Door}, door...)
}

func parseAll(texts []string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, t := range texts {
		a, err := netip.ParseAddr(t)
		if err != nil {
			return nil, err
		}
		out = append(out, a.Unmap())
	}
	return out, nil
}

// devices sets up lo and the routes.
func devices(n *plan.Network, own []netip.Addr) (notes []string, err error) {
	link, err := rtnl.Open()
	if err != nil {
		return nil, err
	}
	defer link.Close()
	if err := link.Up(); err != nil {
		return nil, fmt.Errorf("switch the loopback device on: %w", err)
	}
	for i, a := range own {
		if err := link.Address(a, n.Addresses[i] == n.Source6); err != nil {
			if a.Is6() {
				notes = append(notes, fmt.Sprintf("the sandbox's own network has no IPv6: %v", err))
				continue
			}
			return nil, fmt.Errorf("address %s: %w", a, err)
		}
	}
	source, err := netip.ParseAddr(n.Source)
	if err != nil {
		return nil, err
	}
	if err := link.Outward(source); err != nil {
		return nil, fmt.Errorf("route to the supervisor: %w", err)
	}
	if err := link.Route(plan.StandIns, netip.AddrFrom4([4]byte{127, 0, 0, 1})); err != nil {
		return nil, fmt.Errorf("route to services of the host: %w", err)
	}
	for _, text := range n.Reach6 {
		to, err := netip.ParsePrefix(text)
		if err == nil {
			err = rtnl.Outward6(to)
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("datagrams over IPv6 do not leave the sandbox: %v", err))
		}
	}
	// Else what is sent as one piece for the device to cut up (UDP_SEGMENT) is seen as one.
	if err := rtnl.SwitchOff("lo", "tx-udp-segmentation"); err != nil {
		notes = append(notes, fmt.Sprintf("datagrams that the kernel would cut up (UDP_SEGMENT) leave the sandbox as one: %v", err))
	}
	return notes, nil
}

// makeDoor makes the sockets in the order of plan.Door…. What was made is returned with an error too.
func makeDoor(own, servers []netip.Addr) (fds []int, err error) {
	for _, filter := range [][]bpf.Instruction{datagramFilter(own), attemptFilter(own)} {
		fd, err := packetSocket(filter)
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		// IPPROTO_RAW: whoever sends writes the header of the network layer too.
		fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
		if errors.Is(err, unix.EAFNOSUPPORT) && family == unix.AF_INET6 {
			fd, err = unix.Dup(fds[0]) // a kernel without IPv6: never used
		}
		if err != nil {
			return fds, fmt.Errorf("raw socket: %w", err)
		}
		fds = append(fds, fd)
	}
	list, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return fds, fmt.Errorf("list of sockets: %w", err)
	}
	fds = append(fds, list)
	for _, a := range servers {
		for _, kind := range []int{unix.SOCK_DGRAM, unix.SOCK_STREAM} {
			fd, err := serverSocket(a, kind)
			if err != nil {
				return fds, fmt.Errorf("name server %s: %w", a, err)
			}
			fds = append(fds, fd)
		}
	}
	return fds, nil
}

func serverSocket(a netip.Addr, kind int) (int, error) {
	const domain = 53
	family, to := unix.AF_INET, unix.Sockaddr(nil)
	if a.Is6() {
		family, to = unix.AF_INET6, &unix.SockaddrInet6{Port: domain, Addr: a.As16()}
	} else {
		to = &unix.SockaddrInet4{Port: domain, Addr: a.As4()}
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	err = unix.Bind(fd, to)
	if err == nil && kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, 64)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// packetSocket sees what a filter passes. The filter stands before the socket hears anything.
func packetSocket(filter []bpf.Instruction) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("packet socket: %w", err)
	}
	raw, err := bpf.Assemble(filter)
	if err == nil {
		code := make([]unix.SockFilter, len(raw))
		for i, r := range raw {
			code[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
		}
		program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
		err = unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL)})
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("packet socket: %w", err)
	}
	return fd, nil
}

func networkOrder(v uint16) uint16 {
	b := [2]byte{byte(v >> 8), byte(v)}
	return *(*uint16)(unsafe.Pointer(&b[0]))
}

// The filters see packets from the network header on, and pass, of what is sent from here, that to other addresses than
// 127.0.0.0/8 and the own ones. IPv6 addresses of its own are left to whoever reads: they are long.

var (
	pass   = bpf.RetConstant{Val: 1 << 18}
	refuse = bpf.RetConstant{Val: 0}
)

func must(v uint32) []bpf.Instruction {
	return []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: 1}, refuse}
}

func mustNot(v uint32) []bpf.Instruction {
	return []bpf.Instruction{bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipFalse: 1}, refuse}
}

// datagramFilter passes datagrams.
func datagramFilter(own []netip.Addr) []bpf.Instruction {
	four := append(append(outwardIPv4(own, unix.IPPROTO_UDP), pass), refuse)
	six := append([]bpf.Instruction{bpf.LoadAbsolute{Off: 6, Size: 1}}, must(unix.IPPROTO_UDP)...) // next header
	six = append(six, pass)
	code := append([]bpf.Instruction{bpf.LoadExtension{Num: bpf.ExtType}}, must(unix.PACKET_OUTGOING)...)
	code = append(code, bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipFalse: 1}, bpf.Jump{Skip: uint32(2 + len(four))})
	code = append(code, must(unix.ETH_P_IP)...)
	return append(append(code, four...), six...)
}

// attemptFilter passes the first packet of a TCP connection over IPv4: SYN without ACK.
func attemptFilter(own []netip.Addr) []bpf.Instruction {
	code := append([]bpf.Instruction{bpf.LoadExtension{Num: bpf.ExtType}}, must(unix.PACKET_OUTGOING)...)
	code = append(append(code, bpf.LoadExtension{Num: bpf.ExtProto}), must(unix.ETH_P_IP)...)
	code = append(code, outwardIPv4(own, unix.IPPROTO_TCP)...)
	code = append(code, bpf.LoadMemShift{Off: 0}, bpf.LoadIndirect{Off: 13, Size: 1}, // flags, behind the options
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: tcpACK | tcpSYN})
	return append(append(code, must(tcpSYN)...), pass)
}

// outwardIPv4 lets whole packets of a protocol through, that go outside.
func outwardIPv4(own []netip.Addr, protocol uint32) []bpf.Instruction {
	code := append([]bpf.Instruction{bpf.LoadAbsolute{Off: 9, Size: 1}}, must(protocol)...)
	code = append(append(code, bpf.LoadAbsolute{Off: 16, Size: 1}), mustNot(127)...) // destination
	code = append(code, bpf.LoadAbsolute{Off: 16, Size: 4})
	for _, a := range own {
		if a.Is4() {
			b := a.As4()
			code = append(code, mustNot(binary.BigEndian.Uint32(b[:]))...)
		}
	}
	code = append(code, bpf.LoadAbsolute{Off: 6, Size: 2}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0x1fff}) // fragment offset
	return append(code, must(0)...)
}

// Flags of a TCP header.
const (
	tcpSYN = 0x02
	tcpACK = 0x10
)

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
