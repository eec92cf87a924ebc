package transport

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The peer of the benchmarks is this test binary as a process of its own: a goroutine would share the scheduler with the caller.
const peerVariable = "PYSANDBOXES_TEST_ECHO"

func TestMain(m *testing.M) {
	switch os.Getenv(peerVariable) {
	case "raw":
		buf := make([]byte, 1<<16)
		for {
			n, err := unix.Read(3, buf)
			if n <= 0 || err != nil {
				os.Exit(0)
			}
			_, _ = unix.Write(3, buf[:n])
		}
	case "frames":
		answerFrames()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// answerFrames answers CALLs with a payload of "N" by a result of N bytes, and others by their own payload, as a tight child would.
func answerFrames() {
	f := os.NewFile(3, "peer")
	in := make([]byte, 0, 1<<16)
	buf := make([]byte, 1<<16)
	_, _ = f.Write([]byte{0, 0, 0, 10, 0x95, 10, 0, 0xa1, '1', 1, 0xa3, '3', '.', '1'})
	for {
		n, err := unix.Read(3, buf)
		if n <= 0 || err != nil {
			return
		}
		in = append(in, buf[:n]...)
		for len(in) >= 4 && len(in) >= 4+int(binary.BigEndian.Uint32(in)) {
			size := int(binary.BigEndian.Uint32(in))
			frame := in[4 : 4+size]
			in = in[4+size:]
			r := newReader()
			r.src.Reset(frame)
			r.dec.ResetReader(&r.src)
			_, _ = r.dec.DecodeArrayLen()
			_, _ = r.dec.DecodeInt()
			id, _ := r.dec.DecodeUint64()
			length, _ := r.dec.DecodeBytesLen()
			payload := frame[len(frame)-length:]
			body := pickled(payload)
			if len(payload) == 8 {
				body = pickled(make([]byte, binary.BigEndian.Uint64(payload)))
			}
			w := newWriter()
			for len(body) > MaxPart {
				head, _ := w.head(KindChunk, id, MaxPart)
				_, _ = f.Write(head)
				_, _ = f.Write(body[:MaxPart])
				body = body[MaxPart:]
			}
			head, _ := w.head(KindResult, id, len(body))
			_, _ = f.Write(append(bytes.Clone(head), body...))
		}
	}
}

// spawn starts a peer process and returns the other end of its socket.
func spawn(b *testing.B, role string) int {
	b.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(b, err)
	theirs := os.NewFile(uintptr(fds[1]), "peer")
	proc, err := os.StartProcess(os.Args[0], os.Args[:1], &os.ProcAttr{
		Env: append(os.Environ(), peerVariable+"="+role), Files: []*os.File{nil, nil, os.Stderr, theirs},
	})
	require.NoError(b, err)
	theirs.Close()
	b.Cleanup(func() { _ = unix.Shutdown(fds[0], unix.SHUT_RDWR); _, _ = proc.Wait() })
	return fds[0]
}

func BenchmarkRawEcho(b *testing.B) {
	fd := spawn(b, "raw")
	f := os.NewFile(uintptr(fd), "raw")
	buf := make([]byte, 60)
	for b.Loop() {
		if _, err := unix.Write(fd, buf); err != nil {
			b.Fatal(err)
		}
		for n := 0; n < len(buf); {
			m, err := unix.Read(fd, buf[n:])
			if err == unix.EINTR {
				continue
			}
			if err != nil || m == 0 {
				b.Fatal(io.ErrUnexpectedEOF)
			}
			n += m
		}
	}
	_ = f
}

func benchConn(b *testing.B) *Conn {
	c, err := New(spawn(b, "frames"), Options{})
	require.NoError(b, err)
	_, err = c.Ready(patience)
	require.NoError(b, err)
	b.Cleanup(c.Close)
	return c
}

func BenchmarkEcho(b *testing.B) {
	c := benchConn(b)
	payload := make([]byte, 50)
	for b.Loop() {
		id, err := c.Begin(payload)
		if err == nil {
			_, err = last(c, id)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEcho8Threads(b *testing.B) {
	c := benchConn(b)
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		payload := make([]byte, 50)
		for pb.Next() {
			id, err := c.Begin(payload)
			if err == nil {
				_, err = last(c, id)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkResult16MB(b *testing.B) {
	c := benchConn(b)
	want := binary.BigEndian.AppendUint64(nil, 16<<20)
	b.SetBytes(16 << 20)
	for b.Loop() {
		id, err := c.Begin(want)
		if err == nil {
			_, err = last(c, id)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
