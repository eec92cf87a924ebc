package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/unpickle"
)

func TestReady(t *testing.T) {
	c, p := connectRaw(t, Options{Version: "1.0"})
	p.send(KindReady, 0, "1.0", 42, "3.13.0")
	r, err := c.Ready(patience)
	require.NoError(t, err)
	require.Equal(t, Ready{"1.0", 42, "3.13.0"}, r)
}

func TestReadyOtherVersion(t *testing.T) {
	c, p := connectRaw(t, Options{Version: "1.0"})
	p.send(KindReady, 0, "0.9", 42, "3.13.0")
	_, err := c.Ready(patience)
	var dead *DeadError
	require.ErrorAs(t, err, &dead)
	require.ErrorContains(t, err, `pysandboxes "0.9" and this process "1.0"`)
}

func TestReadyTimeout(t *testing.T) {
	c, _ := connectRaw(t, Options{})
	_, err := c.Ready(time.Millisecond)
	require.ErrorIs(t, err, ErrTimeout)
}

func TestCall(t *testing.T) {
	c, p := connect(t, Options{})
	id, err := c.Begin([]byte("question"))
	require.NoError(t, err)
	kind, got, payload := p.receive()
	require.Equal(t, KindCall, kind)
	require.Equal(t, id, got)
	require.Equal(t, "question", string(payload))
	p.send(KindStdout, id, []byte("hello\n"))
	p.send(KindLog, id, []byte("\x81\xa1k\x01"))
	p.send(KindResult, id, pickled([]byte("answer")))

	e, err := c.Next(id, patience)
	require.NoError(t, err)
	require.Equal(t, Event{Kind: KindStdout, Data: []byte("hello\n")}, e)
	e, err = c.Next(id, patience)
	require.NoError(t, err)
	require.Equal(t, Event{Kind: KindLog, Descriptor: []byte(`{"k":1}`)}, e)
	e, err = c.Next(id, patience)
	require.NoError(t, err)
	require.Equal(t, "answer", string(unpickled(e.Data)))
	_, err = c.Next(id, patience)
	require.ErrorIs(t, err, ErrNoCall)
}

func TestPayloadSizes(t *testing.T) {
	c, p := connect(t, Options{})
	for _, n := range []int{0, 1, MaxPart - 1, MaxPart, MaxPart + 1, 5*MaxPart + 7} {
		want := bytes.Repeat([]byte{byte(n), 2, 3}, n/3+1)[:n]
		got := make(chan []byte, 1)
		go func() {
			var all []byte
			for {
				kind, id, part, err := p.next()
				all = append(all, part...)
				if err != nil || kind == KindCall {
					got <- all
					p.send(KindResult, id, pickled(nil))
					return
				}
			}
		}()
		id, err := c.Begin(want)
		require.NoError(t, err)
		_, err = last(c, id)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, <-got), n)
	}
}

func TestResultSizes(t *testing.T) {
	c, p := connect(t, Options{})
	for _, n := range []int{0, 100, 70_000, MaxPart - 8, MaxPart, 5 * MaxPart} {
		body := pickled(bytes.Repeat([]byte{7}, n))
		id, err := c.Begin(nil)
		require.NoError(t, err)
		p.receive()
		go func() {
			rest := body
			for len(rest) > MaxPart {
				p.send(KindChunk, id, rest[:MaxPart])
				rest = rest[MaxPart:]
			}
			p.send(KindResult, id, rest)
		}()
		e, err := last(c, id)
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, e.Data), n)
	}
}

func TestRefusedResult(t *testing.T) {
	c, p := connect(t, Options{})
	id, _ := c.Begin(nil)
	p.receive()
	p.send(KindResult, id, []byte("\x80\x05\x8c\x02os\x8c\x06system\x93."))
	_, err := last(c, id)
	var refused *unpickle.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "os.system", refused.Type)
	require.Equal(t, "result", refused.Path)
	require.NoError(t, c.Err(), "a refused result ends its call alone")
}

func TestResultOverLimit(t *testing.T) {
	c, p := connect(t, Options{MaxResult: 1000})
	id, _ := c.Begin(nil)
	other, _ := c.Begin(nil)
	p.receive()
	p.receive()
	p.send(KindChunk, id, make([]byte, 800))
	p.send(KindChunk, id, make([]byte, 100_000))
	p.send(KindResult, id, make([]byte, 200))
	p.send(KindResult, other, pickled(nil))
	_, err := last(c, id)
	require.EqualError(t, err, "the result has 101000 bytes, more than the limit of 1000. Add:\n    limit-result=101000")
	require.EqualError(t, &LimitError{Size: 5, Limit: 4, Rule: "limit-result=4, p:1"}, "the result has 5 bytes, more than the 4 of limit-result=4, p:1. Make that:\n    limit-result=5")
	_, err = last(c, other)
	require.NoError(t, err)
}

func TestException(t *testing.T) {
	c, p := connect(t, Options{})
	descriptor := encode(t, map[string]any{
		"module": "builtins", "qualname": "ValueError", "message": "bad", "base": false,
		"frames": [][]any{{"app.py", 3, "f", "raise"}}, "notes": []string{"n"}, "cause": nil, "suppress": true,
		"denials":    []map[string]any{{"family": "file"}},
		"exceptions": []map[string]any{{"message": "inner"}},
	})[5:] // encode wraps its fields in an array of one
	rich := []byte("\x80\x05\x8c\x08builtins\x8c\tException\x93\x8c\x03bad\x85}\x86R.")
	for _, tt := range []struct {
		name string
		rich any
		want []byte
	}{{"rich", rich, rich}, {"refused", []byte("\x80\x05\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R."), nil}, {"none", nil, nil}} {
		t.Run(tt.name, func(t *testing.T) {
			id, _ := c.Begin(nil)
			p.receive()
			p.send(KindException, id, descriptor, tt.rich)
			e, err := last(c, id)
			require.NoError(t, err)
			require.Equal(t, tt.want, e.Rich)
			var got map[string]any
			require.NoError(t, json.Unmarshal(e.Descriptor, &got))
			require.Equal(t, "ValueError", got["qualname"])
			require.Equal(t, []any{[]any{"app.py", 3.0, "f", "raise"}}, got["frames"])
		})
	}
}

func TestCancel(t *testing.T) {
	c, p := connect(t, Options{})
	id, _ := c.Begin(nil)
	p.receive()
	require.NoError(t, c.Cancel(id))
	kind, got, _ := p.receive()
	require.Equal(t, KindCancel, kind)
	require.Equal(t, id, got)
	require.ErrorIs(t, c.Cancel(id), ErrNoCall)
	_, err := c.Next(id, 0)
	require.ErrorIs(t, err, ErrNoCall)
	p.send(KindStdout, id, []byte("late"))
	p.send(KindCancelled, id)
	p.send(KindCancelled, id) // crossed: tolerated
	id, _ = c.Begin(nil)
	p.send(KindResult, id, pickled(nil))
	_, err = last(c, id)
	require.NoError(t, err)
	require.Empty(t, c.calls)
}

func TestTimeout(t *testing.T) {
	c, p := connect(t, Options{})
	id, _ := c.Begin(nil)
	_, err := c.Next(id, 0)
	require.ErrorIs(t, err, ErrTimeout)
	_, err = c.Next(id, 20*time.Millisecond)
	require.ErrorIs(t, err, ErrTimeout)
	p.send(KindResult, id, pickled(nil))
	_, err = last(c, id)
	require.NoError(t, err, "a call survives a wait that ended")
}

func TestIdleWaitComesBack(t *testing.T) {
	c, _ := connect(t, Options{})
	id, _ := c.Begin(nil)
	start := time.Now()
	_, err := c.Next(id, -1)
	require.ErrorIs(t, err, ErrInterrupted)
	require.Less(t, time.Since(start), 2*time.Second)
}

func TestManyThreads(t *testing.T) {
	c, p := connect(t, Options{})
	go p.echo()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for j := range 200 {
				want := fmt.Appendf(nil, "%d/%d", i, j)
				id, err := c.Begin(want)
				if err == nil {
					var e Event
					if e, err = last(c, id); err == nil && !bytes.Equal(want, unpickled(e.Data)) {
						err = errors.New("another call's answer")
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	require.Empty(t, c.calls)
	require.Zero(t, c.held)
}

// A large payload meets a peer that first sends a large result: neither may wait for the other for ever.
func TestBothSidesFull(t *testing.T) {
	c, p := connect(t, Options{})
	big := bytes.Repeat([]byte("x"), 8*MaxPart)
	id, err := c.Begin(nil)
	require.NoError(t, err)
	p.receive()
	go func() {
		body := pickled(big)
		for len(body) > MaxPart {
			p.send(KindChunk, id, body[:MaxPart])
			body = body[MaxPart:]
		}
		p.send(KindResult, id, body)
		p.echo()
	}()
	second, err := c.Begin(big)
	require.NoError(t, err)
	e, err := last(c, id)
	require.NoError(t, err)
	require.Len(t, unpickled(e.Data), len(big))
	e, err = last(c, second)
	require.NoError(t, err)
	require.NotEmpty(t, e.Data)
}

func TestStop(t *testing.T) {
	c, p := connect(t, Options{})
	require.NoError(t, c.Stop())
	kind, _, _ := p.receive()
	require.Equal(t, KindStop, kind)
}

func TestStray(t *testing.T) {
	got := make(chan string, 2)
	c, p := connect(t, Options{Stray: func(kind int, data []byte) { got <- fmt.Sprint(kind, " ", string(data)) }})
	p.send(KindStderr, 0, []byte("thread"))
	p.send(KindLog, 0, []byte("\x80"))
	id, _ := c.Begin(nil)
	p.send(KindResult, id, pickled(nil))
	_, err := last(c, id)
	require.NoError(t, err)
	require.Equal(t, "12 thread", <-got)
	require.Equal(t, "13 {}", <-got)
}
