package broker

import (
	"bufio"
	"encoding/hex"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Datagrams to a service on the host's own loopback: inside, its address is the sandbox's own, and a packet to it does not
// leave. Where a rule names it and nothing inside listens there, the datagram is given another address to go to, which
// stands for that one (of RFC 2544, nobody's). One stand-in is for sockets that are connected, which hear that address
// alone; the other for those that are not, which hear the real one.

// standIns are the addresses that stand for others.
type standIns struct {
	mu   sync.Mutex
	real []netip.Addr
}

var standInBase = [4]byte{198, 18, 0, 0}

// maxStandIns is how many addresses of the host's a sandbox can send to.
const maxStandIns = 256

// of gives the stand-in of an address.
func (s *standIns) of(real netip.Addr, connected bool) (netip.Addr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.real, real)
	if at < 0 {
		if len(s.real) >= maxStandIns {
			return netip.Addr{}, false
		}
		at = len(s.real)
		s.real = append(s.real, real)
	}
	number := 2 * at
	if connected {
		number++
	}
	raw := standInBase
	raw[2], raw[3] = byte(number>>8), byte(number)
	return netip.AddrFrom4(raw), true
}

// standsFor gives the address that a stand-in is for.
func (s *standIns) standsFor(a netip.Addr) (real netip.Addr, connected, ok bool) {
	if !a.Is4() {
		return netip.Addr{}, false, false
	}
	raw := a.As4()
	if raw[0] != standInBase[0] || raw[1] != standInBase[1] {
		return netip.Addr{}, false, false
	}
	number := int(raw[2])<<8 | int(raw[3])
	s.mu.Lock()
	defer s.mu.Unlock()
	if number/2 >= len(s.real) {
		return netip.Addr{}, false, false
	}
	return s.real[number/2], number%2 == 1, true
}

// any tells that there are some.
func (s *standIns) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.real) > 0
}

// datagramTarget is where a datagram goes that a program sends to an address: raw for the kernel.
func (b *Broker) datagramTarget(n seccomp.Notification, f socketFacts, t target, connected bool) []byte {
	w := b.walled
	to := t.asked.Addr().Unmap()
	if to.IsUnspecified() {
		to = loopback4
		if !t.asked.Addr().Unmap().Is4() {
			to = netip.IPv6Loopback()
		}
	}
	switch {
	case t.none, !w.door.local(to), w.serverAt(netip.AddrPortFrom(to, t.asked.Port())):
		return t.raw
	case !b.decide(b.question("sendto", f, t)).Allow:
		return t.raw
	case boundInside(n.Thread, netip.AddrPortFrom(to, t.asked.Port())):
		return t.raw
	}
	a, ok := w.relay.stand.of(to, connected)
	if !ok {
		return t.raw
	}
	if f.family == unix.AF_INET6 {
		return inet6(netip.AddrPortFrom(netip.AddrFrom16(a.As16()), t.asked.Port()))
	}
	return inet4(netip.AddrPortFrom(a, t.asked.Port()))
}

// serverAt tells the address at which names are answered inside.
func (w *walled) serverAt(a netip.AddrPort) bool {
	const domain = 53
	return a.Port() == domain && slices.Contains(w.door.Servers, a.Addr())
}

// boundInside tells whether some socket of the sandbox's network takes datagrams at an address (proc_net_tcp.rst; the
// table of UDP is alike).
func boundInside(thread uint32, at netip.AddrPort) bool {
	base := "/proc/" + strconv.FormatUint(uint64(thread), 10) + "/net/"
	for _, table := range []string{"udp", "udp6"} {
		f, err := os.Open(base + table)
		if err != nil {
			continue
		}
		found := false
		for lines := bufio.NewScanner(f); !found && lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 3 {
				continue
			}
			bound, ok := tableAddress(fields[1])
			found = ok && bound.Port() == at.Port() && (bound.Addr() == at.Addr() || bound.Addr().IsUnspecified())
		}
		f.Close()
		if found {
			return true
		}
	}
	return false
}

// tableAddress reads an address of such a table: words of the machine's order, and a port.
func tableAddress(text string) (netip.AddrPort, bool) {
	address, port, ok := strings.Cut(text, ":")
	raw, err := hex.DecodeString(address)
	number, e := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil || e != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		slices.Reverse(raw[i : i+4]) // both machines are little-endian
	}
	a, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(a.Unmap(), uint16(number)), ok
}
