package broker

import (
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/metadata"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// files makes the calls that change what a file is, beside the loop: a file system may take its time.
type files struct {
	worker   *metadata.Worker
	listener int // the worker's own copy: it may be at work when the broker has ended
}

// change has a call made.
func (b *Broker) change(n seccomp.Notification) {
	if b.files == nil {
		listener, err := unix.FcntlInt(uintptr(b.config.Listener), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			_ = seccomp.Refuse(b.config.Listener, n.ID, unix.EACCES)
			return
		}
		b.files = &files{metadata.New(b.mayChange, b.config.Caps), listener}
	}
	listener := b.files.listener
	b.files.worker.Do(n, func() bool { return seccomp.Valid(listener, n.ID) }, func(e unix.Errno) {
		_ = seccomp.Refuse(listener, n.ID, e) // 0 is success
	})
}

// closeFiles lets the worker end when it has done what it is at.
func (b *Broker) closeFiles() {
	if b.files != nil {
		listener := b.files.listener
		b.files.worker.Close(func() { unix.Close(listener) })
	}
}

// mayChange decides for the worker, by the rule for writing the file.
func (b *Broker) mayChange(path, op string) bool {
	if b.config.Files == nil {
		return false
	}
	d := b.config.Files.File(path, policy.Write, op)
	if !d.Allow {
		b.denied(Denial{Op: op, Subject: path, Decision: &d})
	}
	return d.Allow
}
