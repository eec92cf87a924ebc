package providers

import (
	"bytes"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// NativeDenial is something that the kernel refused and the supervisor saw.
type NativeDenial struct {
	Op      string // "exec"
	Subject string // the path, as the program gave it; "" where it could not be read
}

// execAnswers answers the exec calls of a sandbox that has no grant to run programs: the first, which is init's own,
// goes on; every other is refused.
//
// The first one may go on although its arguments lie in memory (the rule in seccomp.Continue): until it has
// happened the process is init, which is ours, and init has no other code running in it.
type execAnswers struct {
	file *os.File
	done chan struct{}
	once sync.Once
}

// answerExecs takes the listener over.
func (p *Process) answerExecs(listener int) error {
	if p.execs != nil {
		unix.Close(listener)
		return fmt.Errorf("init sent a second listener")
	}
	if err := unix.SetNonblock(listener, true); err != nil { // for the poller; receiving ignores it
		unix.Close(listener)
		return fmt.Errorf("take the listener: %w", err)
	}
	a := &execAnswers{file: os.NewFile(uintptr(listener), "seccomp listener"), done: make(chan struct{})}
	p.execs = a
	go a.serve(p)
	return nil
}

// serve ends when the last process under the filter is gone, or when stopped. Whatever ends it, the listener is
// closed, and the kernel then refuses what comes.
func (a *execAnswers) serve(p *Process) {
	defer close(a.done)
	defer close(p.denials)
	defer a.stop()
	defer func() { _ = recover() }() // closed is refused: nothing is widened by a fault here
	raw, err := a.file.SyscallConn()
	if err != nil {
		return
	}
	own := true
	_ = raw.Read(func(fd uintptr) bool {
		for {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, err := unix.Poll(fds, 0)
			switch {
			case err == unix.EINTR:
			case err != nil, fds[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0:
				return true
			case n == 0:
				return false // the poller wakes us
			default:
				own = answer(int(fd), p, own)
			}
		}
	})
}

// answer handles one call and says whether init's own exec is still to come.
func answer(listener int, p *Process, own bool) bool {
	n, err := seccomp.Receive(listener)
	if err != nil {
		return own // given up by its caller
	}
	if own {
		// An error: a signal took the call back before the answer, and it comes again.
		return seccomp.Continue(listener, n.ID) != nil
	}
	subject := execPath(n)
	if !seccomp.Valid(listener, n.ID) {
		return false // the caller is gone, and what was read is not its memory
	}
	_ = seccomp.Refuse(listener, n.ID, unix.EACCES)
	select {
	case p.denials <- NativeDenial{Op: "exec", Subject: subject}:
	default: // nobody reads
	}
	return false
}

// execPath reads the path argument out of the caller's memory, for the report only.
func execPath(n seccomp.Notification) string {
	address := n.Args[0]
	if n.NR == unix.SYS_EXECVEAT {
		address = n.Args[1]
	}
	buf := make([]byte, unix.PathMax)
	// In steps that end at page borders: a path may lie just before unmapped memory.
	page := uint64(os.Getpagesize())
	got := 0
	for got < len(buf) {
		step := min(int(page-(address+uint64(got))%page), len(buf)-got)
		local := []unix.Iovec{{Base: &buf[got]}}
		local[0].SetLen(step)
		k, err := unix.ProcessVMReadv(int(n.Thread), local, []unix.RemoteIovec{{Base: uintptr(address) + uintptr(got), Len: step}}, 0)
		if err != nil || k == 0 {
			return ""
		}
		got += k
		if i := bytes.IndexByte(buf[:got], 0); i >= 0 {
			return string(buf[:i])
		}
	}
	return ""
}

// stop closes the listener; calls that wait and calls to come are refused by the kernel.
func (a *execAnswers) stop() {
	a.once.Do(func() { a.file.Close() })
}

// stopAnswering ends the answers, if any, and waits for that.
func (p *Process) stopAnswering() {
	if p.execs != nil {
		p.execs.stop()
		<-p.execs.done
	}
}
