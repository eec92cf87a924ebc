package providers

import (
	"bytes"
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

// Adopted are the processes that a program leaves behind, as their new parent sees them.
type Adopted struct {
	before map[int]bool // children from before: `daemon & exec python-sb …` leaves us those of the shell
	marked bool         // with such children: the sandbox's processes can be told by no_new_privs, which we do not have
}

// Adopt makes this process the parent of every descendant whose own parent ends. It is called before the program starts.
func Adopt() (*Adopted, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("becoming the parent of what the program leaves behind: %w", err)
	}
	a := &Adopted{before: map[int]bool{}}
	self := os.Getpid()
	if _, some := endedChild(); !some {
		return a, nil
	}
	for _, pid := range children(self) {
		a.before[pid] = true
	}
	a.marked = len(a.before) > 0 && !noNewPrivs(self)
	return a, nil
}

// children are those that came from the program. Where there were others before, their orphans come to us as well: of
// a sandbox with a kernel boundary all processes bear its mark, and without one they cannot be told and are left alone.
func (a *Adopted) children() []int {
	if _, some := endedChild(); !some {
		return nil
	}
	var out []int
	for _, pid := range children(os.Getpid()) {
		if !a.before[pid] && (!a.marked || noNewPrivs(pid)) {
			out = append(out, pid)
		}
	}
	return out
}

// noNewPrivs reads the mark that the kernel hands down to all that a process starts.
func noNewPrivs(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && bytes.Contains(data, []byte("\nNoNewPrivs:\t1\n"))
}

// Reap collects adopted processes that have ended. The end of program is somebody else's to collect.
func (a *Adopted) Reap(program int) {
	if pid, _ := endedChild(); pid == 0 || pid == program { // when that has ended, End does the rest
		return
	}
	for _, pid := range a.children() {
		if pid != program {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// endTime bounds the wait for killed processes; only one that hangs in the kernel takes longer than a moment.
const endTime = 2 * time.Second

// End kills what the program left behind and collects it, after the program has ended. It gives the numbers of those that
// are still there.
func (a *Adopted) End() []int {
	for deadline := time.Now().Add(endTime); ; {
		mine := a.children()
		if len(mine) == 0 {
			return nil
		}
		if !time.Now().Before(deadline) {
			return mine
		}
		kill(family(mine...))
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
