package transport

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// Kinds of frames. A frame is a 4-byte big-endian length and a msgpack array that begins with its kind and, but for STOP, an id.
const (
	KindCall      = 1  // to the child: id, payload
	KindCancel    = 2  // to the child: id
	KindStop      = 3  // to the child
	KindPiece     = 4  // to the child: id, part of a payload
	KindTaken     = 5  // to the child: id, how much of the call's output was taken since the last one (window.go)
	KindReady     = 10 // version, pid, python
	KindStdout    = 11 // id, bytes
	KindStderr    = 12 // id, bytes
	KindLog       = 13 // id, msgpack map
	KindResult    = 14 // id, last part of the pickle
	KindException = 15 // id, descriptor, pickle or nil
	KindCancelled = 16 // id
	KindBuffer    = 17 // id, size, writable: a bytes object or bytearray beside the pickle; FILLs bring it, in a row but for output
	KindFill      = 18 // id, part of the buffer
	KindChunk     = 19 // id, part of the pickle
)

const (
	// MaxPart is how much of a payload or a result one frame carries.
	MaxPart = 1 << 20
	// MaxFrame is the greatest length of a frame.
	MaxFrame = MaxPart + 64
	// headRoom is enough to decode a frame up to its first bytes' length: array, kind, id, bin32.
	headRoom = 1 + 9 + 9 + 5
)

// frame is one decoded frame. The slices alias the read buffer.
type frame struct {
	kind int
	id   uint64
	data []byte // STDOUT to CHUNK: the bytes; EXCEPTION: the descriptor; READY: the version
	rich []byte // EXCEPTION: the pickle, nil if there is none; READY: the python
	pid  int    // READY

	size     uint64 // BUFFER
	writable bool   // BUFFER
	length   int    // of data, which may be cut short (head)
	whole    []byte // output that is received straight: where all of data goes
}

// output reports whether the frame is what a call printed or logged.
func (f frame) output() bool {
	return f.kind == KindStdout || f.kind == KindStderr || f.kind == KindLog
}

// reader decodes frames with one pooled decoder.
type reader struct {
	src bytes.Reader
	dec *msgpack.Decoder
}

func newReader() *reader {
	r := &reader{}
	r.dec = msgpack.NewDecoder(&r.src)
	return r
}

// decode takes one whole frame body apart, or with head only as far as the length of its first bytes.
func (r *reader) decode(body []byte, head bool) (f frame, err error) {
	r.src.Reset(body)
	n, err := r.dec.DecodeArrayLen()
	if err != nil {
		return f, err
	}
	if f.kind, err = r.dec.DecodeInt(); err != nil {
		return f, err
	}
	want, known := arrayLength[f.kind]
	if !known {
		return f, fmt.Errorf("a frame of the unknown kind %d", f.kind)
	}
	if n != want {
		return f, fmt.Errorf("a frame of kind %d with %d fields instead of %d", f.kind, n, want)
	}
	if f.id, err = r.dec.DecodeUint64(); err != nil {
		return f, err
	}
	if f.kind == KindCancelled {
		return f, r.end()
	}
	if f.kind == KindReady {
		return r.ready(body, f)
	}
	if f.kind == KindBuffer {
		if f.size, err = r.dec.DecodeUint64(); err != nil {
			return f, err
		}
		if f.writable, err = r.dec.DecodeBool(); err != nil {
			return f, err
		}
		return f, r.end()
	}
	if f.length, err = r.dec.DecodeBytesLen(); err != nil {
		return f, err
	}
	if f.length < 0 {
		return f, fmt.Errorf("a frame of kind %d without bytes", f.kind)
	}
	if head {
		f.data = body[len(body)-r.src.Len():]
		return f, nil
	}
	if f.data, err = r.take(body, f.length); err != nil {
		return f, err
	}
	if f.kind == KindException {
		n, err := r.dec.DecodeBytesLen()
		if err != nil {
			return f, err
		}
		if n >= 0 {
			if f.rich, err = r.take(body, n); err != nil {
				return f, err
			}
		}
	}
	return f, r.end()
}

// arrayLength has the kinds that a child may send, with their number of fields.
var arrayLength = map[int]int{
	KindReady: 5, KindStdout: 3, KindStderr: 3, KindLog: 3, KindResult: 3, KindException: 4, KindCancelled: 2, KindChunk: 3,
	KindBuffer: 4, KindFill: 3,
}

// ready reads the fields of READY; its two texts must be short.
func (r *reader) ready(body []byte, f frame) (frame, error) {
	var err error
	if f.data, err = r.shortText(body); err != nil {
		return f, err
	}
	if f.pid, err = r.dec.DecodeInt(); err != nil {
		return f, err
	}
	if f.rich, err = r.shortText(body); err != nil {
		return f, err
	}
	return f, r.end()
}

func (r *reader) shortText(body []byte) ([]byte, error) {
	n, err := r.dec.DecodeBytesLen()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > 256 {
		return nil, fmt.Errorf("a READY frame with a text of %d bytes", n)
	}
	return r.take(body, n)
}

// take returns the next n bytes without copying them.
func (r *reader) take(body []byte, n int) ([]byte, error) {
	at := len(body) - r.src.Len()
	if n > len(body)-at {
		return nil, fmt.Errorf("a field of %d bytes with %d left", n, len(body)-at)
	}
	_, err := r.src.Seek(int64(at+n), 0)
	return body[at : at+n : at+n], err
}

func (r *reader) end() error {
	if r.src.Len() != 0 {
		return fmt.Errorf("%d bytes after the last field", r.src.Len())
	}
	return nil
}

// writer encodes the heads of frames into one pooled buffer.
type writer struct {
	buf bytes.Buffer
	enc *msgpack.Encoder
}

func newWriter() *writer {
	w := &writer{}
	w.enc = msgpack.NewEncoder(&w.buf)
	return w
}

// head encodes a frame up to where `body` more bytes follow, -1 for a frame without bytes. The result is valid until the next.
func (w *writer) head(kind int, id uint64, body int) ([]byte, error) {
	w.buf.Reset()
	w.buf.Write([]byte{0, 0, 0, 0})
	fields := 3
	switch {
	case kind == KindStop:
		fields = 1
	case body < 0:
		fields = 2
	}
	err := w.enc.EncodeArrayLen(fields)
	if err == nil {
		err = w.enc.EncodeInt(int64(kind))
	}
	if err == nil && fields > 1 {
		err = w.enc.EncodeUint(id)
	}
	if err == nil && fields > 2 {
		err = w.enc.EncodeBytesLen(body)
	}
	return w.closed(max(body, 0)), err
}

// taken encodes a TAKEN frame. The result is valid until the next.
func (w *writer) taken(id uint64, n int64) ([]byte, error) {
	w.buf.Reset()
	w.buf.Write([]byte{0, 0, 0, 0})
	err := w.enc.EncodeArrayLen(3)
	if err == nil {
		err = w.enc.EncodeInt(KindTaken)
	}
	if err == nil {
		err = w.enc.EncodeUint(id)
	}
	if err == nil {
		err = w.enc.EncodeInt(n)
	}
	return w.closed(0), err
}

// closed puts the length before what was encoded, to which more bytes will be added.
func (w *writer) closed(more int) []byte {
	head := w.buf.Bytes()
	binary.BigEndian.PutUint32(head, uint32(len(head)-4+more))
	return head
}
