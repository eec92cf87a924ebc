package transport

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// prints sends output of a call as the guard does, n frames of size bytes. Of what was sent before, ahead is not taken yet; the
// result is how much that is in the end.
func (p *peer) prints(id uint64, ahead int64, n, size int) int64 {
	for ; n > 0; n-- {
		for ahead >= defaultWindow {
			ahead -= p.taken(id)
		}
		p.send(KindStdout, id, make([]byte, size))
		ahead += int64(size) + eventCost
	}
	return ahead
}

// taken reads the next TAKEN frame of a call.
func (p *peer) taken(id uint64) int64 {
	kind, got, fields, err := p.fields()
	require.NoError(p.t, err)
	require.Equal(p.t, KindTaken, kind)
	require.Equal(p.t, id, got)
	var n int64
	require.NoError(p.t, msgpack.Unmarshal(fields[2], &n))
	return n
}

// drainOutput takes a call's output until its end, and counts it.
func drainOutput(t *testing.T, c *Conn, id uint64) (n int) {
	t.Helper()
	for {
		e, err := c.Next(id, patience)
		if errors.Is(err, ErrInterrupted) {
			continue
		}
		require.NoError(t, err)
		if e.Last() {
			return n
		}
		n += len(e.Data)
		e.Release()
	}
}

// While somebody else reads the socket, a call's output comes no further ahead than its window, and nothing of it is lost.
func TestOutputWaitsForWhoeverTakesIt(t *testing.T) {
	c, p := connect(t, Options{})
	slow, _ := c.Begin(nil)
	quick, _ := c.Begin(nil)
	p.receive()
	p.receive()
	const frames, size = 100, 100_000
	go func() {
		ahead := p.prints(slow, 0, 11, size) // the last of them fills the window
		p.send(KindResult, quick, pickled(nil))
		p.prints(slow, ahead, frames-11, size)
		p.send(KindResult, slow, pickled(nil))
	}()
	_, err := last(c, quick)
	require.NoError(t, err)
	c.mu.Lock()
	held := c.calls[slow].queued
	c.mu.Unlock()
	require.LessOrEqual(t, held, int64(defaultWindow+size+eventCost))
	require.Equal(t, frames*size, drainOutput(t, c, slow))
	require.NoError(t, c.Err())
}

// Small output costs no frame back.
func TestLittleOutputIsNotAcknowledged(t *testing.T) {
	c, p := connect(t, Options{})
	for range 3 {
		id, _ := c.Begin(nil)
		kind, _, _ := p.receive()
		require.Equal(t, KindCall, kind, "and no TAKEN")
		for range 100 {
			p.send(KindStdout, id, []byte("a line of text\n"))
		}
		p.send(KindResult, id, pickled(nil))
		require.Equal(t, 1500, drainOutput(t, c, id))
	}
}

// A flood that is read in time leaves no garbage to speak of.
func TestAFloodLeavesNoGarbage(t *testing.T) {
	c, p := connect(t, Options{})
	const frames, size = 400, 64 << 10
	count := func() uint64 {
		id, _ := c.Begin(nil)
		p.receive()
		frame := encode(t, KindStdout, id, make([]byte, size))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range frames {
				p.write(frame)
			}
			p.send(KindResult, id, pickled(nil))
			for { // what was taken
				kind, _, _, err := p.fields()
				if err != nil || kind != KindTaken {
					return
				}
			}
		}()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Equal(t, frames*size, drainOutput(t, c, id))
		runtime.ReadMemStats(&after)
		_, _ = c.Begin(nil)
		<-done
		return after.TotalAlloc - before.TotalAlloc
	}
	const inUse = 1 << 20 // at a time, and what the race detector throws away of a sync.Pool at random
	require.Less(t, min(count(), count(), count()), uint64(frames*size/4+inUse))
}

// A child that is told to go on for a call that is over, or was given up, is not told anything.
func TestNothingIsTakenOfACallThatIsOver(t *testing.T) {
	c, p := connect(t, Options{})
	id, _ := c.Begin(nil)
	p.receive()
	other, _ := c.Begin(nil)
	p.receive()
	go func() {
		for range 8 {
			p.send(KindStdout, id, make([]byte, 100_000))
		}
		p.send(KindResult, id, pickled(nil))
		p.send(KindResult, other, pickled(nil))
	}()
	_, err := last(c, other)
	require.NoError(t, err)
	require.Equal(t, 800_000, drainOutput(t, c, id))
	_, _ = c.Begin(nil)
	kind, _, _ := p.receive()
	require.Equal(t, KindCall, kind)
}
