package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
)

// Whatever the child does that the protocol does not allow ends the connection with a located error, and nothing else.
func TestHostileChild(t *testing.T) {
	nested := func(depth int) []byte {
		var v any
		for range depth {
			v = map[string]any{"cause": v}
		}
		b, err := msgpack.Marshal(v)
		require.NoError(t, err)
		return b
	}
	result := func(t *testing.T, id uint64) []byte { return encode(t, KindResult, id, pickled(nil)) }
	tests := []struct {
		name string
		send func(t *testing.T, id uint64) []byte
		want string
	}{
		{"garbage", func(*testing.T, uint64) []byte { return []byte("GET / HTTP/1.1\r\n\r\n") }, "a frame of 1195725856 bytes"},
		{"empty frame", func(*testing.T, uint64) []byte { return make([]byte, 4) }, "a frame of 0 bytes"},
		{"huge frame", func(*testing.T, uint64) []byte { return []byte{0, 0x10, 1, 0} }, "a frame of 1048832 bytes"},
		{"no array", func(t *testing.T, _ uint64) []byte { return []byte{0, 0, 0, 1, 0xc0} }, "ends within a field"},
		{"not msgpack", func(t *testing.T, _ uint64) []byte { return []byte{0, 0, 0, 2, 0xc1, 0xc1} }, "decoding array length"},
		{"kind of the parent", func(t *testing.T, id uint64) []byte { return encode(t, KindCall, id, []byte("x")) }, "unknown kind 1"},
		{"kind that is text", func(t *testing.T, id uint64) []byte { return encode(t, "14", id, []byte("x")) }, "decoding int64"},
		{"too few fields", func(t *testing.T, id uint64) []byte { return encode(t, KindResult, id) }, "with 2 fields instead of 3"},
		{"too many fields", func(t *testing.T, id uint64) []byte { return encode(t, KindStdout, id, []byte("x"), 1) }, "with 4 fields"},
		{"nil for bytes", func(t *testing.T, id uint64) []byte { return encode(t, KindStdout, id, nil) }, "without bytes"},
		{"field past the frame", func(*testing.T, uint64) []byte { return []byte{0, 0, 0, 6, 0x93, 14, 1, 0xc4, 200, 1} }, "a field of 200 bytes"},
		{"bytes after the frame's fields", func(*testing.T, uint64) []byte { return []byte{0, 0, 0, 6, 0x93, 14, 1, 0xc4, 0, 1} }, "after the last field"},
		{"unknown id", func(t *testing.T, id uint64) []byte { return result(t, id+1) }, "which was never made"},
		{"id 0", func(t *testing.T, _ uint64) []byte { return result(t, 0) }, "which was never made"},
		{"negative id", func(t *testing.T, _ uint64) []byte { return encode(t, KindResult, int64(-1), pickled(nil)) }, "never made"},
		{"double reply", func(t *testing.T, id uint64) []byte { return append(result(t, id), result(t, id)...) }, "which has ended"},
		{"output after the reply", func(t *testing.T, id uint64) []byte {
			return append(result(t, id), encode(t, KindStdout, id, []byte("x"))...)
		}, "which has ended"},
		{"output for another call", func(t *testing.T, id uint64) []byte { return encode(t, KindStdout, id+7, []byte("x")) }, "never made"},
		{"READY twice", func(t *testing.T, _ uint64) []byte { return encode(t, KindReady, 0, "1", 1, "x") }, "READY a second time"},
		{"READY of a long version", func(t *testing.T, _ uint64) []byte {
			return encode(t, KindReady, 0, string(make([]byte, 300)), 1, "x")
		}, "a text of 300 bytes"},
		{"lengths that do not agree", func(*testing.T, uint64) []byte {
			b := binary.BigEndian.AppendUint32(nil, 100_000)
			b = append(b, 0x93, 14, 1, 0xc6, 0, 0, 200, 0)
			return append(b, make([]byte, 50)...)
		}, "lengths do not agree"},
		{"garbage after a bad frame", func(t *testing.T, _ uint64) []byte {
			return append(result(t, 0), 0xff, 0xff, 0xff, 0xff, 1)
		}, "never made"},
		{"endless result", func(t *testing.T, id uint64) []byte {
			return bytes.Repeat(encode(t, KindChunk, id, make([]byte, MaxPart)), 70)
		}, "a result of more than"},
		{"descriptor of garbage", func(t *testing.T, id uint64) []byte { return encode(t, KindException, id, []byte("xyz"), nil) }, "descriptor"},
		{"descriptor that is nil", func(t *testing.T, id uint64) []byte { return encode(t, KindException, id, []byte{0xc0}, nil) }, "descriptor: nil"},
		{"descriptor with an unknown field", func(t *testing.T, id uint64) []byte {
			return encode(t, KindException, id, []byte("\x81\xa1x\x01"), nil)
		}, `unknown field "x"`},
		{"descriptor with a field twice", func(t *testing.T, id uint64) []byte {
			return encode(t, KindException, id, []byte("\x82\xa4base\xc2\xa4base\xc2"), nil)
		}, "twice"},
		{"descriptor of the wrong type", func(t *testing.T, id uint64) []byte {
			return encode(t, KindException, id, []byte("\x81\xa7message\x01"), nil)
		}, "wrong type"},
		{"descriptor too deep", func(t *testing.T, id uint64) []byte { return encode(t, KindException, id, nested(20), nil) }, "more than 16 levels"},
		{"array that is not there", func(t *testing.T, id uint64) []byte {
			return encode(t, KindException, id, []byte("\x81\xa5notes\xdd\xff\xff\xff\xff"), nil)
		}, "4294967295 items"},
		{"text that is not there", func(t *testing.T, id uint64) []byte {
			return encode(t, KindException, id, []byte("\x81\xa7message\xdb\xff\xff\xff\xff"), nil)
		}, "a text of 4294967295 bytes"},
		{"extension type", func(t *testing.T, id uint64) []byte { return encode(t, KindLog, id, []byte("\x81\xa1k\xd4\x01\x02")) }, "wrong type"},
		{"log that is no map", func(t *testing.T, id uint64) []byte { return encode(t, KindLog, id, []byte("\x01")) }, "no map"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, p := connect(t, Options{Window: 50_000, MaxResult: 1000})
			id, err := c.Begin(nil)
			require.NoError(t, err)
			p.receive()
			sent := make(chan struct{})
			go func() { defer close(sent); p.write(tt.send(t, id)) }()
			for err == nil || errors.Is(err, ErrInterrupted) || errors.Is(err, ErrNoCall) {
				if _, err = last(c, id); errors.Is(err, ErrNoCall) || err == nil {
					id2, berr := c.Begin(nil) // the first answer was good; the error comes with what follows
					if berr != nil {
						err = berr
						break
					}
					id = id2
				}
			}
			var broken *ProtocolError
			require.ErrorAs(t, err, &broken)
			require.ErrorContains(t, err, tt.want)
			require.ErrorAs(t, c.Err(), &broken)
			select {
			case <-c.Done():
			default:
				t.Fatal("a connection that is over says so")
			}
			_, err = c.Begin(nil)
			require.ErrorAs(t, err, &broken)
			<-sent
		})
	}
}

// A child that sends more ahead than its call's window holds is hostile, in few large frames or in many empty ones.
func TestFloodOfOutput(t *testing.T) {
	for name, size := range map[string]int{"large": 64 << 10, "empty": 0} {
		t.Run(name, func(t *testing.T) {
			c, p := connect(t, Options{Window: 50_000})
			flooded, _ := c.Begin(nil)
			other, _ := c.Begin(nil)
			go p.write(bytes.Repeat(encode(t, KindStdout, flooded, make([]byte, size)), 10_000))
			_, err := last(c, other)
			var broken *ProtocolError
			require.ErrorAs(t, err, &broken)
			require.ErrorContains(t, err, "that nobody has taken, where 50000 are sent ahead")
			require.LessOrEqual(t, c.calls[flooded].queued, int64(50_000+MaxPart+2*eventCost+size))
		})
	}
}

func TestFrameBeforeReady(t *testing.T) {
	c, p := connectRaw(t, Options{})
	p.send(KindResult, 1, pickled(nil))
	_, err := c.Ready(patience)
	require.ErrorContains(t, err, "before READY")
}

// A call that nobody listens to may not stop the others, up to its bound.
func TestSlowConsumer(t *testing.T) {
	c, p := connect(t, Options{Window: 1 << 20})
	slow, _ := c.Begin(nil)
	quick, _ := c.Begin(nil)
	go func() {
		for range 10 {
			p.send(KindStdout, slow, make([]byte, 100_000))
		}
		p.send(KindResult, quick, pickled(nil))
		p.send(KindResult, slow, pickled(nil))
	}()
	_, err := last(c, quick)
	require.NoError(t, err)
	n := 0
	for {
		e, err := c.Next(slow, patience)
		if errors.Is(err, ErrInterrupted) {
			continue
		}
		require.NoError(t, err)
		if e.Last() {
			break
		}
		n += len(e.Data)
	}
	require.Equal(t, 1_000_000, n)
}

func FuzzFrames(f *testing.F) {
	f.Add(encode(f, KindResult, 1, pickled(nil)))
	f.Add(encode(f, KindException, 1, []byte("\x81\xa7message\xa1x"), nil))
	f.Add(encode(f, KindLog, 0, []byte("\x81\xa1k\x01")))
	f.Add(append(encode(f, KindChunk, 1, make([]byte, 70_000)), encode(f, KindCancelled, 1)...))
	f.Add(append(encode(f, KindResult, 0, []byte("x")), 0xff, 0xff, 0xff, 0xff))
	f.Add(append(encode(f, KindBuffer, 1, 20_000, true), append(encode(f, KindFill, 1, make([]byte, 20_000)), encode(f, KindResult, 1, pickled(nil))...)...))
	f.Add(append(encode(f, KindStdout, 2, make([]byte, 100_000)), encode(f, KindReady, 0, "1", 1, "3")...))
	f.Add(encode(f, KindException, 2, []byte("\x81\xa6frames\x91\x94\xa1f\x01\xa1g\xa0"), []byte("\x80\x05N.")))
	rounds := 0
	f.Fuzz(func(t *testing.T, data []byte) {
		c, p := connect(t, Options{MaxResult: 1 << 16, Window: 1 << 16})
		for range 2 {
			if _, err := c.Begin(nil); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan struct{})
		go func() { defer close(done); p.write(data); p.f.Close() }()
		c.opts.Grace = 1
		for {
			_, err := c.Next(1, patience)
			if err != nil && !errors.Is(err, ErrInterrupted) {
				if errors.Is(err, ErrTimeout) {
					t.Fatal(err)
				}
				break
			}
		}
		c.Close()
		<-done
		if rounds++; rounds%1000 == 0 { // a child may take neither memory nor threads
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			if n := runtime.NumGoroutine(); n > 100 || memory.HeapInuse > 256<<20 {
				t.Fatalf("%d goroutines, %d bytes", n, memory.HeapInuse)
			}
		}
	})
}
