package broker

import (
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// exec answers a call of a sandbox that has no grant to run programs: the first, which is init's own, goes on; every
// other is refused.
//
// The first one may go on although its arguments lie in memory (the rule in seccomp.Continue): until it has
// happened the process is init, which is ours, and init has no other code running in it.
func (b *Broker) exec(n seccomp.Notification) outcome {
	if b.own {
		// An error: a signal took the call back before the answer, and it comes again.
		b.own = seccomp.Continue(b.config.Listener, n.ID) != nil
		return elsewhere
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
