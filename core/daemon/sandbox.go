package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pysandboxes/pysandboxes/core/transport"
)

// Sandbox is one child at a time. When it dies the next [Sandbox.Ensure] starts another, with back-off; a sandbox whose
// children die again and again stops with an error. Its methods may be called from any goroutine.
type Sandbox struct {
	now  func() time.Time
	wait func(context.Context, time.Duration) error

	mu         sync.Mutex // guards all below, and makes starts one after the other
	spec       Spec
	plan       *Plan
	child      *Child
	generation int
	closed     bool
	deaths     []time.Time // of children that died unasked, the latest crashWindow
	last       error       // how the latest one died
	starts     int
	denied     int // refusals of former children
}

// A sandbox whose children die this often within this time is broken, not unlucky.
const (
	maxDeaths   = 5
	crashWindow = 30 * time.Second
	firstDelay  = 50 * time.Millisecond // before the second restart; it doubles
)

// CrashLoopError is a sandbox that is not started again.
type CrashLoopError struct {
	Deaths int
	Last   error
}

func (e *CrashLoopError) Error() string {
	return fmt.Sprintf("the sandbox died %d times within %s and is not started again; the last time: %v\nClose it and open a new one when the cause is mended",
		e.Deaths, crashWindow, e.Last)
}

func (e *CrashLoopError) Unwrap() error { return e.Last }

// ErrClosed is a sandbox that was stopped.
var ErrClosed = errors.New("the sandbox is closed")

// Open prepares a sandbox and starts its first child. With [ErrDirect] there is none to start; the plan then says why.
func Open(ctx context.Context, spec Spec) (*Sandbox, error) {
	plan, err := Prepare(spec)
	if err != nil {
		return nil, err
	}
	return OpenPlan(ctx, plan)
}

// OpenPlan is Open for a plan at hand.
func OpenPlan(ctx context.Context, plan *Plan) (*Sandbox, error) {
	s := &Sandbox{spec: plan.spec, plan: plan, now: time.Now, wait: sleep}
	child, err := plan.Start(ctx)
	if err != nil {
		return nil, err
	}
	s.child, s.generation, s.starts = child, 1, 1
	return s, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Ensure gives a living child's channel and its generation, which counts the children from 1: on a new number the caller
// has to run its init_fn in it. A dead child is replaced.
func (s *Sandbox) Ensure(ctx context.Context) (generation int, conn *transport.Conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, nil, ErrClosed
	}
	if s.child != nil && s.child.Ended() == nil {
		return s.generation, s.child.Conn(), nil
	}
	if err := s.buried(ctx); err != nil {
		return 0, nil, err
	}
	if err := s.start(ctx); err != nil {
		return 0, nil, err
	}
	return s.generation, s.child.Conn(), nil
}

// buried clears a dead child away, and delays or refuses its successor.
func (s *Sandbox) buried(ctx context.Context) error {
	now := s.now()
	if s.child != nil {
		s.last = s.child.Ended()
		s.clear(false, 0)
		s.deaths = append(s.deaths, now)
	}
	for len(s.deaths) > 0 && now.Sub(s.deaths[0]) > crashWindow {
		s.deaths = s.deaths[1:]
	}
	n := len(s.deaths)
	if n >= maxDeaths {
		return &CrashLoopError{n, s.last}
	}
	if n < 2 {
		return nil
	}
	return s.wait(ctx, firstDelay<<(n-2))
}

func (s *Sandbox) start(ctx context.Context) error {
	child, err := s.plan.Start(ctx)
	if err != nil {
		s.deaths = append(s.deaths, s.now())
		s.last = err
		return err
	}
	s.child = child
	s.generation++
	s.starts++
	return nil
}

// clear ends the child at hand and keeps its counts.
func (s *Sandbox) clear(graceful bool, patience time.Duration) {
	if s.child == nil {
		return
	}
	_ = s.child.Stop(graceful, patience)
	s.denied += s.child.denials.counts()
	s.child = nil
}

// Reload reads the profile again and, where it loads, ends the child gracefully and starts another under it. A profile that
// does not load changes nothing.
func (s *Sandbox) Reload(ctx context.Context, patience time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	plan, err := Prepare(s.spec)
	if err != nil {
		return err
	}
	if s.plan.recorder != nil && plan.recorder != nil {
		plan.recorder = s.plan.recorder // what was learned so far is not lost
	}
	s.clear(true, patience)
	s.plan, s.deaths = plan, nil
	return s.start(ctx)
}

// Kill ends the present child of a generation at once: a call over its time. Ensure starts the next. A child that died by
// this is not counted as a crash.
func (s *Sandbox) Kill(generation int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.generation == generation {
		if s.child != nil {
			s.child.late.Store(true)
		}
		s.clear(false, 0)
	}
}

// Stop ends the sandbox: gracefully it waits up to patience for running calls. Stopping twice is no error.
func (s *Sandbox) Stop(graceful bool, patience time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.clear(graceful, patience)
	return nil
}

// Conn is the present child's channel, nil where none is running.
func (s *Sandbox) Conn() *transport.Conn {
	if c := s.Child(); c != nil {
		return c.Conn()
	}
	return nil
}

// Child is the present child, nil where none is running.
func (s *Sandbox) Child() *Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.child
}

// Pid is the present child's process number, 0 where none is running.
func (s *Sandbox) Pid() int {
	if c := s.Child(); c != nil {
		return c.Pid()
	}
	return 0
}

// Provider is the name of the provider.
func (s *Sandbox) Provider() string { return s.Plan().Provider() }

// Plan is the plan in force.
func (s *Sandbox) Plan() *Plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plan
}

// Generation counts the children from 1.
func (s *Sandbox) Generation() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation
}

// Denials lists the refusals of the present child.
func (s *Sandbox) Denials() []Denied {
	if c := s.Child(); c != nil {
		return c.Denials()
	}
	return nil
}

// Stats are a sandbox's counts.
type Stats struct {
	Pid        int    `json:"pid"`
	Provider   string `json:"provider"`
	Generation int    `json:"generation"`
	Starts     int    `json:"starts"`
	Denials    int    `json:"denials"`
	LastDeath  string `json:"last_death"` // "" where no child died
}

// Stats gives the counts.
func (s *Sandbox) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{Provider: s.plan.Provider(), Generation: s.generation, Starts: s.starts, Denials: s.denied}
	if s.child != nil {
		stats.Pid = s.child.Pid()
		stats.Denials += s.child.denials.counts()
	}
	if s.last != nil {
		stats.LastDeath = s.last.Error()
	}
	return stats
}
