//go:build linux && (amd64 || arm64)

package initproc

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// endWithParent has the kernel end this process when the thread of the supervisor that made it ends. The supervisor
// may have died before: then nobody would send the signal.
func endWithParent(parent int) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("die with the supervisor: %w", err)
	}
	if parent != 0 && unix.Getppid() != parent {
		return fmt.Errorf("the supervisor (process %d) is gone", parent)
	}
	return nil
}

// inheritOnly marks every descriptor but the standard streams and the kept ones close-on-exec. Those that are named
// in the plan lie directly above init's own two.
func inheritOnly(keep []int) error {
	if err := closeOnExecFrom(plan.FDControl); err != nil {
		return fmt.Errorf("descriptors of the application: %w", err)
	}
	for _, fd := range keep {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFD, flags&^unix.FD_CLOEXEC)
		}
		if err != nil {
			return fmt.Errorf("descriptor %d of the plan: %w", fd, err)
		}
	}
	return nil
}

// closeOnExecFrom does not close: the runtime of this program has descriptors of its own.
func closeOnExecFrom(first int) error {
	err := unix.CloseRange(uint(first), ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil || err != unix.ENOSYS && err != unix.EINVAL && err != unix.EPERM {
		return err
	}
	// Before Linux 5.11, or under a container's older filter.
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
