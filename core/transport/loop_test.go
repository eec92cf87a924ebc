package transport

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// readable reports whether fd becomes readable within d.
func readable(t *testing.T, fd int, d time.Duration) bool {
	t.Helper()
	for {
		err := await(fd, unix.POLLIN, 0, d)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return false
		}
		require.NoError(t, err)
		return true
	}
}

func loopOf(t *testing.T, c *Conn) *Loop {
	t.Helper()
	l, err := c.NewLoop()
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// send begins a call without looking for its answer.
func (l *Loop) send(t *testing.T, payload []byte) uint64 {
	t.Helper()
	id, _, ok, err := l.Begin(payload, false)
	require.NoError(t, err)
	require.False(t, ok)
	return id
}

// taken pumps when the loop's descriptor says so, until there is an event.
func (l *Loop) taken(t *testing.T) (uint64, Event, error) {
	t.Helper()
	for {
		id, e, ok, err := l.Take()
		if ok || err != nil {
			return id, e, err
		}
		require.True(t, readable(t, l.FD(), patience))
		require.NoError(t, l.Pump())
	}
}

func TestLoopCalls(t *testing.T) {
	c, p := connect(t, Options{})
	go p.echo()
	l := loopOf(t, c)
	open := map[uint64]bool{}
	for range 200 {
		open[l.send(t, []byte("x"))] = true
	}
	for len(open) > 0 {
		id, e, err := l.taken(t)
		require.NoError(t, err)
		require.Equal(t, KindResult, e.Kind)
		require.True(t, open[id])
		delete(open, id)
	}
	require.Empty(t, c.calls)
	require.Empty(t, l.fresh)
	require.Zero(t, l.pending)
	require.False(t, readable(t, l.FD(), 0))
}

// The answer that comes at once is given with the call, after what was printed before it.
func TestLoopLooks(t *testing.T) {
	c, p := connect(t, Options{})
	l := loopOf(t, c)
	go func() {
		for {
			_, id, payload, err := p.next()
			if err != nil {
				return
			}
			if string(payload) == "print" {
				p.send(KindStdout, id, []byte("out"))
			}
			p.send(KindResult, id, pickled(nil))
		}
	}()
	atOnce := 0
	for n := range 300 {
		payload := "quiet"
		if n%3 == 0 {
			payload = "print"
		}
		id, e, ok, err := l.Begin([]byte(payload), true)
		require.NoError(t, err)
		if ok {
			atOnce++
		}
		var got []int
		for ; ; ok = true {
			if !ok {
				var taken uint64
				taken, e, err = l.taken(t)
				require.NoError(t, err)
				require.Equal(t, id, taken)
			}
			got = append(got, e.Kind)
			if e.Last() {
				break
			}
			_, e, err = l.taken(t)
			require.NoError(t, err)
		}
		if payload == "print" {
			require.Equal(t, []int{KindStdout, KindResult}, got)
		} else {
			require.Equal(t, []int{KindResult}, got)
		}
		require.Empty(t, c.calls)
	}
	t.Log("at once:", atOnce)
	require.Empty(t, l.fresh)
	require.False(t, c.reading)
}

// Looking takes no answer from where it belongs: other calls of the loop, and threads.
func TestLoopLooksOnlyAlone(t *testing.T) {
	c, p := connect(t, Options{})
	l := loopOf(t, c)
	slow := l.send(t, nil)
	p.receive()
	p.send(KindResult, slow, pickled(nil))
	id, _, ok, err := l.Begin(nil, true)
	require.NoError(t, err)
	require.False(t, ok, "another call is under way")
	p.send(KindResult, id, pickled(nil))
	for _, want := range []uint64{slow, id} {
		got, _, err := l.taken(t)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	sync, _ := c.Begin(nil)
	p.send(KindResult, sync, pickled(nil))
	_, _, ok, err = l.Begin(nil, true)
	require.NoError(t, err)
	require.False(t, ok, "a thread is about to read")
	_, err = last(c, sync)
	require.NoError(t, err)
}

// A thread that reads for itself rings for the event loop, whose descriptor is quiet while it does.
func TestThreadReceivesForLoop(t *testing.T) {
	c, p := connect(t, Options{})
	l := loopOf(t, c)
	async := l.send(t, nil)
	sync, _ := c.Begin(nil)
	require.False(t, readable(t, l.FD(), 0))
	p.send(KindStdout, async, []byte("out"))
	p.send(KindResult, async, pickled(nil))
	p.send(KindResult, sync, pickled(nil))
	_, err := last(c, sync)
	require.NoError(t, err)
	require.True(t, readable(t, l.FD(), patience))
	require.NoError(t, l.Pump())
	require.False(t, readable(t, l.FD(), 0), "Pump quiets the bell")
	for _, kind := range []int{KindStdout, KindResult} {
		id, e, ok, err := l.Take()
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, async, id)
		require.Equal(t, kind, e.Kind)
	}
}

func TestLoopSleepsWhileAThreadReads(t *testing.T) {
	c, p := connect(t, Options{})
	l := loopOf(t, c)
	mine := l.send(t, nil)
	require.NotZero(t, l.armed)
	sync, _ := c.Begin(nil)
	got := make(chan error)
	go func() {
		_, err := last(c, sync)
		got <- err
	}()
	for until := time.Now().Add(patience); ; {
		c.mu.Lock()
		leads := c.leader != nil
		armed := l.armed
		c.mu.Unlock()
		if leads {
			require.Zero(t, armed, "the leader reads for all")
			break
		}
		require.True(t, time.Now().Before(until))
	}
	p.send(KindResult, sync, pickled(nil))
	require.NoError(t, <-got)
	require.NotZero(t, l.armed, "nobody else reads any more")
	p.send(KindResult, mine, pickled(nil))
	_, _, err := l.taken(t)
	require.NoError(t, err)
}

func TestLoopsGetTheirOwn(t *testing.T) {
	c, p := connect(t, Options{})
	go p.echo()
	var group sync.WaitGroup
	for range 4 {
		l := loopOf(t, c)
		group.Go(func() {
			for range 100 {
				id, _, ok, err := l.Begin([]byte("x"), true)
				if ok || err != nil {
					if err != nil {
						t.Error(err)
					}
					continue
				}
				if got, _, err := l.taken(t); err != nil || got != id {
					t.Error(got, id, err)
				}
			}
		})
	}
	group.Wait()
	require.Empty(t, c.calls)
}

// A loop that is woken by the answer to a call that a thread has just begun leaves it to that thread, once.
func TestPumpLeavesClaimedRead(t *testing.T) {
	c, p := connect(t, Options{})
	l := loopOf(t, c)
	mine := l.send(t, nil)
	_, _ = c.Begin(nil)
	p.send(KindResult, mine, pickled(nil))
	require.True(t, readable(t, l.FD(), patience))
	require.NoError(t, l.Pump())
	_, _, ok, err := l.Take()
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, l.Pump())
	_, _, ok, err = l.Take()
	require.NoError(t, err)
	require.True(t, ok)
}

func TestLoopLargePayload(t *testing.T) {
	c, p := connect(t, Options{})
	l := loopOf(t, c)
	id := l.send(t, make([]byte, 3*MaxPart))
	require.NotZero(t, l.armed&unix.EPOLLOUT)
	go p.echo()
	got, _, err := l.taken(t)
	require.NoError(t, err)
	require.Equal(t, id, got)
	require.Zero(t, l.armed&unix.EPOLLOUT)
}

// What the socket does not take of a TAKEN is sent when it takes more: a sandbox waits for it, and nothing else may be under way.
func TestLoopSendsWhatTakingQueues(t *testing.T) {
	c, p := connect(t, Options{})
	l := loopOf(t, c)
	id := l.send(t, nil)
	p.receive()
	filler, fillers := encode(t, KindCancel, 0), 0
	for {
		n, err := send(c.fd, filler)
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		require.NoError(t, err)
		require.Len(t, filler, n)
		fillers++
	}
	go p.send(KindStdout, id, make([]byte, defaultWindow/4))
	got, e, err := l.taken(t)
	require.NoError(t, err)
	require.Equal(t, id, got)
	require.Equal(t, KindStdout, e.Kind)
	for range fillers {
		kind, _, _ := p.receive()
		require.Equal(t, KindCancel, kind)
	}
	require.True(t, readable(t, l.FD(), patience), "the socket takes more, and there is more")
	require.NoError(t, l.Pump())
	require.Equal(t, int64(defaultWindow/4+eventCost), p.taken(id))
}

func TestLoopDeath(t *testing.T) {
	c, p := connect(t, Options{Grace: time.Minute})
	l := loopOf(t, c)
	first, second := l.send(t, nil), l.send(t, nil)
	p.f.Close()
	require.True(t, readable(t, l.FD(), patience))
	require.NoError(t, l.Pump())
	_, _, ok, err := l.Take()
	require.NoError(t, err, "the reason is not known yet")
	require.False(t, ok)
	require.False(t, readable(t, l.FD(), 0), "the end is not told over and over")
	reason := errors.New("exit code 3")
	c.Fail(reason)
	require.True(t, readable(t, l.FD(), patience))
	require.NoError(t, l.Pump())
	var over []uint64
	for {
		id, _, _, err := l.Take()
		require.ErrorIs(t, err, reason)
		if id == 0 {
			break
		}
		over = append(over, id)
	}
	require.ElementsMatch(t, []uint64{first, second}, over)
	late, err := c.NewLoop()
	require.NoError(t, err)
	defer late.Close()
	require.True(t, readable(t, late.FD(), 0), "who comes later is told, too")
}

// A call that finds the other end closed was not delivered, which is said at once: it can be made again.
func TestCallThatNobodyGets(t *testing.T) {
	c, p := connect(t, Options{Grace: time.Minute})
	l := loopOf(t, c)
	p.f.Close()
	for range 2 {
		_, err := c.Begin(nil)
		var dead *DeadError
		require.ErrorAs(t, err, &dead)
		_, _, _, err = l.Begin(make([]byte, 3*MaxPart), true)
		require.ErrorAs(t, err, &dead)
	}
	require.Empty(t, c.calls)
	require.Empty(t, c.uploads)
	require.Zero(t, l.pending)
	require.NoError(t, c.Err(), "the reason is not known yet")
}

// The socket's number may be another file's once the connection is closed: nothing of it stays in a loop's descriptor.
func TestLoopOutlivesConnection(t *testing.T) {
	c, _ := connect(t, Options{})
	l := loopOf(t, c)
	l.send(t, nil)
	c.Close()
	require.NoError(t, l.Pump())
	require.False(t, readable(t, l.FD(), 0))
	id, _, ok, err := l.Take()
	require.NotZero(t, id)
	require.False(t, ok)
	require.ErrorIs(t, err, ErrClosed)
	require.Zero(t, l.armed)
}

func TestClosedLoopGivesItsCallsUp(t *testing.T) {
	c, p := connect(t, Options{})
	l, other := loopOf(t, c), loopOf(t, c)
	given, kept := l.send(t, nil), other.send(t, nil)
	p.receive()
	p.receive()
	require.Equal(t, []uint64{given}, l.Close())
	require.Empty(t, l.Close(), "a second time")
	kind, id, _ := p.receive()
	require.Equal(t, KindCancel, kind)
	require.Equal(t, given, id)
	p.send(KindCancelled, given)
	p.send(KindResult, kept, pickled(nil))
	got, _, err := other.taken(t)
	require.NoError(t, err)
	require.Equal(t, kept, got)
	require.Empty(t, c.calls)
}

func TestLoopRefusedResult(t *testing.T) {
	c, p := connect(t, Options{})
	l := loopOf(t, c)
	id := l.send(t, nil)
	p.send(KindResult, id, []byte("junk"))
	got, _, err := l.taken(t)
	require.Equal(t, id, got)
	require.ErrorContains(t, err, "not a valid pickle")
}
