package transport

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// readable reports whether fd becomes readable within d.
func readable(t *testing.T, fd int, d time.Duration) bool {
	t.Helper()
	for {
		n, err := await(fd, unix.POLLIN, d)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		require.NoError(t, err)
		return n > 0
	}
}

func TestAsyncCalls(t *testing.T) {
	c, p := connect(t, Options{})
	go p.echo()
	socket, _ := c.FDs()
	open := map[uint64]bool{}
	for range 200 {
		id, err := c.BeginAsync([]byte("x"))
		require.NoError(t, err)
		open[id] = true
	}
	for len(open) > 0 {
		require.True(t, readable(t, socket, patience))
		require.NoError(t, c.Pump())
		for {
			id, e, ok, err := c.Take()
			require.NoError(t, err)
			if !ok {
				break
			}
			require.Equal(t, KindResult, e.Kind)
			require.True(t, open[id])
			delete(open, id)
		}
	}
	require.Empty(t, c.calls)
	require.Empty(t, c.fresh)
}

// A thread that reads for itself rings for the event loop.
func TestThreadReceivesForLoop(t *testing.T) {
	c, p := connect(t, Options{})
	_, wake := c.FDs()
	async, _ := c.BeginAsync(nil)
	sync, _ := c.Begin(nil)
	require.False(t, readable(t, wake, 0))
	p.send(KindStdout, async, []byte("out"))
	p.send(KindResult, async, pickled(nil))
	p.send(KindResult, sync, pickled(nil))
	_, err := last(c, sync)
	require.NoError(t, err)
	require.True(t, readable(t, wake, patience))
	require.NoError(t, c.Pump())
	require.False(t, readable(t, wake, 0), "Pump quiets the eventfd")
	e, ok, err := c.Poll(async)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "out", string(e.Data))
	id, e, ok, err := c.Take()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, async, id)
	require.True(t, e.Last())
	_, _, err = c.Poll(async)
	require.ErrorIs(t, err, ErrNoCall)
}

// A loop that is woken by the answer to a call that a thread has just begun leaves it to that thread, once.
func TestPumpLeavesClaimedRead(t *testing.T) {
	c, p := connect(t, Options{})
	id, _ := c.Begin(nil)
	p.send(KindResult, id, pickled(nil))
	socket, _ := c.FDs()
	require.True(t, readable(t, socket, patience))
	require.NoError(t, c.Pump())
	_, ok, err := c.Poll(id)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, c.Pump())
	_, ok, err = c.Poll(id)
	require.NoError(t, err)
	require.True(t, ok)
}

func TestAsyncLargePayload(t *testing.T) {
	c, p := connect(t, Options{})
	id, err := c.BeginAsync(make([]byte, 3*MaxPart))
	require.NoError(t, err)
	require.True(t, c.WantWrite())
	go p.echo()
	socket, _ := c.FDs()
	for c.WantWrite() {
		_, err := await(socket, unix.POLLOUT|unix.POLLIN, patience)
		require.True(t, err == nil || errors.Is(err, unix.EINTR), err)
		require.NoError(t, c.Pump())
	}
	_, err = last(c, id)
	require.NoError(t, err)
}

func TestAsyncDeath(t *testing.T) {
	c, p := connect(t, Options{Grace: time.Minute})
	first, _ := c.BeginAsync(nil)
	second, _ := c.BeginAsync(nil)
	p.f.Close()
	socket, wake := c.FDs()
	require.True(t, readable(t, socket, patience))
	require.ErrorIs(t, c.Pump(), ErrEnded)
	_, ok, err := c.Poll(first)
	require.NoError(t, err, "the reason is not known yet")
	require.False(t, ok)
	reason := errors.New("exit code 3")
	c.Fail(reason)
	require.True(t, readable(t, wake, patience))
	require.ErrorIs(t, c.Pump(), reason)
	var over []uint64
	for {
		id, _, _, err := c.Take()
		if id == 0 {
			break
		}
		require.ErrorIs(t, err, reason)
		over = append(over, id)
	}
	require.ElementsMatch(t, []uint64{first, second}, over)
}

func TestAsyncRefusedResult(t *testing.T) {
	c, p := connect(t, Options{})
	id, _ := c.BeginAsync(nil)
	p.send(KindResult, id, []byte("junk"))
	socket, _ := c.FDs()
	require.True(t, readable(t, socket, patience))
	require.NoError(t, c.Pump())
	got, _, ok, err := c.Take()
	require.Equal(t, id, got)
	require.False(t, ok)
	require.ErrorContains(t, err, "not a valid pickle")
}
