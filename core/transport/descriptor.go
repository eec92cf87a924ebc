package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Bounds of what a child says about an exception or a log record.
const (
	maxDepth     = 16
	maxText      = 64 << 10
	maxValues    = 20_000
	maxStructure = 1 << 20
	maxDenials   = 256 // of one descriptor; our own child tells fewer
)

// shape is what a value of a descriptor must look like.
type shape uint8

const (
	anyValue shape = iota
	textValue
	optionalText // text or nil
	boolValue
	textsValue      // array of texts
	framesValue     // array of [file, line, function, source]
	denialsValue    // array of maps: what the child says that it was refused
	exceptionValue  // a descriptor, or nil
	exceptionsValue // array of descriptors
)

// descriptorFields is the descriptor of docs/implementation.md.
var descriptorFields = map[string]shape{
	"module": textValue, "qualname": textValue, "message": textValue, "base": boolValue, "frames": framesValue,
	"denials": denialsValue, "notes": textsValue, "cause": exceptionValue, "context": exceptionValue, "suppress": boolValue,
	"exceptions": exceptionsValue,
}

// transcriber turns msgpack of the child's into JSON of ours, within bounds.
type transcriber struct {
	src    *bytes.Reader
	dec    *msgpack.Decoder
	out    bytes.Buffer
	values int
	vouch  vouchFunc
	told   int // denials so far
	bound  boundFunc
}

func transcribe(data []byte, s shape, vouch vouchFunc, bound boundFunc) ([]byte, error) {
	if len(data) > maxStructure {
		return nil, fmt.Errorf("%d bytes (at most %d)", len(data), maxStructure)
	}
	t := transcriber{src: bytes.NewReader(data), vouch: vouch, bound: bound}
	t.dec = msgpack.NewDecoder(t.src)
	if err := t.value(s, 0); err != nil {
		return nil, err
	}
	if t.src.Len() != 0 {
		return nil, fmt.Errorf("%d bytes after its end", t.src.Len())
	}
	if t.out.Len() > 8*maxStructure {
		return nil, errors.New("too long")
	}
	return t.out.Bytes(), nil
}

// exceptionJSON decodes an exception's descriptor.
func exceptionJSON(data []byte, vouch vouchFunc, bound boundFunc) ([]byte, error) {
	out, err := transcribe(data, exceptionValue, vouch, bound)
	if err == nil && bytes.Equal(out, []byte("null")) {
		err = errors.New("nil")
	}
	return out, err
}

// recordJSON decodes a log record: a map of any values.
func recordJSON(data []byte) ([]byte, error) {
	if len(data) == 0 || !isMap(data[0]) {
		return nil, errors.New("no map")
	}
	return transcribe(data, anyValue, nil, nil)
}

func isMap(c byte) bool {
	return msgpcode.IsFixedMap(c) || c == msgpcode.Map16 || c == msgpcode.Map32
}

// value writes the next value, which must have the shape s.
func (t *transcriber) value(s shape, depth int) error {
	if t.values++; t.values > maxValues {
		return fmt.Errorf("more than %d values", maxValues)
	}
	if depth > maxDepth {
		return fmt.Errorf("more than %d levels", maxDepth)
	}
	c, err := t.dec.PeekCode()
	if err != nil {
		return err
	}
	array := msgpcode.IsFixedArray(c) || c == msgpcode.Array16 || c == msgpcode.Array32
	text := msgpcode.IsString(c) || msgpcode.IsBin(c)
	switch {
	case c == msgpcode.Nil && (s == exceptionValue || s == anyValue || s == optionalText):
		t.out.WriteString("null")
		return t.dec.DecodeNil()
	case s == exceptionValue && isMap(c):
		return t.mapping(descriptorFields, depth)
	case s == anyValue && isMap(c):
		return t.mapping(nil, depth)
	case s == textsValue && array:
		return t.array(textValue, depth)
	case s == denialsValue && array:
		return t.denials(depth)
	case s == anyValue && array:
		return t.array(anyValue, depth)
	case s == exceptionsValue && array:
		return t.array(exceptionValue, depth)
	case s == framesValue && array:
		return t.frames(depth)
	case (s == textValue || s == optionalText || s == anyValue) && text:
		return t.text()
	case (s == boolValue || s == anyValue) && (c == msgpcode.True || c == msgpcode.False):
		b, err := t.dec.DecodeBool()
		fmt.Fprint(&t.out, b)
		return err
	case s == anyValue:
		return t.number(c)
	}
	return fmt.Errorf("a value of the wrong type (msgpack code 0x%02x)", c)
}

func (t *transcriber) number(c byte) error {
	switch {
	case msgpcode.IsFixedNum(c), c >= msgpcode.Int8 && c <= msgpcode.Int64:
		n, err := t.dec.DecodeInt64()
		fmt.Fprint(&t.out, n)
		return err
	case c >= msgpcode.Uint8 && c <= msgpcode.Uint64:
		n, err := t.dec.DecodeUint64()
		fmt.Fprint(&t.out, n)
		return err
	case c == msgpcode.Float, c == msgpcode.Double:
		f, err := t.dec.DecodeFloat64()
		if err != nil {
			return err
		}
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return t.quoted(fmt.Sprint(f))
		}
		return t.quoted(f)
	}
	return fmt.Errorf("a value of the wrong type (msgpack code 0x%02x)", c)
}

// text writes a text. Bytes that are no UTF-8 (file names) become the replacement character.
func (t *transcriber) text() error {
	n, err := t.dec.DecodeBytesLen()
	if err != nil {
		return err
	}
	if n > maxText || n > t.src.Len() {
		return fmt.Errorf("a text of %d bytes (at most %d)", n, maxText)
	}
	b := make([]byte, max(n, 0))
	if err := t.dec.ReadFull(b); err != nil {
		return err
	}
	return t.quoted(string(b))
}

func (t *transcriber) quoted(v any) error {
	b, err := json.Marshal(v)
	t.out.Write(b)
	return err
}

func (t *transcriber) array(s shape, depth int) error {
	n, err := t.dec.DecodeArrayLen()
	if err != nil {
		return err
	}
	if n > t.src.Len() { // each item has at least one byte
		return fmt.Errorf("an array of %d items with %d bytes left", n, t.src.Len())
	}
	t.out.WriteByte('[')
	for i := range n {
		if i > 0 {
			t.out.WriteByte(',')
		}
		if err := t.value(s, depth+1); err != nil {
			return err
		}
	}
	t.out.WriteByte(']')
	return nil
}

// frames writes stack frames.
func (t *transcriber) frames(depth int) error {
	n, err := t.dec.DecodeArrayLen()
	if err != nil {
		return err
	}
	t.out.WriteByte('[')
	for i := range n {
		if i > 0 {
			t.out.WriteByte(',')
		}
		fields, err := t.dec.DecodeArrayLen()
		if err != nil {
			return err
		}
		if fields != 4 {
			return fmt.Errorf("a stack frame of %d fields", fields)
		}
		t.out.WriteByte('[')
		for j := range fields {
			if j > 0 {
				t.out.WriteByte(',')
			}
			switch j {
			case 1:
				var line int64
				line, err = t.dec.DecodeInt64()
				fmt.Fprint(&t.out, line)
			case 3:
				err = t.value(optionalText, depth+1)
			default:
				err = t.value(textValue, depth+1)
			}
			if err != nil {
				return err
			}
		}
		t.out.WriteByte(']')
	}
	t.out.WriteByte(']')
	return nil
}

// mapping writes a map with text keys; with fields, those alone and in their shapes.
func (t *transcriber) mapping(fields map[string]shape, depth int) error {
	n, err := t.dec.DecodeMapLen()
	if err != nil {
		return err
	}
	seen, said := map[string]bool{}, map[string]string{}
	t.out.WriteByte('{')
	for i := range n {
		if i > 0 {
			t.out.WriteByte(',')
		}
		length, err := t.dec.DecodeBytesLen()
		if err != nil {
			return err
		}
		if length < 0 || length > 256 {
			return fmt.Errorf("a key of %d bytes", length)
		}
		key := make([]byte, length)
		if err := t.dec.ReadFull(key); err != nil {
			return err
		}
		s, known := fields[string(key)]
		if fields != nil && !known {
			return fmt.Errorf("the unknown field %q", key)
		}
		if seen[string(key)] {
			return fmt.Errorf("the field %q twice", key)
		}
		seen[string(key)] = true
		if err := t.quoted(string(key)); err != nil {
			return err
		}
		t.out.WriteByte(':')
		from := t.out.Len()
		if err := t.value(s, depth+1); err != nil {
			return err
		}
		if fields != nil && s == textValue {
			said[string(key)] = t.since(from)
		}
	}
	if fields != nil {
		t.limited(said)
	}
	t.out.WriteByte('}')
	return nil
}
