package transport

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// sendBuffer sends one buffer in frames of at most step bytes.
func (p *peer) sendBuffer(id uint64, data []byte, writable bool, step int) {
	p.send(KindBuffer, id, uint64(len(data)), writable)
	p.sendFills(id, data, step)
}

func (p *peer) sendFills(id uint64, data []byte, step int) {
	for len(data) > 0 {
		n := min(step, len(data))
		p.send(KindFill, id, data[:n])
		data = data[n:]
	}
}

// of is a pickle of n buffers in a list.
func of(n int) []byte {
	return append(append([]byte("\x80\x05]("), bytes.Repeat([]byte("\x97"), n)...), 'e', '.')
}

func random(n int) []byte {
	out := make([]byte, n)
	source := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = source.Read(out)
	return out
}

// takeInto takes a call's events as the extension does. straight counts the buffers that were received into its memory.
func takeInto(c *Conn, id uint64) (made [][]byte, straight int, e Event, err error) {
	var into []byte
	for {
		e, err = c.NextInto(id, patience, into)
		switch {
		case errors.Is(err, ErrInterrupted):
			continue
		case err != nil:
			return nil, 0, e, err
		case e.Kind == KindBuffer:
			into = make([]byte, e.Buffers[0].Size)
			for len(made) <= e.Index {
				made = append(made, nil)
			}
			made[e.Index] = into
			straight++
		case e.Last():
			for i, b := range e.Buffers {
				if i == len(made) {
					made = append(made, nil)
				}
				if made[i] == nil {
					made[i] = make([]byte, b.Size)
				}
				b.CopyTo(made[i])
			}
			return made, straight, e, nil
		}
	}
}

func TestBuffersAreReceivedStraight(t *testing.T) {
	c, p := connect(t, Options{})
	for _, n := range []int{minBuffer, 70_000, MaxPart, MaxPart + 1, 5*MaxPart + 3} {
		for _, step := range []int{minBuffer, MaxPart} {
			want := random(n)
			id, err := c.Begin(nil)
			require.NoError(t, err)
			p.receive()
			go func() {
				p.sendBuffer(id, want, false, step)
				p.send(KindStdout, id, []byte("between"))
				p.sendBuffer(id, want, true, step)
				p.send(KindResult, id, of(2))
			}()
			made, straight, e, err := takeInto(c, id)
			require.NoError(t, err)
			require.Equal(t, 2, straight)
			require.Equal(t, of(2), e.Data)
			require.True(t, e.Buffers[1].Writable && !e.Buffers[0].Writable)
			require.True(t, bytes.Equal(want, made[0]) && bytes.Equal(want, made[1]))
		}
	}
	require.Zero(t, c.held)
}

func TestBuffersOfWhoMakesNoMemory(t *testing.T) {
	c, p := connect(t, Options{})
	want := random(3*MaxPart + 1)
	id, _ := c.Begin(nil)
	p.receive()
	go func() {
		p.sendBuffer(id, want, false, MaxPart)
		p.send(KindResult, id, of(1))
	}()
	e, err := last(c, id)
	require.NoError(t, err)
	require.Len(t, e.Buffers, 1)
	require.False(t, e.Buffers[0].Straight)
	got := make([]byte, len(want))
	e.Buffers[0].CopyTo(got)
	require.True(t, bytes.Equal(want, got))
}

// While the waiting thread looks for signals, or has left for good, its memory is not written to.
func TestMemoryIsLetGoOf(t *testing.T) {
	c, p := connect(t, Options{})
	want := random(3 * MaxPart)
	id, _ := c.Begin(nil)
	p.receive()
	frame := encode(t, KindFill, id, want[MaxPart:2*MaxPart])
	p.send(KindBuffer, id, uint64(len(want)), false)
	e, err := c.NextInto(id, patience, nil)
	require.NoError(t, err)
	require.Equal(t, KindBuffer, e.Kind)
	into := make([]byte, len(want))
	written := make(chan struct{})
	go func() {
		p.send(KindFill, id, want[:MaxPart])
		p.write(frame[:MaxPart/2]) // and then nothing for a while
		close(written)
	}()
	for unread := true; unread; {
		if _, err = c.NextInto(id, slice/10, into); !errors.Is(err, ErrInterrupted) {
			require.ErrorIs(t, err, ErrTimeout)
		}
		select {
		case <-written:
			unread = !errors.Is(await(c.fd, unix.POLLIN, 0, 0), unix.EAGAIN)
		default:
		}
	}

	// Another call's thread reads on.
	other, _ := c.Begin(nil)
	snapshot := bytes.Clone(into)
	go func() {
		p.write(frame[MaxPart/2:])
		p.receive()
		p.send(KindResult, other, pickled(nil))
	}()
	_, err = last(c, other)
	require.NoError(t, err)
	require.True(t, bytes.Equal(snapshot, into), "memory was written to behind its owner's back")

	go func() {
		p.sendFills(id, want[2*MaxPart:], MaxPart)
		p.send(KindResult, id, of(1))
	}()
	for e.Kind != KindResult {
		if e, err = c.NextInto(id, patience, into); !errors.Is(err, ErrInterrupted) {
			require.NoError(t, err)
		}
	}
	e.Buffers[0].CopyTo(into)
	require.True(t, bytes.Equal(want, into))
}

func TestACancelledBufferStopsNobody(t *testing.T) {
	c, p := connect(t, Options{})
	id, _ := c.Begin(nil)
	p.receive()
	p.send(KindBuffer, id, uint64(MaxPart), false)
	_, err := c.NextInto(id, patience, nil)
	require.NoError(t, err)
	l := loopOf(t, c)
	other := l.send(t, nil)
	p.receive()
	require.NoError(t, c.Cancel(id))
	go func() {
		p.sendFills(id, make([]byte, MaxPart), 1<<18)
		p.send(KindResult, id, of(1))
		p.send(KindResult, other, pickled(nil))
	}()
	got, e, err := l.taken(t)
	require.NoError(t, err)
	require.Equal(t, other, got)
	require.Equal(t, KindResult, e.Kind)
	require.Zero(t, c.held)
}

// A thread that has output to show before it makes a buffer's memory keeps nobody from what was received with it.
func TestOutputBeforeABufferStopsNobody(t *testing.T) {
	c, p := connect(t, Options{})
	id, _ := c.Begin(nil)
	p.receive()
	l := loopOf(t, c)
	other := l.send(t, nil)
	p.receive()
	want := random(MaxPart)
	p.write(slices.Concat(
		encode(t, KindStdout, id, []byte("a line")),
		encode(t, KindBuffer, id, uint64(len(want)), false),
		encode(t, KindResult, other, pickled(nil)),
	))
	e, err := c.NextInto(id, patience, nil)
	require.NoError(t, err)
	require.Equal(t, KindStdout, e.Kind)
	got, _, err := l.taken(t) // before the thread comes back
	require.NoError(t, err)
	require.Equal(t, other, got)
	go func() {
		p.sendFills(id, want, 1<<18)
		p.send(KindResult, id, of(1))
	}()
	made, _, _, err := takeInto(c, id)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, made[0]))
}

func TestManyThreadsWithBuffers(t *testing.T) {
	c, p := connect(t, Options{})
	want := random(300_000)
	go func() {
		for {
			kind, id, _, err := p.next()
			if err != nil {
				return
			}
			if kind == KindCall {
				p.sendBuffer(id, want, id%2 == 0, 100_000)
				p.send(KindResult, id, of(1))
			}
		}
	}()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 30 {
				id, err := c.Begin(nil)
				if err != nil {
					t.Error(err)
					return
				}
				made, _, _, err := takeInto(c, id)
				if err != nil || !bytes.Equal(made[0], want) {
					t.Error("another result", err)
					return
				}
			}
		})
	}
	group.Wait()
	require.Zero(t, c.held)
}

func TestBufferOverTheLimit(t *testing.T) {
	c, p := connect(t, Options{MaxResult: 1 << 20})
	id, _ := c.Begin(nil)
	p.receive()
	go func() {
		p.sendBuffer(id, make([]byte, 1<<20), false, MaxPart)
		p.sendBuffer(id, make([]byte, 1<<19), false, MaxPart)
		p.send(KindResult, id, of(2))
	}()
	_, _, _, err := takeInto(c, id)
	var limit *LimitError
	require.ErrorAs(t, err, &limit)
	require.GreaterOrEqual(t, limit.Size, int64(3<<19))
	require.Zero(t, c.held)
	id, err = c.Begin(nil)
	require.NoError(t, err, "only its call fails")
	p.receive()
	p.send(KindResult, id, pickled(nil))
	_, err = last(c, id)
	require.NoError(t, err)
}

func TestHostileBuffers(t *testing.T) {
	tests := map[string]func(p *peer, id uint64){
		"small":        func(p *peer, id uint64) { p.send(KindBuffer, id, uint64(minBuffer-1), false) },
		"of no size":   func(p *peer, id uint64) { p.send(KindBuffer, id, ^uint64(0), false) },
		"of no number": func(p *peer, id uint64) { p.send(KindBuffer, id, "x", false) },
		"of no bool":   func(p *peer, id uint64) { p.send(KindBuffer, id, uint64(minBuffer), 1) },
		"within another": func(p *peer, id uint64) {
			p.send(KindBuffer, id, uint64(minBuffer), false)
			p.send(KindBuffer, id, uint64(minBuffer), false)
		},
		"too full": func(p *peer, id uint64) {
			p.sendBuffer(id, make([]byte, minBuffer), false, minBuffer)
			p.send(KindFill, id, []byte{1})
		},
		"much too full": func(p *peer, id uint64) {
			p.send(KindBuffer, id, uint64(minBuffer), false)
			p.send(KindFill, id, make([]byte, MaxPart))
		},
		"never opened": func(p *peer, id uint64) { p.send(KindFill, id, make([]byte, minBuffer)) },
		"in crumbs": func(p *peer, id uint64) {
			p.send(KindBuffer, id, uint64(minBuffer), false)
			p.send(KindFill, id, []byte{1})
		},
		"of another call": func(p *peer, id uint64) { p.send(KindBuffer, id+7, uint64(minBuffer), false) },
		"not full at the end": func(p *peer, id uint64) {
			p.send(KindBuffer, id, uint64(minBuffer), false)
			p.send(KindResult, id, of(1))
		},
		"not full, large end": func(p *peer, id uint64) {
			p.send(KindBuffer, id, uint64(minBuffer), false)
			p.send(KindChunk, id, make([]byte, MaxPart))
		},
		"without end": func(p *peer, id uint64) {
			for range 64 {
				p.send(KindBuffer, id, uint64(maxBuffer), false)
				p.send(KindFill, id, make([]byte, minBuffer))
			}
		},
		"as an answer to READY": func(p *peer, _ uint64) { p.send(KindBuffer, 0, uint64(minBuffer), false) },
	}
	for name, send := range tests {
		t.Run(name, func(t *testing.T) {
			c, p := connect(t, Options{MaxResult: 1 << 22})
			id, _ := c.Begin(nil)
			p.receive()
			go send(p, id)
			_, _, _, err := takeInto(c, id)
			var protocol *ProtocolError
			require.ErrorAs(t, err, &protocol)
		})
	}
	for name, pickle := range map[string][]byte{"too few": of(1), "too many": of(3)} {
		t.Run(name, func(t *testing.T) {
			c, p := connect(t, Options{})
			id, _ := c.Begin(nil)
			p.receive()
			go func() {
				p.sendBuffer(id, make([]byte, minBuffer), false, MaxPart)
				p.sendBuffer(id, make([]byte, minBuffer), false, MaxPart)
				p.send(KindResult, id, pickle)
			}()
			_, _, _, err := takeInto(c, id)
			require.ErrorContains(t, err, "not a valid pickle")
		})
	}
}
