package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of a group; zero is none.
type Limits struct {
	Memory    uint64 // bytes, of all processes, with what they share, and no swap beside it
	Processes uint64 // and threads
}

// Group is the control group of one sandbox.
type Group struct {
	path   string
	dir    *os.File // locked: who makes groups here leaves it alone
	limits Limits
}

// prefix begins the name of every group; the rest tells those of one machine apart.
const prefix = "pysandboxes-"

var made atomic.Uint64

// Make makes a group that bounds memory; [Group.BoundProcesses] bounds the rest when init, which has threads, is over.
func (p *Place) Make(limits Limits) (*Group, error) {
	p.sweep()
	name := fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), made.Add(1))
	g := &Group{path: filepath.Join(p.path, name), limits: limits}
	if err := os.Mkdir(g.path, 0o755); err != nil {
		return nil, fmt.Errorf("control group: %w", err)
	}
	err := g.open()
	if err == nil && limits.Memory > 0 {
		err = g.boundMemory()
	}
	if err != nil {
		g.End()
		return nil, fmt.Errorf("control group %s: %w", g.path, err)
	}
	return g, nil
}

func (g *Group) open() error {
	dir, err := os.Open(g.path)
	if err != nil {
		return err
	}
	g.dir = dir
	return unix.Flock(int(dir.Fd()), unix.LOCK_SH|unix.LOCK_NB)
}

func (g *Group) boundMemory() error {
	if err := write(g.path, "memory.max", strconv.FormatUint(g.limits.Memory, 10)); err != nil {
		return err
	}
	// Swap is counted apart, and a kernel without it has no such file.
	if err := write(g.path, "memory.swap.max", "0"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return write(g.path, "memory.oom.group", "1") // half a sandbox is none
}

// BoundProcesses sets the limit of processes and threads.
func (g *Group) BoundProcesses() error {
	if g.limits.Processes == 0 {
		return nil
	}
	if err := write(g.path, "pids.max", strconv.FormatUint(g.limits.Processes, 10)); err != nil {
		return fmt.Errorf("control group %s: %w", g.path, err)
	}
	return nil
}

// FD is what a child is born into (CLONE_INTO_CGROUP). It stays the group's.
func (g *Group) FD() int { return int(g.dir.Fd()) }

// OutOfMemory reports whether the kernel killed in this group because its memory ran out.
func (g *Group) OutOfMemory() bool { return g.event("memory.events", "oom_kill") > 0 }

// event reads a counter or a flag of a flat keyed file.
func (g *Group) event(file, key string) int {
	data, _ := os.ReadFile(filepath.Join(g.path, file))
	for line := range strings.Lines(string(data)) {
		if value, found := strings.CutPrefix(line, key+" "); found {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return n
		}
	}
	return 0
}

// endTime bounds the wait for killed processes; only one that hangs in the kernel takes longer than a moment.
const endTime = 2 * time.Second

// End kills everything in the group and removes it. What cannot be removed in time is left to the next start.
func (g *Group) End() {
	if g.event("cgroup.events", "populated") > 0 {
		g.kill()
	}
	for deadline, nap := time.Now().Add(endTime), 100*time.Microsecond; ; nap = min(2*nap, 20*time.Millisecond) {
		err := unix.Rmdir(g.path)
		if err != unix.EBUSY || time.Now().After(deadline) {
			break
		}
		time.Sleep(nap) // zombies leave when their parents collect them
		g.kill()
	}
	if g.dir != nil {
		g.dir.Close()
	}
}

func (g *Group) kill() {
	if write(g.path, "cgroup.kill", "1") == nil {
		return
	}
	// Before Linux 5.14 one by one; who forks meanwhile is met in the next round.
	data, _ := os.ReadFile(filepath.Join(g.path, "cgroup.procs"))
	for _, field := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// sweep removes the groups of supervisors that were killed: the kernel gave up their locks. A group with processes in it stays.
func (p *Place) sweep() {
	entries, err := os.ReadDir(p.path)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) || e.Name() == leaf {
			continue
		}
		path := filepath.Join(p.path, e.Name())
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = unix.Rmdir(path)
		}
		unix.Close(fd)
	}
}
