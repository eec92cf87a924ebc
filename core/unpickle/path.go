package unpickle

import (
	"fmt"
	"strconv"
	"strings"
)

// maxPath bounds the text of a path, maxKey that of one key in it: the sender chose both.
const (
	maxPath = 400
	maxKey  = 60
)

// trace follows one value through a second run of the stream to name its place: result['rows'][3]. The run is only made for a value that
// is refused already; it lets everything well-formed through (mode Objects without guard) and decides nothing.
type trace struct {
	offset int // of the instruction that met the value; -1: the first that looks up module and name
	index  int // of the value on the stack before it, or pushed
	module string
	name   string
	word   word // the value, then the container that took it, and so on
	found  bool
	path   string // from word down to the value
	key    []byte // the text of the dict key that path begins with, nil if it begins otherwise
	tail   string // path after that key
}

// locate names the value at an index of the stack as the running instruction sees it.
func (m *machine) locate(index int) string {
	if m.trace != nil || m.at >= len(m.data) || m.data[m.at] == opStop {
		return m.root
	}
	second := machine{
		data: m.data, sidecar: m.sidecar, buffers: m.sidecar, mode: Objects, root: m.root, lim: m.lim,
		trace: &trace{offset: m.at, index: index},
	}
	if second.run() != nil || !second.trace.found || second.stack[0] != second.trace.word {
		return m.root + "…" // the stream is broken further on: there is no value to speak of
	}
	return m.root + second.trace.shown()
}

// shown is the path as it goes into a message.
func (t *trace) shown() string {
	if len(t.path) > maxPath {
		return t.path[:maxPath] + "…"
	}
	return t.path
}

// before and after frame the instruction at an offset.
func (t *trace) before(m *machine, op byte) {
	if t == nil || m.at != t.offset || t.found {
		return
	}
	switch {
	case t.index < len(m.stack):
		t.word, t.found = m.stack[t.index], true
	case countedKind(op) != 0:
		t.word, t.found = countedWord(op, m.at), true
	}
}

// lookedUp notes that the running instruction looks up module and name.
func (t *trace) lookedUp(m *machine, module, name string) {
	if t != nil && t.offset < 0 && t.module == module && t.name == name {
		t.offset = m.at
	}
}

func (t *trace) after(m *machine) {
	if t != nil && m.at == t.offset && !t.found && len(m.stack) > 0 {
		t.word, t.found = m.stack[len(m.stack)-1], true
	}
}

// taken notes that container took items; step is how the i-th is reached from it.
func (t *trace) taken(m *machine, items []word, container word, step func(i int) (text string, key []byte)) {
	if t == nil || !t.found {
		return
	}
	for i, w := range items {
		if w == t.word {
			text, key := step(i)
			t.word, t.tail, t.key = container, t.path, key
			if t.path = text + t.path; len(t.path) > 2*maxPath {
				t.path = t.path[:2*maxPath]
			}
			return
		}
	}
}

// became notes that a call took callee and args and gave made: the value is now somewhere in that.
func (t *trace) became(made word, parts ...word) {
	if t == nil || !t.found {
		return
	}
	for _, w := range parts {
		if w == t.word {
			t.word, t.path, t.key, t.tail = made, "", nil, ""
		}
	}
}

// state notes that a dict became the attributes of an object.
func (t *trace) state(object, dict word) {
	if t == nil || !t.found || t.word != dict {
		return
	}
	if identifier(t.key) {
		t.path = "." + string(t.key) + t.tail
	}
	t.word, t.key = object, nil
}

func identifier(text []byte) bool {
	for i, c := range text {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return len(text) > 0 && len(text) <= maxKey
}

// Steps of the containers.

func position(from int) func(int) (string, []byte) {
	return func(i int) (string, []byte) { return "[" + strconv.Itoa(from+i) + "]", nil }
}

func member(int) (string, []byte) { return "{…}", nil }

func (m *machine) entry(items []word) func(int) (string, []byte) {
	return func(i int) (string, []byte) {
		if i%2 == 0 {
			return ".keys()", nil
		}
		k := items[i-1]
		if k.kind() == kindStr {
			return "[" + quote(m.text(k)) + "]", m.text(k)
		}
		return "[" + m.keyText(k) + "]", nil
	}
}

// keyText is a dict key as Python would write it, as far as that is short.
func (m *machine) keyText(w word) string {
	switch w.kind() {
	case kindBytes:
		return "b" + quote(m.text(w))
	case kindBool:
		if v, _, _ := m.integer(w); v == 0 {
			return "False"
		}
		return "True"
	case kindNone:
		return "None"
	case kindInt:
		if v, _, ok := m.integer(w); ok {
			return strconv.FormatInt(v, 10)
		}
	}
	return "…"
}

// quote writes text in single quotes with everything that is not plain ASCII escaped: it goes to terminals.
func quote(text []byte) string {
	cut := ""
	if len(text) > maxKey {
		text, cut = text[:maxKey], "…"
	}
	q := strconv.QuoteToASCII(string(text))
	q = strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
	return "'" + strings.ReplaceAll(q, "'", `\'`) + cut + "'"
}

// pushed is the index of what the running instruction would push.
const pushed = 1 << 40

// refuse is the refusal of the value that the running instruction would push.
func (m *machine) refuse(typ, reason string) error { return m.refuseAt(pushed, typ, reason) }

// refuseAt is the refusal of the value at an index of the stack.
func (m *machine) refuseAt(index int, typ, reason string) error {
	e := &RefusedError{Type: typ, Path: m.locate(index), Reason: reason}
	switch m.mode {
	case Primitives:
		e.Add = "remote-result-mode=data-only"
	case DataOnly:
		e.Add = "remote-result-mode=objects"
	}
	if reason == "" {
		e.Reason = "which remote-result-mode=" + string(m.mode) + " does not let through"
	}
	return e
}

// refuseGadget is a refusal that only remote-result-guard=false lifts.
func (m *machine) refuseGadget(index int, typ, reason string) error {
	return &RefusedError{Type: typ, Path: m.locate(index), Reason: reason, Add: "remote-result-guard=false"}
}

// over is the refusal of what passes a budget; no mode lifts it.
func (m *machine) over(what string, limit int64, unit string) error {
	return &RefusedError{Type: what, Path: m.root, Reason: fmt.Sprintf("more than the limit of %d %s", limit, unit)}
}
