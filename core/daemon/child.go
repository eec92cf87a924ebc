package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/audit"
	"github.com/pysandboxes/pysandboxes/core/broker"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/transport"
	"github.com/pysandboxes/pysandboxes/core/wire"
	"github.com/pysandboxes/pysandboxes/providers"
)

// Child is a running sandboxed interpreter.
type Child struct {
	plan    *Plan
	process *providers.Process
	server  *server
	denials *denials
	names   names
	held    bounds
	limits  providers.Limits
	conn    *transport.Conn // nil without calls

	done   chan struct{} // closed when the process ended and everything it sent was read
	status providers.Status
	err    error

	stopping sync.Mutex  // one Stop at a time
	asked    bool        // an end was asked for; guarded by stopping
	late     atomic.Bool // because a call was over its time

	cut atomic.Pointer[error] // why its connection was over while it ran
}

// Start is Prepare and [Plan.Start] in one.
func Start(ctx context.Context, spec Spec) (*Child, error) {
	plan, err := Prepare(spec)
	if err != nil {
		return nil, err
	}
	return plan.Start(ctx)
}

// Start starts a child and returns when its guard has said hello (and, with calls, when its Python is ready). On an error
// nothing is left of it.
func (p *Plan) Start(ctx context.Context) (*Child, error) {
	if p.provider == nil {
		return nil, ErrDirect
	}
	began := time.Now()
	c := &Child{plan: p, denials: &denials{}, done: make(chan struct{})}
	c.names = p.names(c)
	c.server = newServer(&judge{policy: p.policy, names: c.names, learn: p.Learning(), atStart: p.provider.Holds().Files, denials: c.denials}, p.recorder, p.spec.Logger)
	if err := c.launch(); err != nil {
		c.names.close()
		return nil, err
	}
	if err := c.greeting(ctx, p.spec.StartTimeout); err != nil {
		c.abandon()
		return nil, err
	}
	if c.conn != nil {
		if err := c.ready(ctx, p.spec.StartTimeout-time.Since(began)); err != nil {
			c.abandon()
			return nil, err
		}
	}
	return c, nil
}

// networkVariable, in the supervisor's environment, chooses between the two ways to hold network rules (walled, unwalled). It
// is for tests, and for a machine on which the better one gives trouble: either holds the same rules.
const networkVariable = "PYSANDBOXES_NETWORK"

// launch makes the process. Its ends of the sockets are closed here when it returns.
func (c *Child) launch() error {
	p := c.plan
	if err := p.policy.CheckMoved(); err != nil {
		return err
	}
	made, err := p.makeFolders()
	if err != nil {
		return err
	}
	data, err := p.bootData(made)
	if err != nil {
		return err
	}
	boot, err := sealed("pysandboxes-boot", data)
	if err != nil {
		return err
	}
	defer boot.Close()
	announce, childAnnounce, err := pair(unix.SOCK_SEQPACKET, "announce")
	if err != nil {
		return err
	}
	defer childAnnounce.Close()
	fds := []int{announce} // ours, until they have an owner
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	var childCall *os.File
	if p.spec.WithCalls {
		call, theirs, err := pair(unix.SOCK_STREAM, "call")
		if err != nil {
			return err
		}
		childCall, fds = theirs, append(fds, call)
		defer childCall.Close()
	}
	stdio := p.spec.Stdio
	if p.spec.Native != nil {
		stdio[1], stdio[2] = p.spec.Native.Files()
	}
	network, err := providers.NetworkOf(p.spec.Env[networkVariable])
	if err != nil {
		return err
	}
	in := p.spec.Interpreter
	command, err := p.provider.Prepare(p.policy, providers.Child{
		Path: in.Executable, Argv: append([]string{in.Executable}, p.spec.PythonArgs...), Env: p.environ(), Dir: p.spec.Cwd,
		Stdin: stdio[0], Stdout: stdio[1], Stderr: stdio[2],
		Boot: boot, Announce: childAnnounce, Call: childCall,
		Guard: in.Guard, Preload: in.Preload, Setsid: p.spec.Setsid, InitPath: p.spec.InitPath, Network: network,
	})
	if err == nil {
		c.limits, c.held = command.Limits, boundsOf(p.policy, command.Limits)
		command.Judge, command.Resolver = c.names.live, c.names.resolver
		command.Denied, command.Note = c.native, c.brokerNote
		if p.recorder != nil {
			command.Saw = p.recorder.Add
		}
		c.process, err = providers.Start(command)
	}
	if err != nil {
		return err
	}
	p.spec.Logger.Info("sandbox started", "pid", c.process.Pid(), "os-sandbox", p.policy.Switches().OSSandbox, "boundary", c.process.How())
	if p.spec.WithCalls {
		if c.conn, err = connect(fds[1], c.process.Pid(), p, c.denials, c.held); err != nil {
			_ = c.process.Kill()
			_, _ = c.process.Wait()
			return err
		}
	}
	fds = nil
	if c.conn != nil {
		go c.cutOff()
	}
	c.server.run(&socket{announce})
	go c.watch()
	return nil
}

// environ is the child's environment: the profile's. An interpreter with a user's own site-packages finds them by HOME, or
// without it by the password file, which is closed; where the profile gives neither HOME nor PYTHONUSERBASE, the latter is
// added, so that what `pip install --user` installed is there as it is in a plain start.
func (p *Plan) environ() []string {
	env := p.policy.Environ()
	user := p.spec.Interpreter.UserSite
	if len(user) == 0 {
		return env
	}
	for _, entry := range env {
		if strings.HasPrefix(entry, "HOME=") || strings.HasPrefix(entry, "PYTHONUSERBASE=") {
			return env
		}
	}
	base := filepath.Dir(filepath.Dir(filepath.Dir(user[0]))) // BASE/lib/python3.N/site-packages (site.py, _get_path)
	return append(env, "PYTHONUSERBASE="+base)
}

// greeting waits for the guard's hello, the end of the process, or the end of patience.
func (c *Child) greeting(ctx context.Context, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-c.server.hello:
		return err
	case <-c.done:
		// Both may have happened: a short program says hello and ends.
		select {
		case err := <-c.server.hello:
			return err
		default:
		}
		return &StartError{Status: c.status, Pid: c.Pid(), Limit: c.held.nearStart()}
	case <-timer.C:
		return &StartError{Pid: c.Pid(), Patience: patience}
	case <-ctx.Done():
		return fmt.Errorf("the start of the sandbox was given up: %w", context.Cause(ctx))
	}
}

// abandon ends a child that did not come up.
func (c *Child) abandon() {
	_ = c.process.Kill()
	<-c.done
	if c.conn != nil {
		c.conn.Close()
	}
}

// watch waits for the end of the process, then reads what it had sent.
func (c *Child) watch() {
	defer close(c.done)
	defer func() {
		if v := recover(); v != nil {
			c.err = fmt.Errorf("watching the sandbox failed: %v", v)
		}
	}()
	status, err := c.process.Wait()
	c.process.Settle()
	c.names.close() // before: a question may wait for a look-up
	c.server.stop()
	c.status, c.err = status, err
	if c.conn != nil {
		c.conn.Gone(c.Ended())
	}
}

// native records what was refused to native code. It runs on the broker's thread, before the caller has its answer, so that
// a program that asks for its denials afterwards finds this one.
func (c *Child) native(d broker.Denial) {
	one := nativeDenial(d)
	if c.denials.addNative(one) {
		c.plan.spec.Logger.Warn("refused to native code", "layer", one.Layer, "op", one.Op, "subject", one.Subject, "message", one.Message)
	}
}

// brokerNote passes on what the broker says of itself, and the observer, without which a profile lacks what it should have.
func (c *Child) brokerNote(text string) {
	if c.plan.Learning() {
		c.plan.spec.Logger.Error(text)
		return
	}
	c.plan.spec.Logger.Warn(text)
}

func nativeDenial(d broker.Denial) wire.Denial {
	if d.Decision != nil {
		layer := "broker"
		if d.Op == "exec" {
			layer = "os" // the kernel's file rules refuse it
		}
		denial := wire.Denial{
			Layer: layer, Family: d.Decision.Family, Subject: d.Decision.Subject, Op: d.Op, Category: d.Decision.Category,
			Add: d.Decision.Add, Message: d.Decision.Message(),
		}
		if !d.Decision.Rule.IsZero() {
			denial.Rule = d.Decision.Rule.String()
		}
		return denial
	}
	// The program chose the name: it must not speak in our voice, nor to a terminal.
	subject, ok := profile.Quote(d.Subject)
	if !ok {
		subject = "a program"
	}
	return wire.Denial{
		Layer: "os", Family: "call", Op: d.Op, Subject: d.Subject, Category: string(audit.ProcessExec),
		Add:     []string{"python-api=ALLOW:" + string(audit.ProcessExec)},
		Message: fmt.Sprintf("the kernel refused %s of %s (process-exec). Add:\n    python-api=ALLOW:%s", d.Op, subject, audit.ProcessExec),
	}
}

func category(name string) string {
	call, _ := audit.Lookup(name)
	return string(call.Category)
}

// Pid is the child's process number on the host.
func (c *Child) Pid() int { return c.process.Pid() }

// Provider is the name of the provider that holds it.
func (c *Child) Provider() string { return c.plan.Provider() }

// Conn is the channel for calls, nil without one.
func (c *Child) Conn() *transport.Conn { return c.conn }

// NativeDenials lists what was refused to native code so far, each subject once.
func (c *Child) NativeDenials() []Denied { return c.denials.natives() }

// Denials lists what was refused so far, in order, each subject once.
func (c *Child) Denials() []Denied { return c.denials.list() }

// Notices are what a person should be told at the start: the plan's, and what init found that this kernel cannot do.
func (c *Child) Notices() []string {
	return append(append([]string(nil), c.plan.notices...), c.process.Notes()...)
}

// Notes are what the start itself found, besides the plan's notices.
func (c *Child) Notes() []string { return c.process.Notes() }

// Done is closed when the child has ended and everything that it sent was read.
func (c *Child) Done() <-chan struct{} { return c.done }

// Wait waits for that. Every caller gets the same answer.
func (c *Child) Wait() (providers.Status, error) {
	<-c.done
	return c.status, c.err
}

// Signal sends a signal to the child's first process.
func (c *Child) Signal(sig syscall.Signal) error { return c.process.Signal(sig) }

// How long a child may take to heed SIGTERM before it is killed.
const termPatience = time.Second

// Stop ends the child. Gracefully: it is asked to finish running calls (patience bounds that), then told by SIGTERM, then
// killed. Otherwise it is killed at once. It returns when nothing is left; stopping twice is no error.
func (c *Child) Stop(graceful bool, patience time.Duration) error {
	return c.stop(context.Background(), graceful, patience)
}

// stop is Stop whose patience with running calls also ends with ctx.
func (c *Child) stop(ctx context.Context, graceful bool, patience time.Duration) error {
	c.stopping.Lock()
	defer c.stopping.Unlock()
	c.asked = true
	if graceful && c.conn != nil {
		if err := c.conn.Stop(); err == nil && c.within(ctx, patience) {
			return c.closed()
		}
	}
	if graceful {
		if err := c.process.Signal(syscall.SIGTERM); err == nil && c.within(context.Background(), termPatience) {
			return c.closed()
		}
	}
	if err := c.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending process %d of the sandbox: %w", c.Pid(), err)
	}
	<-c.done
	return c.closed()
}

func (c *Child) within(ctx context.Context, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

func (c *Child) closed() error {
	_ = c.process.Kill() // what it left behind
	if c.conn != nil {
		c.conn.Close()
	}
	return nil
}
