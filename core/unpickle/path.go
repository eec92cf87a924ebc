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

// path names the value at index `at` of the stack, or with at == len(stack) the one that would come next, as Python would
// reach it: result['rows'][3]. It is read off the unfinished containers beneath; what is not known is left out.
func (m *machine) path(at int) string {
	var b strings.Builder
	b.WriteString(m.root)
	marks := m.marks
	for i := 0; i < at && i < len(m.stack); {
		if b.Len() > maxPath {
			b.WriteString("…")
			break
		}
		w := m.stack[i]
		i++
		marked := false
		for len(marks) > 0 && marks[0] <= i {
			marked = marked || marks[0] == i
			marks = marks[1:]
		}
		switch w.kind() {
		case kindList, kindDeque:
			end := m.siblings(i, at, marks)
			fmt.Fprintf(&b, "[%d]", int(m.node(w).n)+end-i)
			i = end
		case kindDict, kindOrderedDict, kindDefaultDict:
			end := m.siblings(i, at, marks)
			if (end-i)%2 == 0 { // the key itself
				b.WriteString(".keys()")
			} else {
				b.WriteString("[" + m.keyText(m.stack[end-1]) + "]")
			}
			i = end
		case kindSet:
			end := m.siblings(i, at, marks)
			b.WriteString("{…}")
			i = end
		case kindObject:
			if !marked && i < at && i < len(m.stack) && m.stack[i].kind() == kindDict { // the state that BUILD will set
				i++
				for len(marks) > 0 && marks[0] <= i {
					marks = marks[1:]
				}
				if end := m.siblings(i, at, marks); (end-i)%2 == 1 {
					b.WriteString("." + m.attributeText(m.stack[end-1]))
					i = end
				}
			}
		}
	}
	return b.String()
}

// siblings returns where the finished values from i on end: before the container that holds the value at `at`. An
// unfinished container is one with something of its own above it: another mark, or the wanted value itself.
func (m *machine) siblings(i, at int, marks []int) int {
	end := min(at, len(m.stack))
	if len(marks) == 0 {
		return end
	}
	// The container that the next mark belongs to is itself the item that is being filled; a mark without a container (of a
	// long tuple or a frozenset) is that item.
	next := marks[0]
	if next > i && next-1 < end && growable(m.stack[next-1].kind()) {
		next--
	}
	return max(i, min(end, next))
}

func growable(k kind) bool {
	switch k {
	case kindList, kindDeque, kindDict, kindOrderedDict, kindDefaultDict, kindSet, kindObject:
		return true
	}
	return false
}

// keyText is a dict key as Python would write it, shortened.
func (m *machine) keyText(w word) string {
	switch w.kind() {
	case kindStr:
		return quote(m.text(w))
	case kindBytes:
		return "b" + quote(m.text(w))
	case kindInt, kindBool:
		if v, _, ok := m.integer(w); ok {
			return strconv.FormatInt(v, 10)
		}
	}
	return "…"
}

// attributeText is the name of an attribute, quoted where it is none.
func (m *machine) attributeText(w word) string {
	if w.kind() != kindStr {
		return "…"
	}
	text := m.text(w)
	for i, c := range text {
		letter := c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') || i > maxKey {
			return quote(text)
		}
	}
	return string(text)
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

// refuse is the refusal of the value that the running instruction would push.
func (m *machine) refuse(typ, reason string) error { return m.refuseAt(len(m.stack), typ, reason) }

// refuseAt is the refusal of the value at an index of the stack.
func (m *machine) refuseAt(at int, typ, reason string) error {
	e := &RefusedError{Type: typ, Path: m.path(at), Reason: reason}
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
