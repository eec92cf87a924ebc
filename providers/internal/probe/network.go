//go:build linux && (amd64 || arm64)

package main

import (
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
)

// dial makes a connection attempt (tcp or udp, a comma, an address with port), waits a moment and says what came of it and
// from which address.
func dial(arg string) string {
	network, to, _ := strings.Cut(arg, ",")
	ap := netip.MustParseAddrPort(to)
	kind := unix.SOCK_STREAM
	if network == "udp" {
		kind = unix.SOCK_DGRAM
	}
	family, addr := unix.AF_INET, unix.Sockaddr(nil)
	if ap.Addr().Is6() {
		family, addr = unix.AF_INET6, &unix.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}
	} else {
		addr = &unix.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return result(err)
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, addr)
	if err == unix.EINPROGRESS {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, _ := unix.Poll(fds, 200); n > 0 {
			code, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			err = nil
			if code != 0 {
				err = unix.Errno(code)
			}
		}
	}
	own, _ := unix.Getsockname(fd)
	switch own := own.(type) {
	case *unix.SockaddrInet4:
		return result(err) + " " + netip.AddrFrom4(own.Addr).String()
	case *unix.SockaddrInet6:
		return result(err) + " " + netip.AddrFrom16(own.Addr).String()
	}
	return result(err)
}
