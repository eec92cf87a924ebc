package broker

import (
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/asker"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// exec answers a call to run a program: the first, which is init's own, goes on; every other is refused where there is no grant,
// and else told of.
//
// The first one may go on although its arguments lie in memory (the rule in seccomp.Continue): until it has
// happened the process is init, which is ours, and init has no other code running in it.
func (b *Broker) exec(n seccomp.Notification) outcome {
	if b.own {
		// An error: a signal took the call back before the answer, and it comes again.
		b.own = seccomp.Continue(b.config.Listener, n.ID) != nil
		return elsewhere
	}
	if b.config.Runs {
		return b.started(n)
	}
	address := n.Args[0]
	if n.NR == unix.SYS_EXECVEAT {
		address = n.Args[1]
	}
	path := pathAt(n.Thread, address)
	if !b.standing(n) {
		return elsewhere // the caller is gone, and what was read is not its memory
	}
	b.denied(Denial{Op: "exec", Subject: path, Thread: int(n.Thread)})
	return failed(unix.EACCES)
}

// started lets a call go on, which is the kernel's to judge by its file rules: what is read here decides nothing. The kernel's
// refusal has no words, and a shell's "Permission denied" names no rule; so a program that none exposes is told of. Beside the loop:
// a file system may take its time.
func (b *Broker) started(n seccomp.Notification) outcome {
	listener, err := unix.FcntlInt(uintptr(b.config.Listener), unix.F_DUPFD_CLOEXEC, 0) // the loop may have ended meanwhile
	if err != nil {
		_ = seccomp.Continue(b.config.Listener, n.ID)
		return elsewhere
	}
	go func() {
		defer unix.Close(listener)
		defer func() {
			_ = recover()
			_ = seccomp.Continue(listener, n.ID)
		}()
		path := program(n)
		if path == "" || b.config.Files == nil {
			return
		}
		if d := b.config.Files.File(path, policy.Read, "exec"); !d.Allow && seccomp.Valid(listener, n.ID) {
			b.denied(Denial{Op: "exec", Subject: path, Thread: int(n.Thread), Decision: &d})
		}
	}()
	return elsewhere
}

// program is the file that an exec names, "" where it is none that could be run.
func program(n seccomp.Notification) string {
	if n.NR == unix.SYS_EXECVEAT {
		return asker.Thread(n.Thread).Program(int(int32(n.Args[0])), n.Args[1], n.Args[4])
	}
	return asker.Thread(n.Thread).Program(unix.AT_FDCWD, n.Args[0], 0)
}
