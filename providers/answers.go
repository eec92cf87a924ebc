package providers

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/broker"
	"github.com/pysandboxes/pysandboxes/core/resolver"
	"github.com/pysandboxes/pysandboxes/providers/initproc"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// answer takes over the listener that init hands over, and serves it.
func (p *Process) answer(listener int, cmd Command, door []int) error {
	if p.answers != nil || (cmd.Boundary.Network != nil) != (door != nil) {
		unix.Close(listener)
		closeAll(door)
		return errors.New("init sent a second listener, or one without a network that it should have made")
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
		OwnExec:  !boundary.Filter.Exec || boundary.Filter.TellExec,
		Runs:     boundary.Filter.Exec,
		Keep:     boundary.Filter.Ask&seccomp.AskSocket != 0,
		Denied:   cmd.Denied,
		Note:     cmd.Note,
	}
	if boundary.Network != nil {
		c.Mode = broker.Walled
		var servers []int
		c.Door, servers = doorOf(door, boundary.Network)
		if err := serveNames(cmd.Resolver, servers); err != nil {
			unix.Close(listener)
			c.Door.Close()
			return err
		}
	} else if cmd.LooksUp {
		c.DNS = &broker.DNS{Servers: lookUpServers(cmd.Resolver)}
		if cmd.Resolver != nil {
			c.DNS.Listen = cmd.Resolver.Listen
		}
	}
	b, err := broker.Serve(c)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = b
	return err
}

// serveNames has the resolver answer at the sockets that init has made, a datagram and a stream socket by turns. Without
// one, nobody answers.
func serveNames(r *resolver.Resolver, sockets []int) error {
	for len(sockets) > 0 {
		pair := sockets[:2]
		sockets = sockets[2:]
		if r == nil {
			closeAll(pair)
			continue
		}
		if err := r.ServeSockets(pair[0], pair[1]); err != nil {
			closeAll(sockets)
			return fmt.Errorf("in the sandbox: %w", err)
		}
	}
	return nil
}

// lookUpServers are those that the sandbox's programs ask.
func lookUpServers(r *resolver.Resolver) []netip.AddrPort {
	const port = 53
	var out []netip.AddrPort
	for _, a := range systemOf(r).Inside() {
		out = append(out, netip.AddrPortFrom(a, port))
	}
	return out
}

// systemOf is what the resolver of a start has read of resolv.conf: once for each start.
func systemOf(r *resolver.Resolver) resolver.System {
	if r == nil {
		return resolver.ReadSystem()
	}
	return r.System
}

// stopAnswers ends the answers, if any, and waits for that.
func (p *Process) stopAnswers() {
	if p.answers != nil {
		p.answers.Stop()
	}
	if p.observer != nil {
		p.observer.Stop()
	}
}
