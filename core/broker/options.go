package broker

import (
	"bytes"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// option is one that a program may set on a stream socket before it connects, and that another socket can be given.
type option struct {
	level, name, size int
	six               bool // of IPv6 sockets alone
}

const (
	soBufferLock   = 72 // SO_BUF_LOCK, Linux 5.14: which buffers have a size of the program's choice
	soMaxPacing    = 47 // SO_MAX_PACING_RATE
	soZeroCopy     = 60
	tcpInq         = 36
	tcpThinLinear  = 16
	ipRecvErr      = 11
	congestionName = 16 // TCP_CA_NAME_MAX
)

// options are carried over. What is not there: filters (SO_ATTACH_FILTER), keys (TCP_MD5SIG), a device or a mark, which
// belong to a network rather than to a socket; nor TCP_MAXSEG, which reads as what the last attempt to connect made of it: a
// socket that was refused inside would have its connection outside in segments of 512 bytes.
var options = []option{
	{level: unix.IPPROTO_IPV6, name: unix.IPV6_V6ONLY, size: 4, six: true},
	{level: unix.SOL_SOCKET, name: unix.SO_KEEPALIVE, size: 4},
	{level: unix.SOL_SOCKET, name: unix.SO_OOBINLINE, size: 4},
	{level: unix.SOL_SOCKET, name: unix.SO_LINGER, size: 8},
	{level: unix.SOL_SOCKET, name: unix.SO_RCVTIMEO, size: 16},
	{level: unix.SOL_SOCKET, name: unix.SO_SNDTIMEO, size: 16},
	{level: unix.SOL_SOCKET, name: unix.SO_REUSEADDR, size: 4},
	{level: unix.SOL_SOCKET, name: unix.SO_REUSEPORT, size: 4},
	{level: unix.SOL_SOCKET, name: unix.SO_RCVLOWAT, size: 4},
	{level: unix.SOL_SOCKET, name: unix.SO_PRIORITY, size: 4},
	{level: unix.SOL_SOCKET, name: soMaxPacing, size: 8},
	{level: unix.SOL_SOCKET, name: soZeroCopy, size: 4},
	{level: unix.SOL_SOCKET, name: unix.SO_TIMESTAMP, size: 4},
	{level: unix.IPPROTO_TCP, name: unix.TCP_NODELAY, size: 4},
	{level: unix.IPPROTO_TCP, name: unix.TCP_CORK, size: 4},
	{level: unix.IPPROTO_TCP, name: unix.TCP_KEEPIDLE, size: 4},
	{level: unix.IPPROTO_TCP, name: unix.TCP_KEEPINTVL, size: 4},
	{level: unix.IPPROTO_TCP, name: unix.TCP_KEEPCNT, size: 4},
	{level: unix.IPPROTO_TCP, name: unix.TCP_SYNCNT, size: 4},
	{level: unix.IPPROTO_TCP, name: unix.TCP_LINGER2, size: 4},
	{level: unix.IPPROTO_TCP, name: unix.TCP_USER_TIMEOUT, size: 4},
	{level: unix.IPPROTO_TCP, name: unix.TCP_NOTSENT_LOWAT, size: 4},
	{level: unix.IPPROTO_TCP, name: tcpThinLinear, size: 4},
	{level: unix.IPPROTO_TCP, name: tcpInq, size: 4},
	{level: unix.IPPROTO_TCP, name: unix.TCP_CONGESTION, size: congestionName},
	{level: unix.IPPROTO_IP, name: unix.IP_TOS, size: 4},
	{level: unix.IPPROTO_IP, name: unix.IP_TTL, size: 4},
	{level: unix.IPPROTO_IP, name: unix.IP_MTU_DISCOVER, size: 4},
	{level: unix.IPPROTO_IP, name: ipRecvErr, size: 4},
	{level: unix.IPPROTO_IPV6, name: unix.IPV6_TCLASS, size: 4, six: true},
	{level: unix.IPPROTO_IPV6, name: unix.IPV6_UNICAST_HOPS, size: 4, six: true},
	{level: unix.IPPROTO_IPV6, name: unix.IPV6_MTU_DISCOVER, size: 4, six: true},
	{level: unix.IPPROTO_IPV6, name: unix.IPV6_RECVERR, size: 4, six: true},
}

// value is an option's value, of the option's size at most.
type value struct {
	raw    [16]byte
	length uint32
}

func (v *value) bytes() []byte { return v.raw[:v.length] }

func getOption(fd int, o option) (v value, ok bool) {
	v.length = uint32(o.size)
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(o.level), uintptr(o.name),
		uintptr(unsafe.Pointer(&v.raw)), uintptr(unsafe.Pointer(&v.length)), 0)
	return v, e == 0 && v.length <= uint32(len(v.raw))
}

func setOption(fd int, o option, v value) unix.Errno {
	_, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(o.level), uintptr(o.name),
		uintptr(unsafe.Pointer(&v.raw)), uintptr(v.length), 0)
	return e
}

// fresh are the values of a socket that nobody has touched: those need no carrying. By family.
var fresh sync.Map

func freshOptions(family int) []value {
	if known, ok := fresh.Load(family); ok {
		return known.([]value)
	}
	out := make([]value, len(options))
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return out
	}
	defer unix.Close(fd)
	for i, o := range options {
		out[i], _ = getOption(fd, o)
	}
	fresh.Store(family, out)
	return out
}

// carryOptions gives a socket of ours the options of a program's. It returns the first error: an option that the program
// had would be lost. The first time, those that any socket has are passed over; later, when ours is connected, each one
// that has become another is carried.
func carryOptions(from, to, family int, first bool) unix.Errno {
	usual := freshOptions(family)
	for i, o := range options {
		if o.six && family != unix.AF_INET6 {
			continue
		}
		have, ok := getOption(from, o)
		if !ok || first && bytes.Equal(have.bytes(), usual[i].bytes()) {
			continue
		}
		if now, ok := getOption(to, o); ok && bytes.Equal(have.bytes(), now.bytes()) {
			continue
		}
		if e := setOption(to, o, have); e != 0 && first {
			return e
		}
	}
	return carryBuffers(from, to)
}

// carryBuffers: the kernel doubles what is set, and stops tuning a buffer that was set.
func carryBuffers(from, to int) unix.Errno {
	locked, err := unix.GetsockoptInt(from, unix.SOL_SOCKET, soBufferLock)
	if err != nil {
		return 0 // an older kernel does not tell
	}
	for _, b := range []struct{ bit, option int }{{1, unix.SO_SNDBUF}, {2, unix.SO_RCVBUF}} {
		if locked&b.bit == 0 {
			continue
		}
		size, err := unix.GetsockoptInt(from, unix.SOL_SOCKET, b.option)
		if err == nil {
			err = unix.SetsockoptInt(to, unix.SOL_SOCKET, b.option, size/2)
		}
		if err != nil {
			return errnoOf(err)
		}
	}
	return 0
}
