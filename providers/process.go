package providers

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/broker"
	"github.com/pysandboxes/pysandboxes/core/observer"
	"github.com/pysandboxes/pysandboxes/providers/cgroup"
)

// Status is how a process ended.
type Status struct {
	Code   int            // exit status, where Signal is 0
	Signal syscall.Signal // the signal that ended it
}

// String says it in words.
func (s Status) String() string {
	if s.Signal != 0 {
		return fmt.Sprintf("ended by %s", unix.SignalName(s.Signal))
	}
	return fmt.Sprintf("exit status %d", s.Code)
}

// Process is a started child. Its methods may be called from any goroutine.
type Process struct {
	pid      int
	notes    []string
	done     chan struct{} // closed when status and err stand
	status   Status
	err      error
	answers  *broker.Broker     // nil: no call is notified
	observer *observer.Observer // nil: nobody looks
	how      string             // which boundary it has, in words

	group       *cgroup.Group // nil: none
	cpu         time.Duration // used, with what it waited for; stands after done
	outOfMemory bool          // the kernel killed in the group because memory ran out; stands after done

	mu    sync.Mutex
	pidfd int // -1 once reaped
}

// Pid is its process number, on the host.
func (p *Process) Pid() int { return p.pid }

// Notes says what this kernel could not hold and what was done instead.
func (p *Process) Notes() []string { return p.notes }

// How says in a few words which boundary it has, for the log: the provider, how network rules are held, and whether it has files of
// its own.
func (p *Process) How() string { return p.how }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end. Every caller gets the same answer.
func (p *Process) Wait() (Status, error) {
	<-p.done
	return p.status, p.err
}

// CPUTime is the processor time that it had used at its end, with that of its own children which it had waited for.
func (p *Process) CPUTime() time.Duration {
	<-p.done
	return p.cpu
}

// OutOfMemory reports whether the kernel ended it because its control group was out of memory. Without one it cannot be told.
func (p *Process) OutOfMemory() bool {
	<-p.done
	return p.outOfMemory
}

// Signal sends a signal. os.ErrProcessDone after the end: the number may be another's by then.
func (p *Process) Signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pidfd < 0 {
		return os.ErrProcessDone
	}
	err := unix.PidfdSendSignal(p.pidfd, s, nil, 0)
	if err == unix.ESRCH {
		return os.ErrProcessDone
	}
	return err
}

// Kill ends the process at once, and what it started as far as it can be found (see descendants).
func (p *Process) Kill() error {
	p.mu.Lock()
	running := p.pidfd >= 0
	p.mu.Unlock()
	if !running {
		return os.ErrProcessDone
	}
	return killTree(p)
}

// watch takes over a new child: from here on exactly one waiter reaps it.
func watch(pid, pidfd int, group *cgroup.Group) (*Process, error) {
	p := &Process{pid: pid, pidfd: pidfd, group: group, done: make(chan struct{})}
	// A second descriptor for the runtime's poller, so that the watch costs no thread: nonblocking is what makes
	// the poller take it.
	fd, err := unix.FcntlInt(uintptr(pidfd), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
		p.reap()
		return nil, fmt.Errorf("watch the child: %w", err)
	}
	go p.watchEnd(os.NewFile(uintptr(fd), "pidfd"))
	return p, nil
}

// watchEnd owns the reaping.
func (p *Process) watchEnd(f *os.File) {
	defer func() {
		if v := recover(); v != nil {
			p.finish(Status{}, fmt.Errorf("watch of process %d: %v", p.pid, v))
		}
	}()
	awaitReadable(f)
	f.Close() // before the end is told: then nothing is left of the child
	p.reap()
}

// awaitReadable parks until the descriptor is readable.
func awaitReadable(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			if err != unix.EINTR {
				return n > 0 || err != nil
			}
		}
	})
}

// reap collects the status, which also frees the process number.
func (p *Process) reap() {
	var info childInfo
	var used unix.Rusage
	for {
		err := waitPidfd(p.pidfd, &info, unix.WEXITED, &used)
		switch err {
		case unix.EINTR:
			continue
		case unix.EAGAIN: // the descriptor is nonblocking, and the poller did not take it
			unix.Poll([]unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}, -1)
			continue
		case nil:
			p.cpu = time.Duration(used.Utime.Nano() + used.Stime.Nano())
			p.finish(info.decode(), nil)
		case unix.ECHILD:
			// The application waits for any child (os.wait) and got there first.
			s, e := reapedElsewhere(p.pidfd)
			p.finish(s, e)
		default:
			p.finish(Status{}, fmt.Errorf("wait for process %d: %w", p.pid, err))
		}
		return
	}
}

func (p *Process) finish(s Status, err error) {
	p.mu.Lock()
	if p.pidfd < 0 {
		p.mu.Unlock()
		return
	}
	unix.Close(p.pidfd)
	p.pidfd = -1
	answers := p.answers
	p.mu.Unlock()
	if p.group != nil {
		p.outOfMemory = p.group.OutOfMemory()
		p.group.End() // with what the program left behind in it
	}
	if answers != nil {
		select {
		case <-answers.Done():
		case <-time.After(answersTime):
		}
	}
	p.status, p.err = s, err
	close(p.done)
}

// answersTime is how long the end of a process waits for that of the answers to its calls, so that what they held is free when
// the end is told. They go on as long as there is a process that the program has left behind.
const answersTime = 100 * time.Millisecond

// errStolen is the end that nobody here saw.
var errStolen = errors.New("the end of the sandboxed process was collected by other code of the application, which waits for all its children: its exit status is lost")

// reapedElsewhere asks the kernel (6.15 or newer) for the status of a process that another waiter collected.
func reapedElsewhere(pidfd int) (Status, error) {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	for range 20 {
		err := unix.IoctlPidfdInfo(pidfd, &info)
		if err == unix.EINTR {
			continue
		}
		if err == nil && info.Mask&unix.PIDFD_INFO_EXIT != 0 {
			return decodeWait(syscall.WaitStatus(info.Exit_code)), nil
		}
		time.Sleep(time.Millisecond) // the kernel records it a moment after the waiter woke
	}
	return Status{}, errStolen
}

func decodeWait(ws syscall.WaitStatus) Status {
	if ws.Signaled() {
		return Status{Signal: ws.Signal()}
	}
	return Status{Code: ws.ExitStatus()}
}
