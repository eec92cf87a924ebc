//go:build linux && (amd64 || arm64)

package metadata

import (
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/asker"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Permit decides on a canonical path: may the sandbox change what is there? It records the refusal.
type Permit func(path, op string) bool

// Worker makes the calls of one sandbox, one after the other, on a thread that has no more privilege than the sandbox. A file
// system that hangs holds up these calls and nothing else. The zero value is not usable.
type Worker struct {
	permit   Permit
	keep     []int
	start    sync.Once
	requests chan request
	closed   chan func()
}

type request struct {
	n     seccomp.Notification
	valid func() bool
	done  func(unix.Errno)
}

// pending bounds how many calls may wait. One more is refused.
const pending = 256

// New makes a worker. keep are the capabilities that the sandbox has.
func New(permit Permit, keep []int) *Worker {
	return &Worker{permit: permit, keep: keep, requests: make(chan request, pending), closed: make(chan func(), 1)}
}

// Do makes a call and tells its outcome, 0 for success, on a goroutine of the worker's. valid tells whether the caller
// still waits.
func (w *Worker) Do(n seccomp.Notification, valid func() bool, done func(unix.Errno)) {
	w.start.Do(func() { go w.serve() })
	select {
	case w.requests <- request{n, valid, done}:
	default:
		done(unix.EAGAIN)
	}
}

// Close ends the worker, once, and does not wait: a call that hangs may still be under way. What waits behind it gets no
// answer. last is called when nothing is under way any more.
func (w *Worker) Close(last func()) {
	w.start.Do(func() { go w.serve() })
	w.closed <- last
}

func (w *Worker) serve() {
	runtime.LockOSThread() // never unlocked: the thread has given rights up, and ends with this goroutine
	lessened := Lessen(w.keep)
	for {
		select {
		case last := <-w.closed:
			last()
			return
		case r := <-w.requests:
			e := unix.EACCES
			if lessened {
				e = w.perform(r)
			}
			r.done(e)
		}
	}
}

// perform recovers: a fault here refuses one call.
func (w *Worker) perform(r request) (e unix.Errno) {
	defer func() {
		if recover() != nil {
			e = unix.EACCES
		}
	}()
	c, ok := calls[r.n.NR]
	if !ok {
		return unix.ENOSYS
	}
	who := &caller{asker.Thread(r.n.Thread)}
	fd, e := who.open(c.file, r.n.Args[:])
	if e != 0 {
		return e
	}
	defer unix.Close(fd)
	do, e := c.read(who, r.n.Args[:])
	if e != 0 {
		return e
	}
	if !r.valid() {
		return unix.EINTR // what was read may have been another process's; nobody takes the answer
	}
	if c.file.path != none || !who.nameless(fd, int(int32(r.n.Args[0]))) {
		if path := asker.Named(fd); path == "" || !w.permit(path, c.op) {
			return unix.EACCES
		}
	}
	switch err := do(fd).(type) {
	case nil:
		return 0
	case unix.Errno:
		return err
	}
	return unix.EACCES
}

// Lessen leaves the calling thread, which its caller has locked, at most the kept capabilities: no label that only the machine's owner may set gets set.
func Lessen(keep []int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if unix.Capget(&header, &have[0]) != nil {
		return false
	}
	var want [2]unix.CapUserData
	for c := range 64 {
		if slices.Contains(keep, c) {
			bit := uint32(1) << (c % 32)
			want[c/32].Permitted |= have[c/32].Permitted & bit
			want[c/32].Effective |= have[c/32].Effective & bit
		}
	}
	return unix.Capset(&header, &want[0]) == nil
}
