package providers

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A program with a grant to run programs may leave some behind, and its own end does not end them. A supervisor in a
// process of its own adopts them: it is their subreaper, so that they become its children instead of the machine's first
// process's, and it ends them with the program. Nothing here is for an application, which has children of its own.
//
// What remains: the kernel ends the program itself when the supervisor is killed by SIGKILL, but not what the program
// had started by a grant.

// Adopt makes this process the parent of every descendant whose own parent ends.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the parent of what the program leaves behind: %w", err)
	}
	return nil
}

// ReapAdopted collects adopted processes that have ended. The end of program is somebody else's to collect.
func ReapAdopted(program int) {
	for _, pid := range children(os.Getpid()) {
		if pid != program {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// endTime bounds the wait for killed processes; only one that hangs in the kernel takes longer than a moment.
const endTime = 2 * time.Second

// EndAdopted kills all descendants of this process and collects them, after the program has ended. It gives the numbers
// of those that are still there.
func EndAdopted() (left []int) {
	self := os.Getpid()
	for deadline := time.Now().Add(endTime); ; {
		mine := children(self)
		if len(mine) == 0 {
			return nil
		}
		if !time.Now().Before(deadline) {
			return mine
		}
		kill(descendants(self))
		for _, pid := range mine {
			collect(pid, deadline)
		}
	}
}

// collect waits for the end of a child that was killed.
func collect(pid int, deadline time.Time) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	for {
		wait := max(0, time.Until(deadline))
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(wait.Milliseconds())); err != unix.EINTR {
			break
		}
	}
	_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
}
