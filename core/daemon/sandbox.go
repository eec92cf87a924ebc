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

	// lives is held by who starts or ends a child, which may take half a minute. Nobody who only asks waits for it.
	lives sync.Mutex
	spec  Spec // guarded by lives

	// ending is over when no start and no drain may go on.
	ending context.Context
	end    context.CancelCauseFunc

	mu         sync.Mutex  // guards all below, and is held for moments; written to under lives as well
	latest     *time.Timer // of end, once there is one
	due        time.Time   // when it fires
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
	s.ending, s.end = context.WithCancelCause(context.Background())
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
	s.lives.Lock()
	defer s.lives.Unlock()
	if s.isClosed() {
		return 0, nil, ErrClosed
	}
	if child := s.Child(); child != nil && child.Ended() == nil {
		return s.Generation(), child.Conn(), nil
	}
	ctx, done := s.bounded(ctx)
	defer done()
	if err := s.buried(ctx); err != nil {
		return 0, nil, err
	}
	if err := s.start(ctx); err != nil {
		return 0, nil, err
	}
	return s.Generation(), s.Conn(), nil
}

// bounded is ctx, over also when the sandbox's end is due.
func (s *Sandbox) bounded(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ending, func() { cancel(context.Cause(s.ending)) })
	return ctx, func() { stop(); cancel(nil) }
}

// buried clears a dead child away, and delays or refuses its successor.
func (s *Sandbox) buried(ctx context.Context) error {
	now := s.now()
	if child := s.Child(); child != nil {
		last := child.Ended()
		s.clear(false, 0)
		s.died(last, now)
	}
	s.mu.Lock()
	for len(s.deaths) > 0 && now.Sub(s.deaths[0]) > crashWindow {
		s.deaths = s.deaths[1:]
	}
	n, last := len(s.deaths), s.last
	s.mu.Unlock()
	if n >= maxDeaths {
		return &CrashLoopError{n, last}
	}
	if n < 2 {
		return nil
	}
	return s.wait(ctx, firstDelay<<(n-2))
}

func (s *Sandbox) died(how error, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.deaths = how, append(s.deaths, at)
}

func (s *Sandbox) start(ctx context.Context) error {
	child, err := s.Plan().Start(ctx)
	if err != nil {
		if s.ending.Err() == nil {
			s.died(err, s.now())
		}
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.child = child
	s.generation++
	s.starts++
	return nil
}

// clear ends the child at hand and keeps its counts.
func (s *Sandbox) clear(graceful bool, patience time.Duration) {
	child := s.Child()
	if child == nil {
		return
	}
	_ = child.stop(s.ending, graceful, patience)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied += child.denials.counts()
	s.child = nil
}

// Reload reads the profile again and, where it loads, ends the child gracefully and starts another under it. A profile that
// does not load changes nothing.
func (s *Sandbox) Reload(ctx context.Context, patience time.Duration) error {
	s.lives.Lock()
	defer s.lives.Unlock()
	if s.isClosed() {
		return ErrClosed
	}
	plan, err := Prepare(s.spec)
	if err != nil {
		return err
	}
	if old := s.Plan(); old.recorder != nil && plan.recorder != nil {
		plan.recorder = old.recorder // what was learned so far is not lost
	}
	s.clear(true, patience)
	if s.isClosed() {
		return ErrClosed
	}
	s.mu.Lock()
	s.plan, s.deaths = plan, nil
	s.mu.Unlock()
	ctx, done := s.bounded(ctx)
	defer done()
	return s.start(ctx)
}

// Kill ends the present child of a generation at once, also one that is being drained: a call over its time. Ensure starts the
// next. A child that died by this is not counted as a crash.
func (s *Sandbox) Kill(generation int) {
	s.mu.Lock()
	child := s.child
	if s.generation != generation {
		child = nil
	}
	s.mu.Unlock()
	if child == nil {
		return
	}
	child.late.Store(true)
	_ = child.process.Kill()
	s.lives.Lock()
	defer s.lives.Unlock()
	if s.Child() == child {
		s.clear(false, 0)
	}
}

// Stop ends the sandbox: gracefully it waits up to patience for running calls. That bounds a start or a reload that is under way,
// too. Stopping twice is no error.
func (s *Sandbox) Stop(graceful bool, patience time.Duration) error {
	if !graceful {
		patience = 0
	}
	s.Hurry(patience)
	s.lives.Lock()
	defer s.lives.Unlock()
	s.clear(graceful, patience)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest.Stop()
	s.end(ErrClosed)
	return nil
}

// Hurry lets no further child start, and whatever is under way goes on for patience at most: a start, a reload, a Stop with more
// patience. It does not wait.
func (s *Sandbox) Hurry(patience time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	due := time.Now().Add(patience)
	if s.latest != nil {
		if !due.Before(s.due) {
			return
		}
		s.latest.Stop()
	}
	s.due = due
	s.latest = time.AfterFunc(patience, func() { s.end(ErrClosed) })
}

func (s *Sandbox) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
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
