package daemon

import (
	"context"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/wire"
)

func TestSandboxStartsAgain(t *testing.T) {
	w := newWorld(t, subprocess, "serves")
	w.spec.WithCalls, w.spec.Mode = true, wire.ModePartial
	s, err := Open(context.Background(), w.spec)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop(false, 0)) })
	var waited []time.Duration
	s.wait = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }

	first, conn, err := s.Ensure(context.Background())
	require.NoError(t, err)
	assert.Equal(t, 1, first)
	require.NotNil(t, conn)
	same, again, err := s.Ensure(context.Background())
	require.NoError(t, err)
	assert.Equal(t, first, same)
	assert.Same(t, conn, again)

	kill := func() {
		c := s.Child()
		require.NoError(t, c.Signal(syscall.SIGKILL))
		_, _ = c.Wait()
	}
	for want := 2; want <= maxDeaths; want++ {
		kill()
		generation, conn, err := s.Ensure(context.Background())
		require.NoError(t, err)
		assert.Equal(t, want, generation)
		assert.NotNil(t, conn)
	}
	assert.Equal(t, []time.Duration{firstDelay, 2 * firstDelay, 4 * firstDelay}, waited)
	stats := s.Stats()
	assert.Equal(t, maxDeaths, stats.Starts)
	assert.Contains(t, stats.LastDeath, "SIGKILL")

	kill()
	_, _, err = s.Ensure(context.Background())
	var loop *CrashLoopError
	require.ErrorAs(t, err, &loop)
	assert.ErrorContains(t, err, "died 5 times within 30s")

	require.NoError(t, s.Reload(context.Background(), time.Second), "a new profile may have mended it")
	generation, _, err := s.Ensure(context.Background())
	require.NoError(t, err)
	assert.Equal(t, maxDeaths+1, generation)

	s.Kill(generation)
	next, _, err := s.Ensure(context.Background())
	require.NoError(t, err)
	assert.Equal(t, generation+1, next)

	require.NoError(t, s.Stop(true, time.Second))
	require.NoError(t, s.Stop(true, time.Second), "twice is no error")
	_, _, err = s.Ensure(context.Background())
	assert.ErrorIs(t, err, ErrClosed)
}

func TestReloadOfABrokenProfileChangesNothing(t *testing.T) {
	w := newWorld(t, subprocess, "serves")
	w.spec.WithCalls = true
	s, err := Open(context.Background(), w.spec)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop(false, 0)) })
	pid := s.Pid()
	require.NoError(t, os.WriteFile(w.spec.ProfilePath, []byte("nonsense\n"), 0o644))
	var syntax *profile.SyntaxError
	require.ErrorAs(t, s.Reload(context.Background(), time.Second), &syntax)
	assert.Equal(t, pid, s.Pid())
}

// draining opens a sandbox whose child heeds no word, and begins to reload it with more patience than any test has.
func draining(t *testing.T) (*Sandbox, chan error) {
	t.Helper()
	w := newWorld(t, subprocess, "never stops")
	w.spec.WithCalls = true
	s, err := Open(context.Background(), w.spec)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Stop(false, 0)) })
	reloaded := make(chan error, 1)
	go func() { reloaded <- s.Reload(context.Background(), time.Hour) }()
	for s.lives.TryLock() {
		s.lives.Unlock()
		runtime.Gosched()
	}
	return s, reloaded
}

func TestAStopCutsAReloadShort(t *testing.T) {
	s, reloaded := draining(t)
	pid := s.Pid()
	assert.Positive(t, pid, "who only asks does not wait")
	assert.Equal(t, 1, s.Stats().Starts)
	require.NoError(t, s.Stop(true, time.Millisecond))
	require.ErrorIs(t, <-reloaded, ErrClosed)
	assert.Zero(t, s.Pid())
	assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	_, _, err := s.Ensure(context.Background())
	assert.ErrorIs(t, err, ErrClosed)
}

func TestASecondStopWithLessPatience(t *testing.T) {
	w := newWorld(t, subprocess, "never stops")
	w.spec.WithCalls = true
	s, err := Open(context.Background(), w.spec)
	require.NoError(t, err)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(true, time.Hour) }()
	require.NoError(t, s.Stop(false, 0))
	require.NoError(t, <-stopped)
	assert.Zero(t, s.Pid())
}

func TestACallOverItsTimeEndsAReloadThatWaitsForIt(t *testing.T) {
	s, reloaded := draining(t)
	first := s.Pid()
	s.Kill(1)
	require.NoError(t, <-reloaded)
	assert.Equal(t, 2, s.Generation())
	assert.NotEqual(t, first, s.Pid())
	s.Kill(1)
	assert.Equal(t, 2, s.Generation(), "a former child's number ends nobody")
	assert.NoError(t, s.Child().Ended())
}

func TestAStopGivesAStartUp(t *testing.T) {
	w := newWorld(t, subprocess, "serves")
	w.spec.WithCalls, w.spec.StartTimeout = true, time.Hour
	s, err := Open(context.Background(), w.spec)
	require.NoError(t, err)
	s.plan.spec.PythonArgs[1] = "never ready"
	s.Kill(1)
	started := make(chan error, 1)
	go func() { _, _, err := s.Ensure(context.Background()); started <- err }()
	for s.lives.TryLock() {
		s.lives.Unlock()
		runtime.Gosched()
	}
	require.NoError(t, s.Stop(true, time.Millisecond))
	require.ErrorIs(t, <-started, ErrClosed)
	assert.Zero(t, s.Stats().Pid)
}
