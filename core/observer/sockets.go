//go:build linux && (amd64 || arm64)

package observer

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/resolver"
)

// Lengths and offsets of structures (linux/socket.h, linux/un.h), the same on both architectures.
const (
	maxAddress    = 128
	maxQuery      = 512 // of a question to a name server
	maxMessages   = 16
	headerLength  = 56 // struct msghdr
	messageLength = 64 // struct mmsghdr
)

const portOfNames = 53

// ops are the socket calls by the words of the audit events.
var ops = map[int32]string{unix.SYS_CONNECT: "connect", unix.SYS_BIND: "bind", unix.SYS_LISTEN: "listen"}

// socket reports a connection, an address that is taken, or one that is listened on.
func (c *call) socket() ([]learn.Observation, error) {
	var raw []byte
	if c.nr != unix.SYS_LISTEN {
		var err error
		if raw, err = c.address(c.args[1], uint64(int32(c.args[2]))); err != nil {
			return nil, err
		}
	}
	return c.reached(ops[c.nr], raw)
}

// address copies a socket's address.
func (c *call) address(at, length uint64) ([]byte, error) {
	if length < 2 || length > maxAddress {
		return nil, unix.EINVAL
	}
	raw := make([]byte, length)
	if e := c.thread.Memory(at, raw); e != 0 {
		return nil, e
	}
	return raw, nil
}

// reached says what a socket does with an address; nil: with the one that it has.
func (c *call) reached(op string, raw []byte) ([]learn.Observation, error) {
	if raw != nil && binary.NativeEndian.Uint16(raw) == unix.AF_UNIX {
		return c.local(op, raw[2:]), nil
	}
	fd, err := c.thread.Copy(int(int32(c.args[0])))
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	proto := protocol(fd)
	var at netip.AddrPort
	ok := false
	if raw != nil {
		at, ok = endpoint(raw)
	} else {
		at, ok = boundTo(fd)
	}
	if !ok || proto == "" || op != "bind" && at.Port() == portOfNames && nameServer(at.Addr()) {
		return nil, nil
	}
	return network(op, proto, at), nil
}

// nameServer tells one of the machine's, which the C library asks by itself: the names that it asks for are seen instead.
func nameServer(a netip.Addr) bool {
	return slices.ContainsFunc(nameServers(), func(s netip.AddrPort) bool { return s.Addr().Unmap() == a.Unmap().WithZone("") })
}

var nameServers = sync.OnceValue(func() []netip.AddrPort { return resolver.ReadSystem().Servers })

func network(op, proto string, at netip.AddrPort) []learn.Observation {
	return []learn.Observation{{Family: learn.FamilyNet, Op: op, Event: "socket." + op, Proto: proto,
		Host: at.Addr().Unmap().WithZone("").String(), Port: int(at.Port())}}
}

// protocol is the socket's as rules name it, "" where no rule could.
func protocol(fd int) string {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_INET && domain != unix.AF_INET6 {
		return ""
	}
	kind, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	switch kind {
	case unix.SOCK_STREAM:
		return "tcp"
	case unix.SOCK_DGRAM:
		return "udp"
	}
	return "raw"
}

// endpoint reads an address of the internet families.
func endpoint(raw []byte) (netip.AddrPort, bool) {
	switch family := binary.NativeEndian.Uint16(raw); {
	case family == unix.AF_INET && len(raw) >= 8:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), binary.BigEndian.Uint16(raw[2:])), true
	case family == unix.AF_INET6 && len(raw) >= 24:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])), binary.BigEndian.Uint16(raw[2:])), true
	}
	return netip.AddrPort{}, false
}

func boundTo(fd int) (netip.AddrPort, bool) {
	name, err := unix.Getsockname(fd)
	return addressOf(name, err)
}

func addressOf(name unix.Sockaddr, err error) (netip.AddrPort, bool) {
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)), err == nil
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port)), err == nil
	}
	return netip.AddrPort{}, false
}

// local reports a unix socket by its path. One that is not there is not reached.
func (c *call) local(op string, name []byte) []learn.Observation {
	seen := learn.Observation{Family: learn.FamilyNet, Op: op, Event: "socket." + op, Proto: "unix"}
	if len(name) == 0 {
		return nil
	}
	if name[0] == 0 {
		if len(name) == 1 {
			return nil
		}
		seen.Host = "@" + strings.ReplaceAll(string(name[1:]), "\x00", "@")
		return []learn.Observation{seen}
	}
	path, _, _ := strings.Cut(string(name), "\x00")
	if op == "bind" {
		one, err := c.made(op, unix.AT_FDCWD, path)
		if err != nil || len(one) == 0 {
			return nil
		}
		seen.Host = one[0].Subject
		return []learn.Observation{seen}
	}
	if !filepath.IsAbs(path) {
		folder, err := os.Readlink(c.thread.Proc("cwd"))
		if err != nil {
			return nil
		}
		path = filepath.Join(folder, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	seen.Host = real
	return []learn.Observation{seen}
}

// send reports a datagram to an address, or a question to a name server on a connected socket.
func (c *call) send() ([]learn.Observation, error) {
	if c.args[4] != 0 {
		raw, err := c.address(c.args[4], uint64(uint32(c.args[5])))
		if err != nil {
			return nil, err
		}
		if at, ok := endpoint(raw); ok && at.Port() == portOfNames {
			return c.question(c.args[1], c.args[2])
		}
		return c.reached("sendto", raw)
	}
	return c.asked(c.args[1], c.args[2])
}

// asked reports the name in a question to a name server, where the socket is connected to one.
func (c *call) asked(data, length uint64) ([]learn.Observation, error) {
	if length > maxQuery {
		return nil, nil
	}
	fd, err := c.thread.Copy(int(int32(c.args[0])))
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	peer, err := unix.Getpeername(fd)
	if at, ok := addressOf(peer, err); !ok || at.Port() != portOfNames {
		return nil, nil
	}
	return c.question(data, length)
}

// question reads the name that a name server is asked for.
func (c *call) question(data, length uint64) ([]learn.Observation, error) {
	if length == 0 || length > maxQuery {
		return nil, nil
	}
	query := make([]byte, length)
	if e := c.thread.Memory(data, query); e != 0 {
		return nil, e
	}
	var m dns.Msg
	if m.Unpack(query) != nil || m.Response || len(m.Question) != 1 {
		return nil, nil
	}
	switch m.Question[0].Qtype {
	case dns.TypeA, dns.TypeAAAA:
	default:
		return nil, nil
	}
	host := strings.ToLower(strings.TrimSuffix(m.Question[0].Name, "."))
	return []learn.Observation{{Family: learn.FamilyNet, Op: "resolve", Event: "socket.getaddrinfo", Host: host}}, nil
}

// message reports where a message with a header goes.
func (c *call) message(at uint64) ([]learn.Observation, error) {
	header := make([]byte, headerLength)
	if e := c.thread.Memory(at, header); e != 0 {
		return nil, e
	}
	word := func(at int) uint64 { return binary.NativeEndian.Uint64(header[at:]) }
	toAddress, addressLength, vectors, count := word(0), binary.NativeEndian.Uint32(header[8:]), word(16), word(24)
	if toAddress != 0 && addressLength >= 2 {
		raw, err := c.address(toAddress, uint64(addressLength))
		if err != nil {
			return nil, err
		}
		if to, ok := endpoint(raw); !ok || to.Port() != portOfNames {
			return c.reached("sendto", raw)
		}
	} else if c.nr == unix.SYS_SENDMSG {
		return nil, nil // the peer was seen when it was connected to
	}
	if count == 0 {
		return nil, nil
	}
	vector := make([]byte, 16)
	if e := c.thread.Memory(vectors, vector); e != 0 {
		return nil, e
	}
	data, length := binary.NativeEndian.Uint64(vector), binary.NativeEndian.Uint64(vector[8:])
	if toAddress != 0 {
		return c.question(data, length)
	}
	return c.asked(data, length)
}

// messages does so for several in one call, which is how the C library asks for both kinds of address.
func (c *call) messages() ([]learn.Observation, error) {
	var seen []learn.Observation
	for i := range min(c.args[2], maxMessages) {
		one, err := c.message(c.args[1] + i*messageLength)
		if err != nil {
			return seen, err
		}
		seen = append(seen, one...)
	}
	return seen, nil
}
