package transport

import (
	"encoding/binary"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"golang.org/x/sys/unix"
)

const patience = 10 * time.Second

// peer is the child's end of a connection, played by the test.
type peer struct {
	t testing.TB
	f *os.File
}

// connect makes a connection whose peer has said READY.
func connect(t testing.TB, o Options) (*Conn, *peer) {
	t.Helper()
	c, p := connectRaw(t, o)
	p.send(KindReady, 0, "1.0", 42, "3.13.0")
	_, err := c.Ready(patience)
	require.NoError(t, err)
	return c, p
}

func connectRaw(t testing.TB, o Options) (*Conn, *peer) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	c, err := New(fds[0], o)
	require.NoError(t, err)
	p := &peer{t, os.NewFile(uintptr(fds[1]), "peer")}
	t.Cleanup(func() { c.Close(); p.f.Close() })
	return c, p
}

// encode is one frame of the given fields.
func encode(t testing.TB, fields ...any) []byte {
	body, err := msgpack.Marshal(fields)
	require.NoError(t, err)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func (p *peer) send(fields ...any) { p.write(encode(p.t, fields...)) }

// write ignores errors: a connection that ended does not take everything.
func (p *peer) write(b []byte) { _, _ = p.f.Write(b) }

// receive reads one frame.
func (p *peer) receive() (kind int, id uint64, payload []byte) {
	kind, id, payload, err := p.next()
	require.NoError(p.t, err)
	return kind, id, payload
}

func (p *peer) next() (kind int, id uint64, payload []byte, err error) {
	kind, id, fields, err := p.fields()
	if err != nil || len(fields) < 3 {
		return kind, id, nil, err
	}
	err = msgpack.Unmarshal(fields[2], &payload)
	return kind, id, payload, err
}

// fields reads one frame, and decodes its kind and its id.
func (p *peer) fields() (kind int, id uint64, fields []msgpack.RawMessage, err error) {
	var head [4]byte
	if _, err = io.ReadFull(p.f, head[:]); err != nil {
		return
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err = io.ReadFull(p.f, body); err != nil {
		return
	}
	if err = msgpack.Unmarshal(body, &fields); err != nil {
		return
	}
	if err = msgpack.Unmarshal(fields[0], &kind); err != nil || len(fields) < 2 {
		return
	}
	err = msgpack.Unmarshal(fields[1], &id)
	return
}

// echo answers each call with a result that is the pickle of its payload as bytes, until the connection ends.
func (p *peer) echo() {
	for {
		kind, id, payload, err := p.next()
		if err != nil {
			return
		}
		if kind == KindCall {
			p.send(KindResult, id, pickled(payload))
		}
	}
}

// pickled is the pickle of b as bytes, at protocol 5.
func pickled(b []byte) []byte {
	out := append([]byte{0x80, 5, 'B'}, binary.LittleEndian.AppendUint32(nil, uint32(len(b)))...)
	return append(append(out, b...), '.')
}

// unpickled is the other way round.
func unpickled(p []byte) []byte { return p[7 : len(p)-1] }

// last takes a call's events until the last one, through interruptions.
func last(c *Conn, id uint64) (Event, error) {
	for {
		e, err := c.Next(id, patience)
		if err == ErrInterrupted {
			continue
		}
		if err != nil || e.Last() {
			return e, err
		}
	}
}
