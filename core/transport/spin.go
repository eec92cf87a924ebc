package transport

import (
	"time"

	"golang.org/x/sys/unix"
)

// How long a reader looks before it sleeps. A sleeping thread costs some 20 us to be woken on an idle machine, more than
// a small call takes; looking longer would burn a core for calls that are not small.
const (
	spinTime  = 80 * time.Microsecond
	spinMost  = 8  // hits that are remembered
	spinRetry = 32 // sleeps after which it is tried again
)

// spinner decides whether to look. Looking that found nothing makes it give up for a while: what answers takes long, or
// there is one processor only. It belongs to whoever holds the reader's role.
type spinner struct{ credit, slept int }

// receive looks for bytes, giving the processor away in between. The error is EAGAIN where nothing came.
func (s *spinner) receive(fd int, p []byte) (int, error) {
	if s.credit == 0 {
		if s.slept++; s.slept < spinRetry {
			return 0, unix.EAGAIN
		}
		s.slept, s.credit = 0, 1
	}
	for start := time.Now(); ; {
		n, err := receive(fd, p, false)
		if err != unix.EAGAIN {
			s.credit = min(s.credit+1, spinMost)
			return n, err
		}
		if time.Since(start) > spinTime {
			s.credit--
			return 0, err
		}
		_, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}
