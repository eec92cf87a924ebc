//go:build linux && (amd64 || arm64)

package initproc

import (
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
		always   bool
	}{
		// A core file would carry the sandbox's memory outside.
		{"core files", unix.RLIMIT_CORE, 0, true},
		{"limit-cpu", unix.RLIMIT_CPU, l.CPUSeconds, false},
		{"limit-open-files", unix.RLIMIT_NOFILE, l.OpenFiles, false},
		{"limit-processes", unix.RLIMIT_NPROC, l.Processes, false},
		{"limit-memory", unix.RLIMIT_DATA, l.Data, false},
	} {
		if r.value == 0 && !r.always {
			continue
		}
		if err := lower(r.resource, r.value); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
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
