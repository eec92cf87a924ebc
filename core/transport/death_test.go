package transport

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestDeathWithReason(t *testing.T) {
	c, p := connect(t, Options{Grace: patience})
	reason := errors.New("the sandbox process was killed by SIGKILL")
	answered, _ := c.Begin(nil)
	var ids []uint64
	for range 4 {
		id, _ := c.Begin(nil)
		ids = append(ids, id)
	}
	p.send(KindResult, answered, pickled(nil))
	p.f.Close()
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			_, err := last(c, id)
			var dead *DeadError
			if !errors.As(err, &dead) || !errors.Is(err, reason) {
				t.Errorf("%v", err)
			}
		})
	}
	_, err := last(c, answered)
	require.NoError(t, err, "what had arrived is given out")
	c.Fail(reason)
	c.Fail(errors.New("a second reason"))
	all.Wait()
	_, err = c.Begin(nil)
	require.ErrorIs(t, err, reason)
	_, err = c.Next(ids[0], 0)
	require.ErrorIs(t, err, ErrNoCall)
}

// A reply that lies in the socket when the process is known to have ended is given out, whoever is to read it.
func TestTheLastWordOfAProcess(t *testing.T) {
	reason := errors.New("the sandbox process ended")
	for name, finish := range map[string]func(*Conn, *peer){
		"nobody reads": func(c *Conn, p *peer) { p.f.Close(); c.Gone(reason) },
		"it was known at the end": func(c *Conn, p *peer) {
			p.f.Close()
			l := loopOf(t, c)
			for !c.ended { // the first leaves it to the thread that has just begun a call
				require.NoError(t, l.Pump())
			}
			c.Gone(reason)
		},
		"a fork holds the socket": func(c *Conn, p *peer) { c.Gone(reason) },
	} {
		t.Run(name, func(t *testing.T) {
			c, p := connect(t, Options{Grace: time.Millisecond})
			if name == "it was known at the end" {
				c.opts.Grace = patience
			}
			answered, _ := c.Begin(nil)
			open, _ := c.Begin(nil)
			p.send(KindStdout, answered, []byte("before"))
			p.send(KindResult, answered, pickled(nil))
			finish(c, p)
			require.ErrorIs(t, c.Err(), reason)
			require.Equal(t, 6, drainOutput(t, c, answered))
			_, err := last(c, open)
			require.ErrorIs(t, err, reason)
			require.NotErrorIs(t, err, ErrClosed)
		})
	}
	t.Run("a thread reads", func(t *testing.T) {
		c, p := connect(t, Options{Grace: patience})
		id, _ := c.Begin(nil)
		got := make(chan error, 1)
		go func() { _, err := last(c, id); got <- err }()
		require.Eventually(t, func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.reading }, patience, time.Millisecond)
		c.mu.Lock() // the reader cannot take apart what it receives
		p.send(KindResult, id, pickled(nil))
		p.f.Close()
		over := make(chan struct{})
		go func() { defer close(over); c.Gone(reason); c.Close() }()
		c.mu.Unlock()
		require.NoError(t, <-got)
		<-over
		require.ErrorIs(t, c.Err(), reason)
	})
}

func TestNoCallsAfterStop(t *testing.T) {
	c, p := connect(t, Options{})
	running, _ := c.Begin(nil)
	require.NoError(t, c.Stop())
	require.NoError(t, c.Stop(), "twice is no error")
	var dead *DeadError
	_, err := c.Begin(nil)
	require.ErrorAs(t, err, &dead)
	require.ErrorIs(t, err, ErrStopping)
	_, _, _, err = loopOf(t, c).Begin(nil, false)
	require.ErrorIs(t, err, ErrStopping)
	p.receive()
	kind, _, _ := p.receive()
	require.Equal(t, KindStop, kind)
	p.send(KindResult, running, pickled(nil))
	_, err = last(c, running)
	require.NoError(t, err, "and the running calls go on")
}

func TestDeathWithoutReason(t *testing.T) {
	c, p := connect(t, Options{Grace: time.Millisecond})
	id, _ := c.Begin(nil)
	p.f.Close()
	_, err := last(c, id)
	require.EqualError(t, err, "the call has no answer: the sandbox process closed its connection")
}

func TestDeathWithinFrame(t *testing.T) {
	c, p := connect(t, Options{Grace: time.Millisecond})
	id, _ := c.Begin(nil)
	b := encode(t, KindResult, id, make([]byte, 100_000))
	p.write(b[:60_000])
	p.f.Close()
	_, err := last(c, id)
	var dead *DeadError
	require.ErrorAs(t, err, &dead)
}

func TestDeathWhileWriting(t *testing.T) {
	c, p := connect(t, Options{Grace: time.Millisecond})
	id, err := c.Begin(make([]byte, 4*MaxPart))
	require.NoError(t, err)
	p.f.Close()
	_, err = last(c, id)
	var dead *DeadError
	require.ErrorAs(t, err, &dead)
}

func TestCloseWakesWaiters(t *testing.T) {
	c, _ := connect(t, Options{})
	var all sync.WaitGroup
	begun := make(chan struct{}, 3)
	for range 3 {
		id, _ := c.Begin(nil)
		all.Go(func() {
			begun <- struct{}{}
			_, err := last(c, id)
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%v", err)
			}
		})
	}
	for range 3 {
		<-begun
	}
	c.Close()
	c.Close()
	all.Wait()
	require.Equal(t, -1, c.fd)
}

func TestCancelWakesWaiter(t *testing.T) {
	c, _ := connect(t, Options{})
	id, _ := c.Begin(nil)
	got := make(chan error, 1)
	go func() { _, err := last(c, id); got <- err }()
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.calls[id].waiter.waiting
	}, patience, time.Millisecond)
	_, err := c.Next(id, 0)
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, c.Cancel(id))
	require.ErrorIs(t, <-got, ErrNoCall)
}

// A signal ends a wait at once, of the leader and of a follower, and the other waits go on.
func TestInterrupted(t *testing.T) {
	c, p := connect(t, Options{})
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGUSR1)
	defer signal.Stop(signals)
	wait := func(id uint64) (tid int, got chan error) {
		tids, got := make(chan int, 1), make(chan error, 1)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			tids <- unix.Gettid()
			_, err := c.Next(id, patience)
			got <- err
		}()
		return <-tids, got
	}
	leader, _ := c.Begin(nil)
	follower, _ := c.Begin(nil)
	tid1, got1 := wait(leader)
	tid2, got2 := wait(follower)
	start := time.Now()
	for _, tid := range []int{tid1, tid2} {
		require.NoError(t, unix.Tgkill(os.Getpid(), tid, unix.SIGUSR1))
	}
	require.ErrorIs(t, <-got1, ErrInterrupted)
	require.ErrorIs(t, <-got2, ErrInterrupted)
	require.Less(t, time.Since(start), 2*slice)
	p.send(KindResult, follower, pickled(nil))
	p.send(KindResult, leader, pickled(nil))
	for _, id := range []uint64{leader, follower} {
		_, err := last(c, id)
		require.NoError(t, err)
	}
}

// In a fork every method refuses. A Go program cannot fork; the pid that the connection remembers is changed instead.
func TestForked(t *testing.T) {
	c, _ := connect(t, Options{})
	id, _ := c.Begin(nil)
	l := loopOf(t, c)
	c.pid++
	defer func() { c.pid-- }()
	_, err := c.Begin(nil)
	require.ErrorIs(t, err, ErrForked)
	_, err = c.Next(id, 0)
	require.ErrorIs(t, err, ErrForked)
	_, _, _, err = l.Begin(nil, true)
	require.ErrorIs(t, err, ErrForked)
	_, _, _, err = l.Take()
	require.ErrorIs(t, err, ErrForked)
	_, err = c.NewLoop()
	require.ErrorIs(t, err, ErrForked)
	require.Empty(t, l.Close())
	require.False(t, l.closed)
	_, err = c.Ready(0)
	require.ErrorIs(t, err, ErrForked)
	require.ErrorIs(t, l.Pump(), ErrForked)
	require.ErrorIs(t, c.Cancel(id), ErrForked)
	require.ErrorIs(t, c.Stop(), ErrForked)
	c.Close()
	require.NoError(t, c.Err())
}
