package providers

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// killTree ends a process and what descends from it. The tree is read before anything dies, since a child whose
// parent is gone is no longer found by it; then everything is stopped first, so that nothing forks meanwhile. A
// process that was given away to another parent before (a daemon) is not found: without a grant to run programs
// there can be none.
func killTree(p *Process) error {
	if p.Signal(unix.SIGSTOP) != nil {
		return os.ErrProcessDone
	}
	rest := family(children(p.pid)...)
	err := p.Signal(unix.SIGKILL)
	kill(rest)
	return err
}

// family stops processes and all that descends from them, and gives their descriptors (a number may change hands). Nothing
// forks any more when no new one turns up.
func family(pids ...int) []int {
	var fds []int
	seen := map[int]bool{}
	for len(pids) > 0 {
		for _, pid := range pids {
			seen[pid] = true
			if fd, err := unix.PidfdOpen(pid, 0); err == nil {
				_ = unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0)
				fds = append(fds, fd)
			}
		}
		pids = nil
		for pid := range seen {
			for _, child := range children(pid) {
				if !seen[child] {
					pids = append(pids, child)
				}
			}
		}
	}
	return fds
}

func kill(pidfds []int) {
	for _, fd := range pidfds {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		unix.Close(fd)
	}
}

// children reads the process numbers of all children, by whichever thread they were made.
func children(pid int) []int {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var out []int
	for _, t := range tasks {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name()))
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(f); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}
