package wire

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Exception says which class the guard raises for a refusal.
type Exception int

// The codes of docs/implementation.md.
const (
	ExcNone              Exception = 0
	ExcFileNotFound      Exception = 1 // RuleFileNotFoundError
	ExcPermission        Exception = 2 // RulePermissionError
	ExcConnectionRefused Exception = 3 // RuleSocketConnectionRefusedError
	ExcModuleNotFound    Exception = 4 // RuleModuleNotFoundError
	ExcAPIPermission     Exception = 5 // RuleApiPermissionError
	ExcEvalPermission    Exception = 6 // RuleEvalPermissionError
	ExcSandBox           Exception = 7 // SandBoxError
)

// Denial is a refusal as data: what programs read from an exception, and what a model is told.
type Denial struct {
	Layer    string   `json:"layer"` // "python"
	Family   string   `json:"family"`
	Subject  string   `json:"subject"`
	Op       string   `json:"op"`
	Category string   `json:"category"`
	Rule     string   `json:"rule"` // file:line, "" where no rule decided
	Add      []string `json:"add"`  // narrowest first
	Message  string   `json:"message"`
}

// Answer is the reply to the question with the same Seq.
type Answer struct {
	Seq     uint64
	Allow   bool
	Exc     Exception
	Errno   int
	Message string
	Denial  *Denial
	Scope   string // what else the answer holds for; "" is nil on the wire: this question's text only
}

// Longest strings of an answer, chosen so that any answer is shorter than MaxMessage: two messages, and a denial of four
// fields and at most eight lines to add.
const (
	maxMessage = 12 << 10
	maxField   = 4 << 10
	maxAdd     = 4
)

// Sent is the denial as the guard gets it: valid UTF-8 within the bounds of an answer.
func (d Denial) Sent() Denial {
	sent := Denial{
		Layer: clip(d.Layer, maxField), Family: clip(d.Family, maxField), Subject: clip(d.Subject, maxField), Op: clip(d.Op, maxName),
		Category: clip(d.Category, maxName), Rule: clip(d.Rule, maxField), Add: make([]string, 0, maxAdd), Message: clip(d.Message, maxMessage),
	}
	for _, line := range d.Add[:min(len(d.Add), maxAdd)] {
		sent.Add = append(sent.Add, clip(line, maxField))
	}
	return sent
}

// Encode gives the answer as the guard reads it. Text that is too long is cut in its middle, so that a message still ends
// with the line to add; bytes that are no UTF-8 are written as \xNN.
func (a *Answer) Encode() ([]byte, error) {
	var buf bytes.Buffer
	w := &writer{enc: msgpack.NewEncoder(&buf)}
	w.arrayLen(7).uint(a.Seq).bool(a.Allow).int(int64(a.Exc)).int(int64(a.Errno)).str(clip(a.Message, maxMessage))
	if d := a.Denial; d == nil {
		w.null()
	} else {
		d := d.Sent()
		w.mapLen(8)
		w.key("layer").str(d.Layer)
		w.key("family").str(d.Family)
		w.key("subject").str(d.Subject)
		w.key("op").str(d.Op)
		w.key("category").str(d.Category)
		w.key("rule").str(d.Rule)
		w.key("add").arrayLen(len(d.Add))
		for _, line := range d.Add {
			w.str(line)
		}
		w.key("message").str(d.Message)
	}
	if a.Scope == "" {
		w.null()
	} else {
		w.str(clip(a.Scope, maxField))
	}
	if w.err != nil {
		return nil, fmt.Errorf("answer: %w", w.err)
	}
	if buf.Len() > MaxMessage {
		return nil, fmt.Errorf("answer of %d bytes, the limit is %d", buf.Len(), MaxMessage)
	}
	return buf.Bytes(), nil
}

// DecodeAnswer reads what Encode wrote; what the guard does in C.
func DecodeAnswer(data []byte) (Answer, error) {
	r := newReader(data)
	var a Answer
	r.want(r.arrayLen("answer"), 7)
	a.Seq, a.Allow = r.uint("sequence number", math.MaxUint64), r.bool("allow")
	a.Exc, a.Errno = Exception(r.uint("exception", 7)), int(r.uint("errno", math.MaxUint16))
	a.Message = r.text("message", MaxMessage)
	if !r.null() {
		a.Denial = readDenial(r)
	}
	if !r.null() {
		a.Scope = r.text("scope", MaxMessage)
	}
	if r.err != nil {
		return Answer{}, fmt.Errorf("malformed answer: %w", r.err)
	}
	return a, nil
}

func readDenial(r *reader) *Denial {
	if !r.expect("denial", func(c byte) bool { return msgpcode.IsFixedMap(c) }) {
		return nil
	}
	n, err := r.dec.DecodeMapLen()
	if err != nil {
		r.fail(err)
		return nil
	}
	var d Denial
	fields := map[string]*string{"layer": &d.Layer, "family": &d.Family, "subject": &d.Subject, "op": &d.Op,
		"category": &d.Category, "rule": &d.Rule, "message": &d.Message}
	for range n {
		switch key := r.word("key", 16); {
		case r.err != nil:
			return nil
		case key == "add":
			for range r.arrayLen("add") {
				d.Add = append(d.Add, r.text("add", MaxMessage))
			}
		case fields[key] != nil:
			*fields[key] = r.text(key, MaxMessage)
		default:
			r.fail(fmt.Errorf("unknown key %q", key))
		}
	}
	return &d
}

// null reads a nil if one is next.
func (r *reader) null() bool {
	if r.err != nil {
		return true
	}
	code, err := r.dec.PeekCode()
	if err != nil || code != msgpcode.Nil {
		return false
	}
	r.fail(r.dec.DecodeNil())
	return true
}

const ellipsis = " … "

// clip makes s valid UTF-8 of at most limit bytes, cut in the middle.
func clip(s string, limit int) string {
	if !utf8.ValidString(s) {
		s = escape(s)
	}
	if len(s) <= limit {
		return s
	}
	half := (limit - len(ellipsis)) / 2
	head, tail := s[:half], s[len(s)-half:]
	for !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	for !utf8.ValidString(tail) {
		tail = tail[1:]
	}
	return head + ellipsis + tail
}

func escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		c, size := utf8.DecodeRuneInString(s[i:])
		if c == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[i])
		} else {
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}
