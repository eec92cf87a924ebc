package broker

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls as the kernel has them: x/sys writes addresses from structures of its own, which would be a second form of
// what was judged. Syscall, not RawSyscall, though none of them blocks: a driver may take its time.

func connectTo(fd int, raw []byte) unix.Errno { return withAddress(unix.SYS_CONNECT, fd, raw) }

func bindTo(fd int, raw []byte) unix.Errno { return withAddress(unix.SYS_BIND, fd, raw) }

func withAddress(nr uintptr, fd int, raw []byte) unix.Errno {
	_, _, e := unix.Syscall(nr, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(raw))), uintptr(len(raw)))
	return e
}

// message is a send that was read whole.
type message struct {
	name    []byte // nil: none
	data    []byte
	control []byte
}

// sendOnce sends and never blocks; SIGPIPE is for the caller to get.
func sendOnce(fd int, m message, flags int) (int, unix.Errno) {
	header := unix.Msghdr{Name: unsafe.SliceData(m.name), Namelen: uint32(len(m.name)), Control: unsafe.SliceData(m.control)}
	header.SetControllen(len(m.control))
	var iov unix.Iovec
	if len(m.data) > 0 {
		iov.Base = &m.data[0]
		iov.SetLen(len(m.data))
	}
	header.Iov, header.Iovlen = &iov, 1
	n, _, e := unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&header)), uintptr(flags|unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL))
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// blocking tells whether a call on the descriptor would wait.
func blocking(fd int) bool {
	flags, e := flagsOf(fd)
	return e == 0 && flags&unix.O_NONBLOCK == 0
}

func flagsOf(fd int) (int, unix.Errno) {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return flags, errnoOf(err)
}

// connectAtOnce connects a socket that does not wait, and tells the outcome where that is known at once, as on this machine.
// EALREADY or EINPROGRESS: it is on its way.
func connectAtOnce(fd int, raw []byte) unix.Errno {
	e := connectTo(fd, raw)
	if e == unix.EINPROGRESS {
		e = connectTo(fd, raw)
	}
	return e
}

// withoutWaiting does something on a descriptor, of which these are the flags, that must not block, and leaves it as it was.
// The flag is the socket's, so that another thread of the program could see it meanwhile; it does so for a moment in which the
// socket is not connected.
func withoutWaiting(fd, flags int, do func() unix.Errno) unix.Errno {
	if flags&unix.O_NONBLOCK != 0 {
		return do()
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags|unix.O_NONBLOCK); err != nil {
		return errnoOf(err)
	}
	e := do()
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
	return e
}

// filterLength is how many instructions the filter of a socket has, 0 where there is none.
func filterLength(fd int) (int, error) {
	var length uint32
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_GET_FILTER, 0, uintptr(unsafe.Pointer(&length)), 0)
	if e != 0 {
		return 0, e
	}
	return int(length), nil
}
