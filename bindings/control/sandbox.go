package control

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/bindings/calls"
	"github.com/pysandboxes/pysandboxes/core/daemon"
	"github.com/pysandboxes/pysandboxes/core/learn"
)

// Sandbox is one open sandbox: a plan, and from the first Ensure on a child that is replaced when it dies.
type Sandbox struct {
	// Calls is for bindings/core, which serves the path of a call by hand. No field is a door for Python.
	Calls calls.Table

	tasks   tasks
	opening context.Context // over when the first child need not come any more
	giveUp  context.CancelFunc
	streams *streams
	direct  bool // os-sandbox=none: there is no child, Python calls its functions itself

	mu     sync.Mutex // guards what follows
	plan   *daemon.Plan
	live   *daemon.Sandbox // nil before the first Ensure
	closed bool
	learnt string
}

// Open loads the profile and chooses the provider; Ensure starts the child. The request is JSON, see openRequest.
func Open(request string) (*Sandbox, error) {
	var r openRequest
	if err := read(request, &r); err != nil {
		return nil, err
	}
	spec, err := r.spec()
	if err != nil {
		return nil, err
	}
	pipes, err := newStreams()
	if err != nil {
		return nil, err
	}
	spec.Native = pipes.Native
	plan, err := daemon.Prepare(spec)
	direct := errors.Is(err, daemon.ErrDirect) && plan != nil
	if err != nil && !direct {
		pipes.close()
		return nil, err
	}
	return newSandbox(plan, pipes, direct), nil
}

func newSandbox(plan *daemon.Plan, pipes *streams, direct bool) *Sandbox {
	s := &Sandbox{streams: pipes, direct: direct, plan: plan}
	s.opening, s.giveUp = context.WithCancel(context.Background())
	runtime.AddCleanup(s, (*streams).CloseWrite, pipes) // opened and let go of: Ctrl-C came before anybody could stop it
	return s
}

// Another is a sandbox under the same policy, with children of its own: nothing is read again, so that many are alike whatever
// becomes of the profile meanwhile. Each is stopped by itself.
func (s *Sandbox) Another() (*Sandbox, error) {
	plan := s.inForce()
	if plan == nil {
		return nil, daemon.ErrClosed
	}
	pipes, err := newStreams()
	if err != nil {
		return nil, err
	}
	return newSandbox(plan.For(pipes.Native), pipes, s.direct), nil
}

// Ensure gives the number of the child in force, which counts from 1; where none lives it starts one. Python runs init_fn
// whenever the number is a new one.
func (s *Sandbox) Ensure() (int, error) {
	if s.direct {
		return 0, daemon.ErrDirect
	}
	return s.tasks.do("Ensure", s.ensure)
}

func (s *Sandbox) ensure() (int, error) {
	s.mu.Lock()
	plan, live, closed := s.plan, s.live, s.closed
	s.mu.Unlock()
	ctx := context.Background()
	var err error
	switch {
	case closed || plan == nil:
		return 0, daemon.ErrClosed
	case live == nil: // only one task of this name runs at a time
		if live, err = daemon.OpenPlan(s.opening, plan); err != nil {
			return 0, err
		}
		s.mu.Lock()
		closed, s.live = s.closed, live
		s.mu.Unlock()
		if closed { // Stop came while it started, and saw none
			_ = live.Stop(false, 0)
			return 0, daemon.ErrClosed
		}
	}
	return s.use(ctx, live)
}

// use makes the child's connection the one for new calls.
func (s *Sandbox) use(ctx context.Context, live *daemon.Sandbox) (int, error) {
	generation, conn, err := live.Ensure(ctx)
	if err != nil {
		return 0, err
	}
	return generation, s.Calls.Use(uint64(generation), conn)
}

// Reload reads the profile again and replaces the child: its running calls may finish, for timeoutMs at most.
func (s *Sandbox) Reload(timeoutMs int) error {
	_, err := s.tasks.do("Reload", func() (int, error) {
		live := s.now()
		if live == nil {
			return 0, daemon.ErrClosed
		}
		ctx := context.Background()
		if err := live.Reload(ctx, time.Duration(timeoutMs)*time.Millisecond); err != nil {
			return 0, err
		}
		return s.use(ctx, live)
	})
	return err
}

// Kill ends the child of a generation at once, and returns when it is gone: a call over its time. Ensure starts the next. A
// child that has been replaced since is left alone, and one that died by this is not counted as a crash.
func (s *Sandbox) Kill(generation int) error {
	_, err := s.tasks.do(fmt.Sprint("Kill ", generation), func() (int, error) {
		if live := s.now(); live != nil {
			live.Kill(generation)
		}
		return 0, nil
	})
	return err
}

// Stop ends the sandbox: gracefully, running calls may finish, for timeoutMs at most; so may what else is under way, a reload or
// a Stop with more time. What was learned is written then. Stopping twice is no error.
func (s *Sandbox) Stop(graceful bool, timeoutMs int) error {
	if live := s.now(); live != nil {
		patience := time.Duration(timeoutMs) * time.Millisecond
		if !graceful {
			patience = 0
		}
		live.Hurry(patience)
	}
	_, err := s.tasks.do("Stop", func() (int, error) {
		s.mu.Lock()
		before, live := s.closed, s.live
		s.closed = true
		s.mu.Unlock()
		if s.giveUp != nil {
			s.giveUp()
		}
		if before {
			return 0, nil
		}
		var err error
		if live != nil {
			err = live.Stop(graceful, time.Duration(timeoutMs)*time.Millisecond)
		}
		if s.streams != nil {
			s.streams.close()
		}
		err = errors.Join(err, s.writeLearned())
		s.mu.Lock()
		s.live, s.plan = nil, nil // a handle that Python keeps holds no policy and no child
		s.mu.Unlock()
		return 0, err
	})
	return err
}

func (s *Sandbox) writeLearned() error {
	plan := s.inForce()
	if plan == nil || !plan.Learning() {
		return nil
	}
	report, err := plan.Learned()
	text := learnText(report, err, isTerminal(2), width())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learnt = text
	return err
}

// learnText is the end of a learning run in words: the table, and where it went, which an error says in place of it.
func learnText(r daemon.LearnReport, failed error, color bool, width int) string {
	text := ""
	if r.Result.Rules() > 0 {
		text = "\n" + learn.Table(r.Result, color, width)
	}
	if failed == nil {
		text += "pysandboxes: " + r.Summary() + "\n"
	}
	return text
}

// width is the terminal's, or what fits on paper.
func width() int {
	if size, err := unix.IoctlGetWinsize(2, unix.TIOCGWINSZ); err == nil && size.Col > 20 {
		return int(size.Col)
	}
	return 100
}

func (s *Sandbox) now() *daemon.Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live
}

// inForce is the plan that the present child runs under.
func (s *Sandbox) inForce() *daemon.Plan {
	s.mu.Lock()
	live, plan := s.live, s.plan
	s.mu.Unlock()
	if live != nil {
		return live.Plan()
	}
	return plan
}

// Pid is the child's process number, 0 where none runs.
func (s *Sandbox) Pid() int {
	if live := s.now(); live != nil {
		return live.Pid()
	}
	return 0
}

// Provider is the name of the OS provider; "none" says that functions are called directly.
func (s *Sandbox) Provider() (string, error) {
	plan := s.inForce()
	if plan == nil {
		return "", daemon.ErrClosed
	}
	return plan.Provider(), nil
}

// Stats gives counts as a JSON object: pid, provider, generation, starts, denials, last_death, begun, pending, call_timeout and its line.
func (s *Sandbox) Stats() (string, error) {
	var stats struct {
		daemon.Stats
		calls.Counts
		LastDeath   border.Text `json:"last_death"`
		CallTimeout float64     `json:"call_timeout"` // seconds; 0: no call-timeout rule
		CallRule    border.Text `json:"call_timeout_rule"`
	}
	stats.Counts = s.Calls.Counts()
	if plan := s.inForce(); plan != nil {
		stats.CallTimeout = plan.Policy().Limits().CallTimeout.Seconds()
		stats.CallRule = border.Text(plan.Policy().LimitRule("call-timeout"))
	}
	if live := s.now(); live != nil {
		stats.Stats = live.Stats()
		stats.LastDeath = border.Text(stats.Stats.LastDeath)
	} else if plan := s.inForce(); plan != nil {
		stats.Provider = plan.Provider()
	}
	return border.JSON(stats)
}

// Notices gives, as a JSON list of strings, what a person should know: warnings of the profile, what the provider does not hold.
func (s *Sandbox) Notices() (string, error) {
	var notices []string
	if plan := s.inForce(); plan != nil {
		notices = plan.Notices()
	}
	if live := s.now(); live != nil {
		if child := live.Child(); child != nil {
			notices = child.Notices()
		}
	}
	return border.JSON(texts(notices))
}

// Denials gives, as a JSON list of objects, what the present child was refused: layer, family, op, subject, category, rule, add,
// message, count.
func (s *Sandbox) Denials() (string, error) {
	list := []denial{}
	if live := s.now(); live != nil {
		for _, d := range live.Denials() {
			list = append(list, denial{
				Layer: d.Layer, Family: d.Family, Op: border.Text(d.Op), Subject: border.Text(d.Subject), Category: d.Category,
				Rule: border.Text(d.Rule), Add: texts(d.Add), Message: border.Text(d.Message), Count: d.Count,
			})
		}
	}
	return border.JSON(list)
}

// denial is daemon.Denied with every byte of its texts.
type denial struct {
	Layer    string        `json:"layer"`
	Family   string        `json:"family"`
	Op       border.Text   `json:"op"`
	Subject  border.Text   `json:"subject"`
	Category string        `json:"category"`
	Rule     border.Text   `json:"rule"`
	Add      []border.Text `json:"add"`
	Message  border.Text   `json:"message"`
	Count    int           `json:"count"`
}

// LearnReport gives the table of what was learned and which file it went to, "" where this sandbox does not learn or has not been stopped.
func (s *Sandbox) LearnReport() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.learnt
}

func texts(strings []string) []border.Text {
	out := make([]border.Text, len(strings))
	for i, text := range strings {
		out[i] = border.Text(text)
	}
	return out
}
