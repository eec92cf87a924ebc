package providers

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// How long init may take. It does milliseconds of work; a machine that swaps takes longer.
const (
	initTimeout = 20 * time.Second
	// execTimeout is how long the end of the control stream is waited for after init said ready. Only a copy of
	// this process made at a bad moment can keep the stream open; the child is then watched all the same.
	execTimeout = 2 * time.Second
)

// Start starts a prepared child. When it returns, the boundary stands and was proved, and the program's exec was
// let through. On an error nothing is left: no process, no zombie, no descriptor. The files of the child stay the
// caller's to close.
func Start(cmd Command) (*Process, error) {
	p, err := startIn(cmd)
	if err != nil {
		return nil, fmt.Errorf("os-sandbox=%s: %w", cmd.Provider, err)
	}
	return p, nil
}

func start(cmd Command) (_ *Process, err error) {
	c := cmd.Child
	if len(c.Argv) == 0 || c.InitPath == "" {
		return nil, errors.New("a command without a program or without init")
	}
	opened := &owned{}
	defer opened.close()

	files, control, err := descriptors(cmd, opened)
	if err != nil {
		return nil, err
	}
	group, err := cmd.Limits.MakeGroup()
	if err != nil {
		return nil, err
	}
	pid, pidfd, err := makeInit(cmd, files, group)
	if err != nil {
		if group != nil {
			group.End()
		}
		return nil, err
	}
	// The child's ends are the child's alone from here on: the end of the stream must show.
	opened.childEnds()
	p, err := watch(pid, pidfd, group)
	if err != nil {
		return nil, err
	}
	err = p.handshake(control, cmd)
	if err == nil && group != nil {
		err = group.BoundProcesses()
	}
	if err != nil {
		p.Kill()
		p.Wait() // the error in hand says more than the signal
		p.stopAnswers()
		return nil, err
	}
	return p, nil
}

// descriptors lays out what init finds open (plan.FD…), and returns our end of the control socket.
func descriptors(cmd Command, o *owned) (files []*os.File, control int, err error) {
	c := cmd.Child
	env, err := environ(c)
	if err != nil {
		return nil, -1, err
	}
	path := c.Path
	if path == "" {
		path = c.Argv[0]
	}
	p := plan.Plan{
		Version: plan.Version, Parent: os.Getpid(),
		Path: path, Argv: c.Argv, Env: env,
		Limits: cmd.Limits.Limits, Boundary: cmd.Boundary, Observe: observed(cmd),
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, fmt.Errorf("control socket: %w", err)
	}
	o.ours = os.NewFile(uintptr(pair[0]), "control")
	theirs := os.NewFile(uintptr(pair[1]), "control of init")
	o.theirs = append(o.theirs, theirs)

	files = make([]*os.File, plan.FDCall+1)
	for i, f := range []*os.File{c.Stdin, c.Stdout, c.Stderr} {
		if f == nil {
			if f, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
				return nil, -1, err
			}
			o.theirs = append(o.theirs, f)
		}
		files[i] = f
	}
	files[plan.FDControl] = theirs
	files[plan.FDBoot], files[plan.FDAnnounce], files[plan.FDCall] = c.Boot, c.Announce, c.Call
	for fd := plan.FDBoot; fd <= plan.FDCall; fd++ {
		if files[fd] != nil {
			p.Keep = append(p.Keep, fd)
		}
	}
	sealed, err := p.Seal()
	if err != nil {
		return nil, -1, err
	}
	o.theirs = append(o.theirs, sealed)
	files[plan.FDPlan] = sealed
	return files, pair[0], nil
}

// owned are the descriptors that a start opens itself.
type owned struct {
	ours   *os.File
	theirs []*os.File
}

func (o *owned) childEnds() {
	for _, f := range o.theirs {
		f.Close()
	}
	o.theirs = nil
}

func (o *owned) close() {
	o.childEnds()
	if o.ours != nil {
		o.ours.Close()
	}
}

// handshake follows init until the exec.
func (p *Process) handshake(control int, cmd Command) error {
	deadline := time.Now().Add(initTimeout)
	ready := false
	var door []int
	defer func() { closeAll(door) }()
	for {
		if err := p.readable(control, deadline); err != nil {
			if ready && errors.Is(err, errTimeout) {
				return nil
			}
			return err
		}
		m, fds, err := plan.ReceiveAll(control)
		if errors.Is(err, io.EOF) {
			return p.ended(ready)
		}
		if err != nil {
			return err
		}
		if len(fds) != wanted(m.Kind, cmd.Boundary) {
			closeAll(fds)
			return fmt.Errorf("init sent %q with a descriptor too many or too few", m.Kind)
		}
		switch m.Kind {
		case plan.Door:
			door = append(door, fds...)
		case plan.Listener:
			given := door
			door = nil
			take := p.answer
			if observed(cmd) {
				take = p.observe
			}
			if err := take(fds[0], cmd, given); err != nil {
				return err
			}
			if err := plan.Send(control, plan.Message{Kind: plan.Taken}); err != nil {
				return err
			}
		case plan.Ready:
			ready, p.notes = true, m.Notes
			deadline = time.Now().Add(execTimeout)
		case plan.Failed:
			if m.Stage != "" {
				return &stageError{m.Stage, errors.New(m.Text)}
			}
			return errors.New(m.Text)
		default:
			return fmt.Errorf("init sent %q, which means nothing", m.Kind)
		}
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// wanted is how many descriptors come with a message.
func wanted(kind plan.Kind, b *plan.Boundary) int {
	switch {
	case kind == plan.Listener:
		return 1
	case kind == plan.Door && b != nil && b.Network != nil:
		return plan.DoorServers + 2*len(b.Network.Servers)
	}
	return 0
}

var errTimeout = errors.New("init gave no sign of life in time")

// readable waits for the control socket. The end of the process is noticed too, in case a copy of this process
// holds the other end of the socket open.
func (p *Process) readable(control int, deadline time.Time) error {
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return errTimeout
		}
		fds := []unix.PollFd{{Fd: int32(control), Events: unix.POLLIN}}
		select {
		case <-p.done:
			left = 0 // take what it still said
		default:
			left = min(left, 50*time.Millisecond)
		}
		n, err := unix.Poll(fds, int(left.Milliseconds()))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("wait for init: %w", err)
		case n > 0:
			return nil
		case left == 0:
			return p.ended(false)
		}
	}
}

// ended judges the end of the control stream: after ready it is the exec, else init died.
func (p *Process) ended(ready bool) error {
	if ready {
		return nil
	}
	s, err := p.Wait()
	if err != nil {
		return fmt.Errorf("init ended without a word: %w", err)
	}
	return fmt.Errorf("init ended without a word (%s)", s)
}
