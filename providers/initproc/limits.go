//go:build linux && (amd64 || arm64)

package initproc

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// limit sets the resource limits. Address space (RLIMIT_AS) is never limited: much is mapped that is never used.
func limit(l plan.Limits) error {
	for _, r := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"limit-cpu", unix.RLIMIT_CPU, l.CPUSeconds},
		{"limit-open-files", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"limit-processes", unix.RLIMIT_NPROC, l.Processes},
		{"limit-memory", unix.RLIMIT_DATA, l.Data},
	} {
		if r.value == 0 {
			continue
		}
		if err := lower(r.resource, r.value); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// noCore keeps the kernel from writing the sandbox's memory outside when it crashes. A limit of 0 stops the file alone, and not the
// program that many systems have the kernel start for a crash, as root, with that memory to read; a limit of 1 byte stops both
// (do_coredump in fs/coredump.c). Before the filter, which lets nobody change it after that. Whoever was given 0 as the most, and may
// not raise it, keeps that.
func noCore() error {
	err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1})
	if errors.Is(err, unix.EPERM) {
		err = lower(unix.RLIMIT_CORE, 0)
	}
	if err != nil {
		return fmt.Errorf("core files: %w", err)
	}
	return nil
}

// lower never raises a limit above what this process was given.
func lower(resource int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	value = min(value, now.Max)
	limit := unix.Rlimit{Cur: value, Max: value}
	if resource == unix.RLIMIT_CPU && value < now.Max {
		limit.Max = value + 1 // SIGXCPU first, which a program can see; SIGKILL a second later
	}
	return unix.Setrlimit(resource, &limit)
}
