package transport

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of the call path, plain and on the calling thread: no netpoller, no goroutine. Each returns EINTR as it comes.

// receive reads what is there, or with wait true blocks for up to SO_RCVTIMEO.
func receive(fd int, p []byte, wait bool) (int, error) {
	flags := uintptr(unix.MSG_DONTWAIT)
	if wait {
		flags = 0
	}
	n, _, e := unix.Syscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// send writes what the socket takes at once.
func send(fd int, p []byte) (int, error) {
	n, _, e := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// send2 writes two pieces as one.
func send2(fd int, head, body []byte) (int, error) {
	iov := [2]unix.Iovec{{Base: &head[0]}, {Base: &body[0]}}
	iov[0].SetLen(len(head))
	iov[1].SetLen(len(body))
	msg := unix.Msghdr{Iov: &iov[0]}
	msg.SetIovlen(2)
	n, _, e := unix.Syscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// await blocks until the socket is ready for events, or with EAGAIN until the bell was rung (0: there is none) or the time is over.
func await(fd int, events int16, bell int, d time.Duration) error {
	ts := unix.NsecToTimespec(max(int64(d), 0))
	p := [2]unix.PollFd{{Fd: int32(fd), Events: events}, {Fd: int32(bell), Events: unix.POLLIN}}
	fds := p[:1]
	if bell > 0 {
		fds = p[:]
	}
	_, err := unix.Ppoll(fds, &ts, nil)
	switch {
	case err != nil:
		return err
	case p[1].Revents != 0:
		drain(bell)
	}
	if p[0].Revents == 0 {
		return unix.EAGAIN
	}
	return nil
}

const (
	futexWaitPrivate = 0 | 128
	futexWakePrivate = 1 | 128
)

// sleep blocks while *word is 0, at most d.
func sleep(word *uint32, d time.Duration) error {
	ts := unix.NsecToTimespec(max(int64(d), 0))
	_, _, e := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitPrivate, 0, uintptr(unsafe.Pointer(&ts)), 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// rouse wakes the thread that sleeps on word.
func rouse(word *uint32) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakePrivate, 1, 0, 0, 0)
}

// ring makes the eventfd readable; drain makes it unreadable. A counter that is full is readable already.
func ring(fd int) {
	one := [8]byte{1}
	_, _ = unix.Write(fd, one[:])
}

func drain(fd int) {
	var count [8]byte
	_, _ = unix.Read(fd, count[:])
}
