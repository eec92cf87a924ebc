package providers

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/broker"
	"github.com/pysandboxes/pysandboxes/providers/initproc"
)

// answer takes over the listener that init hands over, and serves it.
func (p *Process) answer(listener int, cmd Command) error {
	if p.answers != nil {
		unix.Close(listener)
		return errors.New("init sent a second listener")
	}
	boundary := cmd.Boundary
	c := broker.Config{
		Listener: listener,
		Mode:     broker.Unwalled,
		Judge:    cmd.Judge,
		Files:    cmd.Files,
		Caps:     boundary.KeepCaps,
		Program:  p.pid,
		Confine:  func() error { return initproc.ConfineThread(boundary) },
		OwnExec:  !boundary.Filter.Exec,
		Denied:   cmd.Denied,
		Note:     cmd.Note,
	}
	if boundary.Network != nil {
		c.Mode = broker.Walled
	} else if cmd.LooksUp {
		c.DNS = &broker.DNS{Servers: lookUpServers()}
		if cmd.Resolver != nil {
			c.DNS.Listen = cmd.Resolver.Listen
		}
	}
	b, err := broker.Serve(c)
	p.answers = b
	return err
}

// lookUpServers are those that the sandbox's programs ask.
func lookUpServers() []netip.AddrPort {
	const port = 53
	var out []netip.AddrPort
	for _, a := range nameServers(resolvConf) {
		out = append(out, netip.AddrPortFrom(netip.MustParseAddr(a), port))
	}
	return out
}

// stopAnswers ends the answers, if any, and waits for that.
func (p *Process) stopAnswers() {
	if p.answers != nil {
		p.answers.Stop()
	}
}
