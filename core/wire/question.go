package wire

import (
	"bytes"
	"fmt"
	"math"

	"github.com/vmihailenco/msgpack/v5"
)

// Op names what a question is about.
type Op string

// The questions of docs/implementation.md.
const (
	OpHello    Op = "hello"
	OpFile     Op = "file"
	OpImport   Op = "import"
	OpCall     Op = "call"
	OpNet      Op = "net"
	OpEval     Op = "eval"
	OpEvalRule Op = "eval-rule" // a family of learn alone
	OpEnv      Op = "env"
	OpHidden   Op = "hidden"
	OpRemove   Op = "remove"
	OpNative   Op = "native"
	OpLearn    Op = "learn"
	OpLearnEnv Op = "learn-env"
	OpNote     Op = "note"
)

// Limits of a single field, in bytes (or elements for maxNames and maxList). Longer is a protocol error, not a longer answer.
const (
	maxPath  = 8 << 10
	maxName  = 1 << 10
	maxNames = 64
	maxList  = 512 // names in a folder
	maxText  = 16 << 10
)

// Question is one message of the guard. Which fields count depends on Op; under OpLearn it depends on Family.
type Question struct {
	Seq uint64 // 0: no answer is wanted
	Op  Op

	Pid     int    // hello
	Version string // hello: of the product
	Python  string // hello: of the interpreter

	Path  string // file, hidden, remove: canonical, any byte but NUL
	Write bool   // file
	Via   string // file: the path whose link leads to Path, "" usually
	Event string // file, call, remove

	Name string // import, env, learn-env
	Hint string // import: a file that exists but may not be read, "" usually

	Names []string // call: outermost function first; hidden: names in the folder Path, any byte but NUL

	NetOp string // net: connect, bind, listen, sendto, resolve, reverse, socket (one of a kind that no rule can name), chosen (learn alone: the port that the system gave at a bind to 0)
	Proto string // net: tcp, udp, icmp, raw, unix
	Host  string // net: an address, or a name for resolve
	Port  int    // net

	Kind string // eval: eval, exec, compile

	Key, Item string // eval-rule: what would allow what a guarded string did: a key and one of its items

	Family Op     // learn: OpFile, OpImport, OpCall, OpNet, OpEval or OpEvalRule
	Site   string // learn, learn-env: file:line, "" where unknown
	Quiet  bool   // learn: the import system asked, not the program; eval-rule: it came from the caller's names

	Level, Text string // note

	After uint64 // native: the number of the last refusal that the asker has
}

// subject is how the arguments of one family are read and written. One table serves the plain question and its learn form.
type subject struct {
	fields int
	read   func(*reader, *Question)
	write  func(*writer, *Question)
}

var subjects = map[Op]subject{
	OpFile: {4,
		func(r *reader, q *Question) { readFile(r, q); q.Via = r.bytesOrNil("via", maxPath) },
		func(w *writer, q *Question) { writeFile(w, q); w.binOrNull(q.Via) }},
	OpImport: {2,
		func(r *reader, q *Question) { q.Name, q.Hint = r.loose("name", maxName), r.bytesOrNil("hint", maxPath) },
		func(w *writer, q *Question) { w.str(q.Name).binOrNull(q.Hint) }},
	OpCall: {2,
		func(r *reader, q *Question) { q.Names, q.Event = readNames(r), r.word("event", maxName) },
		func(w *writer, q *Question) { w.strs(q.Names).str(q.Event) }},
	OpNet: {4,
		func(r *reader, q *Question) {
			q.NetOp = r.oneOf("network operation", "connect", "bind", "listen", "sendto", "resolve", "reverse", "socket", "chosen")
			q.Proto = r.oneOf("protocol", "tcp", "udp", "icmp", "raw", "unix")
			q.Host, q.Port = r.bytes("host", maxName), int(r.uint("port", math.MaxUint16))
		},
		func(w *writer, q *Question) { w.str(q.NetOp).str(q.Proto).bin(q.Host).int(int64(q.Port)) }},
	OpEval: {1,
		func(r *reader, q *Question) { q.Kind = r.oneOf("kind", "eval", "exec", "compile") },
		func(w *writer, q *Question) { w.str(q.Kind) }},
	OpEvalRule: {2,
		func(r *reader, q *Question) { q.Key, q.Item = r.word("key", maxName), r.loose("item", maxName) },
		func(w *writer, q *Question) { w.str(q.Key).str(q.Item) }},
	OpRemove: {2,
		func(r *reader, q *Question) { q.Path, q.Event = r.bytes("path", maxPath), r.word("event", maxName) },
		func(w *writer, q *Question) { w.bin(q.Path).str(q.Event) }},
	OpEnv: {1,
		func(r *reader, q *Question) { q.Name = r.bytes("name", maxName) },
		func(w *writer, q *Question) { w.bin(q.Name) }},
}

func readFile(r *reader, q *Question) {
	q.Path, q.Write, q.Event = r.bytes("path", maxPath), r.bool("write"), r.word("event", maxName)
}

func writeFile(w *writer, q *Question) { w.bin(q.Path).bool(q.Write).str(q.Event) }

// observed is the subject of a family in its learn form: what was not refused has no hint and needs no way to it.
func observed(family Op) (subject, bool) {
	switch family {
	case OpFile:
		return subject{3, readFile, writeFile}, true
	case OpImport:
		return subject{1,
			func(r *reader, q *Question) { q.Name = r.loose("name", maxName) },
			func(w *writer, q *Question) { w.str(q.Name) }}, true
	case OpEnv, OpRemove: // the one has a message of its own, the other is nothing to be learned
		return subject{}, false
	}
	s, known := subjects[family]
	return s, known
}

// DecodeQuestion reads one message of a child. An error means that the child does not speak the protocol.
func DecodeQuestion(data []byte) (Question, error) {
	if len(data) > MaxMessage {
		return Question{}, fmt.Errorf("question of %d bytes, the limit is %d", len(data), MaxMessage)
	}
	r := newReader(data)
	var q Question
	n := r.arrayLen("question")
	q.Seq = r.uint("sequence number", math.MaxUint64)
	q.Op = Op(r.word("operation", 16))
	rest := n - 2
	switch subject, plain := subjects[q.Op]; {
	case r.err != nil:
	case plain:
		r.want(rest, subject.fields)
		subject.read(r, &q)
	case q.Op == OpHello:
		r.want(rest, 3)
		q.Pid, q.Version, q.Python = int(r.uint("pid", math.MaxInt32)), r.word("version", maxName), r.loose("python", maxName)
	case q.Op == OpLearn:
		q.Family = Op(r.word("family", 16))
		seen, known := observed(q.Family)
		if !known {
			r.fail(fmt.Errorf("unknown family %q", q.Family))
			break
		}
		r.want(rest, 1+seen.fields+2)
		seen.read(r, &q)
		q.Site, q.Quiet = r.loose("site", maxPath), r.bool("quiet")
	case q.Op == OpLearnEnv:
		r.want(rest, 2)
		q.Name, q.Site = r.loose("name", maxName), r.loose("site", maxPath)
	case q.Op == OpHidden:
		r.want(rest, 2)
		q.Path, q.Names = r.bytes("path", maxPath), readList(r)
	case q.Op == OpNative:
		r.want(rest, 1)
		q.After = r.uint("number", math.MaxInt64)
	case q.Op == OpNote:
		r.want(rest, 2)
		q.Level, q.Text = r.word("level", 16), r.loose("text", maxText)
	default:
		r.fail(fmt.Errorf("unknown operation %q", q.Op))
	}
	if r.err == nil && r.src.Len() != 0 {
		r.fail(fmt.Errorf("%d bytes too many", r.src.Len()))
	}
	if r.err != nil {
		return Question{}, fmt.Errorf("malformed question: %w", r.err)
	}
	return q, nil
}

func (r *reader) want(have, want int) {
	if have != want {
		r.fail(fmt.Errorf("%d arguments where %d belong", have, want))
	}
}

func (r *reader) oneOf(what string, words ...string) string {
	s := r.word(what, 16)
	if r.err != nil {
		return ""
	}
	for _, word := range words {
		if s == word {
			return s
		}
	}
	r.fail(fmt.Errorf("unknown %s %q", what, s))
	return ""
}

func readNames(r *reader) []string {
	return readMany(r, maxNames, func() string { return r.word("name", maxName) })
}

func readList(r *reader) []string {
	return readMany(r, maxList, func() string { return r.bytes("name", maxName) })
}

func readMany(r *reader, limit int, one func() string) []string {
	n := r.arrayLen("names")
	if r.err == nil && (n == 0 || n > limit) {
		r.fail(fmt.Errorf("%d names, between 1 and %d belong", n, limit))
		return nil
	}
	names := make([]string, n)
	for i := range names {
		names[i] = one()
	}
	return names
}

// Encode gives the bytes of a question; what the guard does in C. Tests and children written in Go use it.
func (q *Question) Encode() ([]byte, error) {
	var buf bytes.Buffer
	w := &writer{enc: msgpack.NewEncoder(&buf)}
	head := func(args int) *writer { return w.arrayLen(2 + args).uint(q.Seq).str(string(q.Op)) }
	switch subject, plain := subjects[q.Op]; {
	case plain:
		head(subject.fields)
		subject.write(w, q)
	case q.Op == OpHello:
		head(3).int(int64(q.Pid)).str(q.Version).str(q.Python)
	case q.Op == OpLearn:
		seen, known := observed(q.Family)
		if !known {
			return nil, fmt.Errorf("unknown family %q", q.Family)
		}
		head(1 + seen.fields + 2).str(string(q.Family))
		seen.write(w, q)
		w.str(q.Site).bool(q.Quiet)
	case q.Op == OpLearnEnv:
		head(2).str(q.Name).str(q.Site)
	case q.Op == OpHidden:
		head(2).bin(q.Path).bins(q.Names)
	case q.Op == OpNative:
		head(1).uint(q.After)
	case q.Op == OpNote:
		head(2).str(q.Level).str(q.Text)
	default:
		return nil, fmt.Errorf("unknown operation %q", q.Op)
	}
	if w.err != nil {
		return nil, fmt.Errorf("question: %w", w.err)
	}
	return buf.Bytes(), nil
}
