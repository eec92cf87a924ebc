package daemon

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/transport"
	"github.com/pysandboxes/pysandboxes/providers"
)

// guardFailed is the exit code of a guard that could not take its place (docs/implementation.md).
const guardFailed = 125

// StartError is a child that ended, or kept silent, before its guard said hello.
type StartError struct {
	Pid      int
	Status   providers.Status
	Patience time.Duration // not zero: it kept silent for this long
	Limit    string        // the lines of the profile that may be too little for an interpreter
}

func (e *StartError) Error() string {
	switch {
	case e.Patience > 0:
		return fmt.Sprintf("the sandbox did not start: its guard did not speak within %s (process %d, killed)\n"+
			"A machine under load may need a longer start; an interpreter that is linked statically cannot carry the guard", e.Patience, e.Pid)
	case e.Status.Signal == 0 && e.Status.Code == guardFailed:
		return "the sandbox did not start: its guard refused to run, its reason stands above on stderr"
	}
	text := fmt.Sprintf("the sandbox did not start: the interpreter %s before its guard spoke\n"+
		"Its own words, if any, stand above on stderr", outcome(e.Status))
	if e.Limit != "" {
		text += "\nIt may be too little for an interpreter: " + e.Limit
	}
	return text
}

// EndedError is a child that is gone, and how.
type EndedError struct {
	Pid    int
	Status providers.Status
	Err    error  // the status could not be had
	Asked  bool   // it was told to end
	Late   bool   // and that because a call was over its time
	Limit  string // the line of the profile that ended it, where one did
	Cut    error  // why its connection was over before it ended, where that was so
}

func (e *EndedError) Error() string {
	switch {
	case e.Late:
		return "the sandbox was ended: another of its calls was over its time"
	case e.Asked:
		return "the sandbox was stopped"
	case e.Cut != nil && e.Status.Signal == syscall.SIGKILL:
		return fmt.Sprintf("the sandbox (process %d) was ended: %v", e.Pid, e.Cut)
	case e.Err != nil:
		return fmt.Sprintf("the sandbox (process %d) is gone: %v", e.Pid, e.Err)
	}
	if e.Limit != "" {
		return fmt.Sprintf("the sandbox (process %d) was ended by %s", e.Pid, e.Limit)
	}
	return fmt.Sprintf("the sandbox (process %d) %s%s", e.Pid, outcome(e.Status), hint(e.Status))
}

func outcome(s providers.Status) string {
	if s.Signal == 0 {
		return fmt.Sprintf("ended with exit code %d", s.Code)
	}
	return fmt.Sprintf("was killed by signal %d (%s)", int(s.Signal), unix.SignalName(s.Signal))
}

// hint says what usually stands behind a signal.
func hint(s providers.Status) string {
	switch s.Signal {
	case syscall.SIGKILL:
		return ": by another process, or by the kernel because memory ran out"
	case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGFPE:
		return ": a fault in native code"
	case syscall.SIGABRT:
		return ": native code gave up"
	case syscall.SIGXCPU:
		return ": the processor time that this process passes on was used up (ulimit -t)"
	case syscall.SIGSYS:
		return ": it made a system call that the sandbox does not allow"
	}
	return ""
}

// Ended says how the child ended; nil while it runs.
func (c *Child) Ended() error {
	select {
	case <-c.process.Done():
	default:
		return nil
	}
	status, err := c.process.Wait()
	// Stop holds the lock while it waits for the end, and says so itself.
	asked := true
	if c.stopping.TryLock() {
		asked = c.asked
		c.stopping.Unlock()
	}
	var cut error
	if c.cut.Load() != nil {
		var dead *transport.DeadError
		if cut = *c.cut.Load(); errors.As(cut, &dead) {
			cut = dead.Err
		}
	}
	return &EndedError{
		Cut: cut, Pid: c.Pid(), Status: status, Err: err, Asked: asked, Late: asked && c.late.Load(), Limit: c.held.ofEnd(c.process, status, c.limits),
	}
}
