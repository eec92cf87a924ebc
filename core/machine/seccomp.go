package machine

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// seccompAvailable is seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action).
func seccompAvailable(action *uint32) error {
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(action))); e != 0 {
		return e
	}
	return nil
}
