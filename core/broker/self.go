package broker

import (
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/asker"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// scheduled are the calls about a process or thread that is named by a number, and which argument that is.
var scheduled = map[int32]int{
	unix.SYS_PRLIMIT64: 0, unix.SYS_SCHED_SETAFFINITY: 0, unix.SYS_SCHED_SETSCHEDULER: 0, unix.SYS_SCHED_SETPARAM: 0, unix.SYS_SCHED_SETATTR: 0,
	unix.SYS_SETPRIORITY: 1, unix.SYS_IOPRIO_SET: 1,
}

// itself lets a call go on that is for the calling thread, or for its process, by number: threads of the C library and processes
// that the program has made name themselves so. The number cannot become another's meanwhile, for who has it waits
// here; that of any other could, also that of a thread of the same process.
func (b *Broker) itself(n seccomp.Notification) outcome {
	target := int(int32(n.Args[scheduled[n.NR]]))
	if target <= 0 || target != int(n.Thread) && target != asker.Thread(n.Thread).Process() {
		return failed(unix.EPERM)
	}
	if !b.standing(n) {
		return elsewhere
	}
	if n.NR == unix.SYS_PRLIMIT64 && int32(n.Args[1]) == unix.RLIMIT_CORE && n.Args[2] != 0 {
		return outcome{} // stays as init has set it, as for the program's first process (providers/seccomp)
	}
	_ = seccomp.Continue(b.config.Listener, n.ID)
	return elsewhere
}
