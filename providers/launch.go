package providers

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"github.com/pysandboxes/pysandboxes/providers/cgroup"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// launch is one request to the launching thread.
type launch struct {
	path string
	attr *syscall.ProcAttr
	done chan<- launched
}

type launched struct {
	pid int
	err error
}

// launcher is the thread that makes every child. The signal that ends a child with its supervisor is tied to the
// thread that made it, not to the process; this one lives as long as the process does.
var launcher = sync.OnceValue(func() chan<- launch {
	requests := make(chan launch)
	go func() {
		runtime.LockOSThread()
		for r := range requests {
			r.done <- fork(r)
		}
	}()
	return requests
})

// fork recovers, so that a fault here is an error of one start and not the end of the application.
func fork(r launch) (l launched) {
	defer func() {
		if v := recover(); v != nil {
			l = launched{0, fmt.Errorf("start of %s: %v", r.path, v)}
		}
	}()
	pid, err := syscall.ForkExec(r.path, []string{plan.Argv0}, r.attr)
	return launched{pid, err}
}

// makeInit starts the init program with these descriptors as 0, 1, 2, …; the pidfd is close-on-exec.
func makeInit(cmd Command, files []*os.File, group *cgroup.Group) (pid, pidfd int, err error) {
	c := cmd.Child
	// No defer of the parent's copies here: their owner closes them.
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = ^uintptr(0)
		if f != nil {
			fds[i] = f.Fd()
		}
	}
	pidfd = -1
	attr := &syscall.ProcAttr{
		Dir:   c.Dir,
		Env:   []string{}, // nothing of the user's reaches init; nil would be our own
		Files: fds,
		Sys:   &syscall.SysProcAttr{Setsid: c.Setsid, Pdeathsig: syscall.SIGKILL, PidFD: &pidfd},
	}
	if group != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, group.FD()
	}
	separate(attr.Sys, cmd.Boundary)
	done := make(chan launched, 1)
	launcher() <- launch{c.InitPath, attr, done}
	l := <-done
	runtime.KeepAlive(files)
	if l.err != nil {
		err := startError(c, l.err)
		if attr.Sys.Cloneflags != 0 && noNamespace(l.err) {
			err = &stageError{err: err}
		}
		return 0, -1, err
	}
	if pidfd < 0 {
		// Not yet anyone else's child: the number is still its own.
		syscall.Kill(l.pid, syscall.SIGKILL)
		reapNumber(l.pid)
		return 0, -1, errors.New("this kernel gives no descriptor for a process (Linux 5.4 or newer is needed)")
	}
	return l.pid, pidfd, nil
}

// startError says which of the paths was at fault.
func startError(c Child, err error) error {
	if c.Dir != "" {
		if st, e := os.Stat(c.Dir); e != nil {
			return fmt.Errorf("the working directory: %w", e)
		} else if !st.IsDir() {
			return fmt.Errorf("the working directory %s is no folder", c.Dir)
		}
	}
	return fmt.Errorf("start %s, the program that puts up the boundary: %w", c.InitPath, err)
}

func reapNumber(pid int) {
	var ws syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != syscall.EINTR {
			return
		}
	}
}
