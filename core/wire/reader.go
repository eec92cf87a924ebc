package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// reader takes a hostile message apart. Each method accepts one type only, where the library would convert (nil to zero,
// a number to a bool), and keeps the first error; after one, every method gives its zero value.
type reader struct {
	src *bytes.Reader
	dec *msgpack.Decoder
	err error
}

func newReader(data []byte) *reader {
	src := bytes.NewReader(data)
	return &reader{src: src, dec: msgpack.NewDecoder(src)}
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// expect reports whether the next value has a code that ok accepts.
func (r *reader) expect(what string, ok func(code byte) bool) bool {
	if r.err != nil {
		return false
	}
	code, err := r.dec.PeekCode()
	switch {
	case errors.Is(err, io.EOF):
		r.fail(fmt.Errorf("%s is missing", what))
	case err != nil:
		r.fail(fmt.Errorf("%s: %w", what, err))
	case !ok(code):
		r.fail(fmt.Errorf("%s has the wrong type (code %#02x)", what, code))
	default:
		return true
	}
	return false
}

// arrayLen reads an array header. Each element takes a byte at least, which bounds what a caller may allocate.
func (r *reader) arrayLen(what string) int {
	if !r.expect(what, func(c byte) bool {
		return msgpcode.IsFixedArray(c) || c == msgpcode.Array16 || c == msgpcode.Array32
	}) {
		return 0
	}
	n, err := r.dec.DecodeArrayLen()
	if err != nil {
		r.fail(fmt.Errorf("%s: %w", what, err))
		return 0
	}
	if n < 0 || n > r.src.Len() {
		r.fail(fmt.Errorf("%s says %d elements, more than the message holds", what, n))
		return 0
	}
	return n
}

func (r *reader) bool(what string) bool {
	if !r.expect(what, func(c byte) bool { return c == msgpcode.True || c == msgpcode.False }) {
		return false
	}
	b, err := r.dec.DecodeBool()
	if err != nil {
		r.fail(fmt.Errorf("%s: %w", what, err))
	}
	return b
}

// uint reads a number that is not negative.
func (r *reader) uint(what string, limit uint64) uint64 {
	if !r.expect(what, func(c byte) bool {
		return c <= msgpcode.PosFixedNumHigh || (c >= msgpcode.Uint8 && c <= msgpcode.Int64)
	}) {
		return 0
	}
	code, _ := r.dec.PeekCode()
	n, err := r.dec.DecodeUint64()
	if err != nil {
		r.fail(fmt.Errorf("%s: %w", what, err))
		return 0
	}
	// A signed encoding of a negative number arrives with its sign extended to the top bit.
	if n > limit || (code >= msgpcode.Int8 && code <= msgpcode.Int64 && int64(n) < 0) {
		r.fail(fmt.Errorf("%s is out of range", what))
		return 0
	}
	return n
}

// word reads text: UTF-8 without control characters, at most limit bytes. Names of modules, calls and events are words.
func (r *reader) word(what string, limit int) string {
	s := r.raw(what, limit, isStr)
	if r.err == nil && !plain(s) {
		r.fail(fmt.Errorf("%s is not plain text", what))
		return ""
	}
	return s
}

// text reads UTF-8 that may hold line ends.
func (r *reader) text(what string, limit int) string {
	s := r.raw(what, limit, isStr)
	if r.err == nil && !utf8.ValidString(s) {
		r.fail(fmt.Errorf("%s is not UTF-8", what))
		return ""
	}
	return s
}

// loose reads text that the program in the child may have chosen: an import's name, a code object's file. It may hold
// anything; bytes that are no UTF-8 come as \xNN. Who shows it quotes it.
func (r *reader) loose(what string, limit int) string {
	s := r.raw(what, limit, func(c byte) bool { return isStr(c) || isBin(c) })
	if !utf8.ValidString(s) {
		s = escape(s)
	}
	return s
}

// bytes reads a byte string (a path or a host) without NUL.
func (r *reader) bytes(what string, limit int) string {
	s := r.raw(what, limit, isBin)
	if r.err == nil && indexNUL(s) {
		r.fail(fmt.Errorf("%s holds a NUL byte", what))
		return ""
	}
	return s
}

// bytesOrNil is bytes where nil stands for "".
func (r *reader) bytesOrNil(what string, limit int) string {
	if r.err != nil {
		return ""
	}
	if code, err := r.dec.PeekCode(); err == nil && code == msgpcode.Nil {
		r.fail(r.dec.DecodeNil())
		return ""
	}
	return r.bytes(what, limit)
}

func (r *reader) raw(what string, limit int, ok func(byte) bool) string {
	if !r.expect(what, ok) {
		return ""
	}
	n, err := r.dec.DecodeBytesLen()
	if err != nil {
		r.fail(fmt.Errorf("%s: %w", what, err))
		return ""
	}
	if n < 0 || n > r.src.Len() {
		r.fail(fmt.Errorf("%s says %d bytes, more than the message holds", what, n))
		return ""
	}
	if n > limit {
		r.fail(fmt.Errorf("%s is %d bytes long, the limit is %d", what, n, limit))
		return ""
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r.src, data); err != nil {
		r.fail(fmt.Errorf("%s: %w", what, err))
		return ""
	}
	return string(data)
}

func isStr(c byte) bool {
	return msgpcode.IsFixedString(c) || c == msgpcode.Str8 || c == msgpcode.Str16 || c == msgpcode.Str32
}

func isBin(c byte) bool { return c == msgpcode.Bin8 || c == msgpcode.Bin16 || c == msgpcode.Bin32 }

func indexNUL(s string) bool {
	for i := range len(s) {
		if s[i] == 0 {
			return true
		}
	}
	return false
}

func plain(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, c := range s {
		if c < 0x20 || c == 0x7f {
			return false
		}
	}
	return true
}
