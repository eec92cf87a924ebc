package providers

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/broker"
)

// answer takes over the listener that init hands over, and serves it.
func (p *Process) answer(listener int, cmd Command) error {
	if p.answers != nil {
		unix.Close(listener)
		return errors.New("init sent a second listener")
	}
	b, err := broker.Serve(broker.Config{
		Listener: listener,
		Judge:    cmd.Judge,
		Files:    cmd.Files,
		Caps:     cmd.Boundary.KeepCaps,
		OwnExec:  !cmd.Boundary.Filter.Exec,
		Denied:   cmd.Denied,
		Note:     cmd.Note,
	})
	p.answers = b
	return err
}

// stopAnswers ends the answers, if any, and waits for that.
func (p *Process) stopAnswers() {
	if p.answers != nil {
		p.answers.Stop()
	}
}
