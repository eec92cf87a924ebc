package wire

import "github.com/vmihailenco/msgpack/v5"

// writer keeps the first error of an encoder, so that a message reads as a list of its fields.
type writer struct {
	enc *msgpack.Encoder
	err error
}

func (w *writer) do(err error) *writer {
	if w.err == nil {
		w.err = err
	}
	return w
}

func (w *writer) mapLen(n int) *writer   { return w.do(w.enc.EncodeMapLen(n)) }
func (w *writer) arrayLen(n int) *writer { return w.do(w.enc.EncodeArrayLen(n)) }
func (w *writer) key(s string) *writer   { return w.do(w.enc.EncodeString(s)) }
func (w *writer) str(s string) *writer   { return w.do(w.enc.EncodeString(s)) }
func (w *writer) bin(s string) *writer   { return w.do(w.enc.EncodeBytes([]byte(s))) }
func (w *writer) int(n int64) *writer    { return w.do(w.enc.EncodeInt(n)) }
func (w *writer) uint(n uint64) *writer  { return w.do(w.enc.EncodeUint(n)) }
func (w *writer) bool(b bool) *writer    { return w.do(w.enc.EncodeBool(b)) }
func (w *writer) null() *writer          { return w.do(w.enc.EncodeNil()) }

// binOrNull writes nil for what is not there.
func (w *writer) binOrNull(s string) *writer {
	if s == "" {
		return w.null()
	}
	return w.bin(s)
}

func (w *writer) strs(list []string) *writer {
	w.arrayLen(len(list))
	for _, s := range list {
		w.str(s)
	}
	return w
}

func (w *writer) bins(list []string) *writer {
	w.arrayLen(len(list))
	for _, s := range list {
		w.bin(s)
	}
	return w
}
