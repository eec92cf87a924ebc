package providers

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/observer"
)

// observe takes over the listener of a learning run.
func (p *Process) observe(listener int, cmd Command, door []int) error {
	if p.observer != nil || door != nil {
		unix.Close(listener)
		closeAll(door)
		return errors.New("init sent a second listener, or a door in a run that has no network of its own")
	}
	o, err := observer.Serve(observer.Config{Listener: listener, Saw: cmd.Saw, Note: cmd.Note})
	p.observer = o
	return err
}

// Settle returns when everything that a learning run has done so far was told. What the process started may still run, and is
// looked at until it has ended.
func (p *Process) Settle() {
	if p.observer != nil {
		p.observer.Settle()
	}
}

// observed tells a run that somebody looks at.
func observed(cmd Command) bool { return cmd.Saw != nil && cmd.Boundary == nil }
