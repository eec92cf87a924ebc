//go:build linux && (amd64 || arm64)

package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	operationSetFilter = 1      // SECCOMP_SET_MODE_FILTER
	flagNewListener    = 1 << 3 // SECCOMP_FILTER_FLAG_NEW_LISTENER
	flagWaitKillable   = 1 << 5 // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, Linux 5.19
)

// Install puts the filter on the calling OS thread, which the caller has locked and on which no_new_privs stands.
// With listen it returns the listener (close-on-exec), else -1. Other threads stay free: one of them hands the
// listener over. Where the kernel can, a call that the supervisor has taken is not given up for a signal that does not end
// the process: it would be made again, after it was done.
func Install(filter []unix.SockFilter, listen bool) (int, error) {
	if len(filter) == 0 {
		return -1, errors.New("seccomp: an empty filter")
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	flags := uintptr(0)
	if listen {
		flags = flagNewListener | flagWaitKillable
	}
	fd, _, e := unix.Syscall(unix.SYS_SECCOMP, operationSetFilter, flags, uintptr(unsafe.Pointer(&program)))
	if e == unix.EINVAL && listen {
		fd, _, e = unix.Syscall(unix.SYS_SECCOMP, operationSetFilter, flagNewListener, uintptr(unsafe.Pointer(&program)))
	}
	runtime.KeepAlive(filter)
	switch {
	case e == unix.EBUSY:
		return -1, errors.New("seccomp: a process above already answers for this one (a sandbox inside a sandbox); the kernel allows one")
	case e != 0:
		return -1, fmt.Errorf("seccomp: install the filter: %w", e)
	case listen:
		return int(fd), nil
	}
	return -1, nil
}
