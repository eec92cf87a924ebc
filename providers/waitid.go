package providers

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// childInfo is siginfo_t as waitid fills it (128 bytes on every Linux).
type childInfo struct {
	signo, errno, code int32
	_                  int32
	pid                int32
	uid                uint32
	status             int32
	_                  [100]byte
}

var _ [128]byte = [unsafe.Sizeof(childInfo{})]byte{}

// Values of si_code for SIGCHLD (asm-generic/siginfo.h).
const (
	cldExited = 1
	cldKilled = 2
	cldDumped = 3
)

func (c childInfo) decode() Status {
	if c.code == cldKilled || c.code == cldDumped {
		return Status{Signal: syscall.Signal(c.status)}
	}
	return Status{Code: int(c.status)}
}

// waitPidfd waits for the one child that the descriptor names. used may be nil.
func waitPidfd(pidfd int, info *childInfo, options int, used *unix.Rusage) error {
	_, _, e := unix.Syscall6(unix.SYS_WAITID, unix.P_PIDFD, uintptr(pidfd), uintptr(unsafe.Pointer(info)), uintptr(options), uintptr(unsafe.Pointer(used)), 0)
	if e != 0 {
		return e
	}
	return nil
}

// endedChild gives a child of this process that has ended, 0 where none has, and leaves it as it is; and whether there is any
// child. It is asked before /proc is read: what that shows of each thread, the kernel has to take back when the thread ends, for
// milliseconds where they all end at once.
func endedChild() (pid int, some bool) {
	var info childInfo
	for {
		_, _, e := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, 0, 0)
		if e != unix.EINTR {
			return int(info.pid), e != unix.ECHILD
		}
	}
}
