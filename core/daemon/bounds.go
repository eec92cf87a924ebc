package daemon

import (
	"strings"
	"syscall"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers"
)

// bounds are the lines of the profile that bound a child, as messages name them: `limit-memory=64MB, .py-sandboxes:12`. Empty is
// no such line, or one that this machine does not hold: what is not held has ended nothing.
type bounds struct {
	memory, cpu, processes, files string
}

func boundsOf(p *policy.Policy, limits providers.Limits) bounds {
	b := bounds{memory: p.LimitRule("limit-memory"), cpu: p.LimitRule("limit-cpu"), files: p.LimitRule("limit-open-files")}
	if limits.HoldsProcesses() {
		b.processes = p.LimitRule("limit-processes")
	}
	return b
}

// ofException says which limit an exception of the child comes from. The kernel tells by an errno alone, which the text begins with.
func (b bounds) ofException(module, qualname, message string) string {
	if module != "builtins" {
		return ""
	}
	line := ""
	switch {
	case qualname == "MemoryError", strings.HasPrefix(message, "[Errno 12]"): // ENOMEM
		line = b.memory
	case strings.HasPrefix(message, "[Errno 24]"): // EMFILE
		line = b.files
	case qualname == "BlockingIOError" && strings.HasPrefix(message, "[Errno 11]"): // EAGAIN of fork
		line = b.processes
	case qualname == "RuntimeError" && message == "can't start new thread": // its stack, or its number
		line = joined(b.processes, b.memory)
	}
	if line == "" {
		return ""
	}
	return "the sandbox is bounded by " + line
}

func joined(lines ...string) string {
	var there []string
	for _, line := range lines {
		if line != "" {
			there = append(there, line)
		}
	}
	return strings.Join(there, " and ")
}

// ofEnd says which limit ended a child; "" where none did, or none can be told.
func (b bounds) ofEnd(p *providers.Process, status providers.Status, limits providers.Limits) string {
	switch {
	case status.Signal == syscall.SIGXCPU:
		return b.cpu
	case status.Signal != syscall.SIGKILL:
		return ""
	case p.OutOfMemory():
		return b.memory
	case b.cpu != "" && uint64(p.CPUTime().Seconds()) >= limits.CPUSeconds: // it caught SIGXCPU, and went on
		return b.cpu
	}
	return ""
}

// nearStart names what may be too small for an interpreter to come up in.
func (b bounds) nearStart() string { return joined(b.memory, b.files, b.processes, b.cpu) }
