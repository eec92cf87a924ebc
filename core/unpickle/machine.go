package unpickle

import (
	"encoding/binary"
	"fmt"
	"sync"
)

// machine runs a stream over kinds instead of objects. Its stack, marks and memo are those of CPython's _pickle.c; what
// that would do with a value is replaced by what has to be known of it.
type machine struct {
	data  []byte
	mode  Mode
	guard bool
	root  string // what the value is called in paths
	lim   Limits

	sidecar []Buffer // that came beside the stream
	buffers []Buffer // those of them that are not taken yet
	largest int64    // bytes of the largest of them

	stack  []word
	marks  []int
	memo   []word
	nodes  []node
	items  []word
	tables []table // keys of the dicts and sets whose hashes are replayed

	globals []global // mode Objects
	work    int64    // elements visited for hashing
	at      int      // offset of the instruction that is running

	exceptions bool   // the root may be the rich form of an exception
	trace      *trace // nil, but in a run that only looks for a value's path
}

// Validate decides whether CPython may load data. guard is meant for mode Objects: false skips the gadget table there and
// nothing else. The error is a *RefusedError or a *MalformedError.
func Validate(data []byte, mode Mode, guard bool, limits Limits) error {
	return ValidateWith(data, nil, mode, guard, limits)
}

// ValidateWith is Validate for a stream with out-of-band buffers, which the unpickler gets in the same order: bytes objects, or
// bytearrays where they are writable. What they hold is looked at by nobody, and is in no budget of Limits.
func ValidateWith(data []byte, buffers []Buffer, mode Mode, guard bool, limits Limits) error {
	switch mode {
	case Primitives, DataOnly, Objects:
	default:
		return fmt.Errorf("unpickle: no such mode %q (one of %s, %s, %s)", mode, Primitives, DataOnly, Objects)
	}
	m := machines.Get().(*machine)
	defer m.giveBack()
	m.data, m.mode, m.guard, m.root, m.lim = data, mode, guard, "result", limits.withDefaults()
	m.buffers, m.sidecar = buffers, buffers
	for _, b := range buffers {
		m.largest = max(m.largest, b.Size)
	}
	return m.validate()
}

// machines keeps the slices of past validations for the next ones.
var machines = sync.Pool{New: func() any { return new(machine) }}

// keepWords is how long a slice may be that is kept.
const keepWords = 1 << 18

// giveBack empties m for the next stream. Nothing of this one stays reachable.
func (m *machine) giveBack() {
	if cap(m.stack) > keepWords || cap(m.memo) > keepWords || cap(m.nodes) > keepWords/2 || cap(m.items) > keepWords {
		return
	}
	*m = machine{
		stack: m.stack[:0], marks: m.marks[:0], memo: m.memo[:0], nodes: m.nodes[:0], items: m.items[:0],
	}
	machines.Put(m)
}

// ValidateException decides whether data is Exception(arguments, attributes), a tuple and a dict of DataOnly values, without state: the one
// form in which what belongs to an exception may be loaded. Its class is in the descriptor, from which alone it is rebuilt
// where the rich form is refused.
func ValidateException(data []byte, limits Limits) error {
	m := machine{data: data, mode: DataOnly, guard: true, root: "exception", lim: limits.withDefaults(), exceptions: true}
	if err := m.validate(); err != nil {
		return err
	}
	if m.stack[0].kind() != kindException {
		return m.refuse("no exception", "")
	}
	return nil
}

func (m *machine) validate() (err error) {
	// No stream is known to get here; if one does, it is refused and the application lives.
	defer func() {
		if r := recover(); r != nil {
			err = m.malformed("the validator failed (%v)", r)
		}
	}()
	if int64(len(m.data)) > m.lim.Bytes {
		return m.over(fmt.Sprintf("%d bytes long", len(m.data)), m.lim.Bytes, "bytes")
	}
	if err := m.run(); err != nil {
		return err
	}
	return m.replayTables()
}

// malformed is an error at the running instruction.
func (m *machine) malformed(format string, args ...any) error {
	return &MalformedError{Offset: m.at, What: fmt.Sprintf(format, args...)}
}

// fence is the stack height below which nothing may be popped: that of the innermost mark.
func (m *machine) fence() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

// run executes the stream. The hot values live in locals; they are stored back before a method needs them.
func (m *machine) run() error {
	data := m.data
	if len(data) < 2 || data[0] != opProto {
		return m.malformed("no PROTO instruction (protocols 0 and 1 have none and are not accepted)")
	}
	if data[1] < lowestProtocol || data[1] > highestProtocol {
		return m.malformed("protocol %d (accepted: %d to %d)", data[1], lowestProtocol, highestProtocol)
	}
	st, memo := m.stack, m.memo
	maxStack, maxMemo, maxOps := m.lim.Stack, m.lim.Memo, m.lim.Opcodes
	frameEnd := 0
	pos := 2
	for ops := int64(0); ; ops++ {
		if pos >= len(data) {
			m.at = len(data)
			return m.malformed("no STOP instruction")
		}
		if len(st) > maxStack || ops > maxOps {
			m.stack = st
			if ops > maxOps {
				return m.over("a stream of too many instructions", maxOps, "instructions")
			}
			return m.over("too wide", int64(maxStack), "values at one time")
		}
		at := pos
		op := data[pos]
		pos++
		switch op {
		case opShortBinUnicode:
			if pos >= len(data) || pos+1+int(data[pos]) > len(data) {
				return m.truncated(at)
			}
			n := int(data[pos])
			if !validText(data[pos+1 : pos+1+n]) {
				return m.badText(at)
			}
			pos += 1 + n
			st = append(st, pack(kindStr, at))
		case opMemoize:
			if len(st) <= m.fence() || len(memo) >= maxMemo {
				m.stack, m.memo, m.at = st, memo, at
				return m.cannotMemoize()
			}
			memo = append(memo, st[len(st)-1])
		case opBinInt1:
			if pos >= len(data) {
				return m.truncated(at)
			}
			pos++
			st = append(st, pack(kindInt, at))
		case opBinInt2:
			if pos+2 > len(data) {
				return m.truncated(at)
			}
			pos += 2
			st = append(st, pack(kindInt, at))
		case opBinInt:
			if pos+4 > len(data) {
				return m.truncated(at)
			}
			pos += 4
			st = append(st, pack(kindInt, at))
		case opBinFloat:
			if pos+8 > len(data) {
				return m.truncated(at)
			}
			pos += 8
			st = append(st, pack(kindFloat, at))
		case opNone:
			st = append(st, pack(kindNone, at))
		case opNewTrue, opNewFalse:
			st = append(st, pack(kindBool, at))
		case opBinGet, opLongBinGet:
			size, i := 1, 0
			if op == opLongBinGet {
				size = 4
			}
			if pos+size > len(data) {
				return m.truncated(at)
			}
			if i = int(data[pos]); size == 4 {
				i = int(binary.LittleEndian.Uint32(data[pos:]))
			}
			pos += size
			if i >= len(memo) {
				m.at = at
				return m.malformed("a reference to memo entry %d of %d", i, len(memo))
			}
			w := memo[i]
			if w.kind() > lastScalar && w.kind() <= lastValue {
				m.nodes[w.ref()].flags |= flagFrozen
			}
			st = append(st, w)
		case opMark:
			if len(m.marks) > 2*m.lim.Depth+2 {
				m.stack = st
				return m.over("nested too deeply", int64(m.lim.Depth), "levels")
			}
			m.marks = append(m.marks, len(st))
		case opEmptyList:
			st = append(st, m.newNode(kindList))
		case opEmptyDict:
			st = append(st, m.newNode(kindDict))
		case opEmptySet:
			st = append(st, m.newNode(kindSet))
		case opEmptyTuple:
			st = append(st, m.newNode(kindTuple))
		case opFrame:
			if pos+8 > len(data) {
				return m.truncated(at)
			}
			size := binary.LittleEndian.Uint64(data[pos:])
			pos += 8
			m.at = at
			if size > uint64(len(data)-pos) {
				return m.malformed("a frame of %d bytes with %d left", size, len(data)-pos)
			}
			if at < frameEnd {
				return m.malformed("a frame within a frame")
			}
			frameEnd = pos + int(size)
		case opStop:
			m.stack, m.memo, m.at = st, memo, at
			return m.stop(pos)
		default:
			m.stack, m.memo, m.at = st, memo, at
			m.trace.before(m, op)
			next, err := m.counted(op, pos)
			if err != nil {
				return err
			}
			if next > 0 {
				st = append(st, pack(countedKind(op), at))
				pos = next
				continue
			}
			if pos, err = m.compound(op, pos); err != nil {
				return err
			}
			m.trace.after(m)
			st, memo = m.stack, m.memo
		}
	}
}

func (m *machine) truncated(at int) error {
	m.at = at
	return m.malformed("the stream ends within an instruction")
}

func (m *machine) badText(at int) error {
	m.at = at
	return m.malformed("text that is not UTF-8")
}

func (m *machine) cannotMemoize() error {
	if len(m.stack) <= m.fence() {
		return m.malformed("nothing to memoize")
	}
	return m.over("a stream of too many memo entries", int64(m.lim.Memo), "entries")
}

// stop checks that the stream left exactly one finished value and ends here.
func (m *machine) stop(pos int) error {
	switch {
	case len(m.marks) != 0 || len(m.stack) != 1:
		return m.malformed("%d values and %d marks left at STOP", len(m.stack), len(m.marks))
	case pos != len(m.data):
		return m.malformed("%d bytes after STOP", len(m.data)-pos)
	case len(m.buffers) != 0:
		return m.malformed("%d buffers left at STOP", len(m.buffers))
	}
	if m.exceptions && m.stack[0].kind() == kindException {
		return nil
	}
	_, err := m.contained(m.stack, 0)
	return err
}

func (m *machine) newNode(k kind) word {
	m.nodes = append(m.nodes, node{kind: k})
	return pack(k, len(m.nodes)-1)
}
