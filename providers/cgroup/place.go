// Package cgroup makes a control group (cgroup v2) for a sandbox: what the whole tree of processes may have of memory and of
// processes, whether the kernel ended it because memory ran out, and one write that ends all that is in it.
//
//	place, err := cgroup.Here()          // where this process may make groups; an error says what is missing
//	group, err := place.Make(limits)     // the child is born in it (group.FD, CLONE_INTO_CGROUP)
//	group.End()                          // everything in it is killed, and it is gone
//
// A group is made beneath this process's own, so that what bounds this process bounds the sandbox too; beside it only where
// nothing bounds this process itself. Nothing here runs unless a profile sets a limit that needs it.
//
// What remains: when this process is killed by SIGKILL, its empty groups stay until the next start beneath the same place.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// wanted are the controllers that the limits need.
var wanted = []string{"memory", "pids"}

// How is what a person can do about it.
const How = "Start the program in a group of its own: systemd-run --user --scope -p Delegate=yes COMMAND (as root without --user)"

// Place is a group beneath which this process may make others, with the controllers switched on.
type Place struct{ path string }

// String is its folder.
func (p *Place) String() string { return p.path }

// Here finds the place once, and makes it fit: where this process is alone in a group that it may divide, it moves into a leaf
// of it, since a group with processes of its own cannot bound its children's (cgroups(7), "no internal processes").
var Here = sync.OnceValues(func() (*Place, error) {
	h, err := self()
	if err != nil {
		return nil, err
	}
	return h.place(true)
})

// Probe finds it without changing anything.
func Probe() (string, error) {
	h, err := self()
	if err != nil {
		return "", err
	}
	p, err := h.place(false)
	if err != nil {
		return "", err
	}
	return p.path, nil
}

// host is where this process stands in the tree.
type host struct {
	root string // the mounted part of the tree
	own  string // folder of this process's group
	pid  int
}

func self() (host, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return host{}, err
	}
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return host{}, err
	}
	root, own, err := locate(string(mounts), string(groups))
	return host{root, own, os.Getpid()}, err
}

// locate reads /proc/self/mountinfo and /proc/self/cgroup: where cgroup v2 is mounted, and the folder of this process's group.
func locate(mounts, groups string) (root, own string, err error) {
	path := ""
	for line := range strings.Lines(groups) {
		if rest, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); found {
			path = rest
		}
	}
	if path == "" {
		return "", "", errors.New("this kernel has no cgroup v2")
	}
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		dash := slices.Index(fields, "-")
		if dash < 6 || dash+1 >= len(fields) || fields[dash+1] != "cgroup2" {
			continue
		}
		beneath, err := filepath.Rel(fields[3], path)
		if err != nil || beneath == ".." || strings.HasPrefix(beneath, "../") || strings.HasPrefix(path, "/..") {
			return "", "", errors.New("the control group of this process lies outside of what is mounted here")
		}
		return fields[4], filepath.Join(fields[4], beneath), nil
	}
	return "", "", errors.New("cgroup v2 is not mounted")
}

// place is the nearest group that can be divided.
func (h host) place(change bool) (*Place, error) {
	if divided(h.own) && writable(h.own) {
		return &Place{h.own}, nil
	}
	if h.alone() {
		if !change {
			return &Place{h.own}, nil
		}
		return h.moveDown()
	}
	for dir := h.own; dir != h.root; {
		if what := bounded(dir); what != "" {
			return nil, fmt.Errorf("this process shares its control group, and a group beside it would escape its %s", what)
		}
		dir = filepath.Dir(dir)
		if divided(dir) {
			if !writable(dir) {
				return nil, fmt.Errorf("control groups are not this user's to make: %s is not writable", dir)
			}
			return &Place{dir}, nil
		}
	}
	return nil, fmt.Errorf("no control group with the controllers %s is this process's to divide", strings.Join(wanted, " and "))
}

// divided: the children of the group have the controllers.
func divided(dir string) bool { return lists(dir, "cgroup.subtree_control") }

func lists(dir, file string) bool {
	data, err := os.ReadFile(filepath.Join(dir, file))
	have := strings.Fields(string(data))
	return err == nil && !slices.ContainsFunc(wanted, func(name string) bool { return !slices.Contains(have, name) })
}

// writable: groups may be made there, and processes moved (cgroups(7), delegation).
func writable(dir string) bool {
	return unix.Access(dir, unix.W_OK|unix.X_OK) == nil && unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
}

// bounded names a limit that is set on the group itself.
func bounded(dir string) string {
	for _, file := range []string{"memory.max", "memory.high", "pids.max", "cpu.max", "memory.swap.max"} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err == nil && !strings.HasPrefix(string(data), "max") {
			return file
		}
	}
	return ""
}

// alone: no other process is in this group, and it may be divided.
func (h host) alone() bool {
	data, err := os.ReadFile(filepath.Join(h.own, "cgroup.procs"))
	return err == nil && strings.TrimSpace(string(data)) == strconv.Itoa(h.pid) && lists(h.own, "cgroup.controllers") &&
		writable(h.own) && unix.Access(filepath.Join(h.own, "cgroup.subtree_control"), unix.W_OK) == nil
}

const leaf = "pysandboxes-supervisor"

func (h host) moveDown() (*Place, error) {
	below := filepath.Join(h.own, leaf)
	if err := os.Mkdir(below, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("control group of the supervisor: %w", err)
	}
	if err := write(below, "cgroup.procs", strconv.Itoa(h.pid)); err != nil {
		return nil, fmt.Errorf("control group of the supervisor: %w", err)
	}
	if err := write(h.own, "cgroup.subtree_control", "+"+strings.Join(wanted, " +")); err != nil {
		return nil, fmt.Errorf("controllers of %s: %w", h.own, err)
	}
	return &Place{h.own}, nil
}

// write sets one value. The files of cgroupfs take a value in one write.
func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
