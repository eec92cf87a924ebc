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
	fence  int // height of the innermost mark, below which nothing may be popped; 0 without one
	memo   []word
	nodes  []node
	items  []word
	extra  int      // what some nodes take beyond others: see the table of that name
	tables []table  // keys of the dicts and sets that are hashed as CPython would
	hashes []uint64 // of the table that is replayed
	slots  []uint8  // of that table

	globals     []global // mode Objects
	globalIndex map[string]int
	work        int64 // elements visited for hashing
	at          int   // offset of the instruction that is running

	frameEnd int   // of the last FRAME
	ops      int64 // instructions, where they are counted

	exceptions bool   // the root may be the rich form of an exception
	general    bool   // nothing is run by quick: a test compares
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
const keepWords = 1 << 19

// giveBack empties m for the next stream. Nothing of this one stays reachable.
func (m *machine) giveBack() {
	if cap(m.stack) > keepWords || cap(m.memo) > keepWords || cap(m.nodes) > keepWords/2 || cap(m.items) > keepWords {
		return
	}
	total := 0
	for _, t := range m.tables[:cap(m.tables)] {
		total += cap(t.keys)
	}
	if total > keepWords {
		m.tables = nil
	}
	*m = machine{
		tables: m.tables[:0],
		stack:  m.stack[:0], marks: m.marks[:0], memo: m.memo[:0], nodes: m.nodes[:0], items: m.items[:0], hashes: m.hashes[:0], slots: m.slots[:0],
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

// run executes the stream. What most of a stream is made of is done here, with few locals, so that they stay in registers; the stack
// is stored back before a method needs it. An argument is passed over without a look at whether it is there: that is for the
// checkpoint, before the next instruction.
func (m *machine) run() error {
	data := m.data
	if len(data) < 2 || data[0] != opProto {
		return m.malformed("no PROTO instruction (protocols 0 and 1 have none and are not accepted)")
	}
	if data[1] < lowestProtocol || data[1] > highestProtocol {
		return m.malformed("protocol %d (accepted: %d to %d)", data[1], lowestProtocol, highestProtocol)
	}
	st := m.stack
	pos, checkpoint := 2, 2
	for {
		if pos >= checkpoint {
			m.stack = st
			var err error
			if checkpoint, err = m.checkpoint(pos); err != nil {
				return err
			}
		}
		switch data[pos] {
		case opMemoize:
			if len(st) <= m.fence {
				m.at = pos
				return m.malformed("nothing to memoize")
			}
			m.memo = append(m.memo, st[len(st)-1])
			pos++
			continue
		case opBinGet:
			if pos+1 >= len(data) {
				return m.truncated()
			}
			i := int(data[pos+1])
			if i >= len(m.memo) {
				return m.noEntry(pos, i)
			}
			st = append(st, m.referred(m.memo[i]))
			pos += 2
			continue
		case opLongBinGet:
			if pos+5 > len(data) {
				return m.truncated()
			}
			i := int(binary.LittleEndian.Uint32(data[pos+1:]))
			if i >= len(m.memo) {
				return m.noEntry(pos, i)
			}
			st = append(st, m.referred(m.memo[i]))
			pos += 5
			continue
		case opBinInt1:
			st = append(st, pack(kindInt, pos))
			pos += 2
			continue
		case opBinInt2:
			st = append(st, pack(kindInt, pos))
			pos += 3
			continue
		case opBinInt:
			st = append(st, pack(kindInt, pos))
			pos += 5
			continue
		case opLong1:
			if pos+1 < len(data) && data[pos+1] <= 8 {
				st = append(st, pack(kindInt, pos))
				pos += 2 + int(data[pos+1])
				continue
			}
		case opBinFloat:
			st = append(st, pack(kindFloat, pos))
			pos += 9
			continue
		case opNone:
			st = append(st, pack(kindNone, pos))
			pos++
			continue
		case opNewTrue, opNewFalse:
			st = append(st, pack(kindBool, pos))
			pos++
			continue
		case opShortBinUnicode:
			if pos+2 > len(data) || pos+2+int(data[pos+1]) > len(data) {
				return m.truncated()
			}
			n := int(data[pos+1])
			if !shortASCII(data, pos+2, n) && !validText(data[pos+2:pos+2+n]) {
				m.at = pos
				return m.malformed("text that is not UTF-8")
			}
			w := pack(kindStr, pos)
			st = append(st, w)
			if pos += 2 + n; pos < checkpoint && data[pos] == opMemoize {
				pos++
				m.memo = append(m.memo, w)
			}
			continue
		case opShortBinBytes:
			if pos+2 > len(data) {
				return m.truncated()
			}
			w := pack(kindBytes, pos)
			st = append(st, w)
			if pos += 2 + int(data[pos+1]); pos < checkpoint && data[pos] == opMemoize {
				pos++
				m.memo = append(m.memo, w)
			}
			continue
		case opMark:
			if len(m.marks) > 2*m.lim.Depth+2 {
				return m.over("nested too deeply", int64(m.lim.Depth), "levels")
			}
			m.fence = len(st)
			m.marks = append(m.marks, len(st))
			pos++
			continue
		case opEmptyList, opEmptyDict:
			k := kindList
			if data[pos] == opEmptyDict {
				k = kindDict
			}
			w := m.newNode(k)
			st = append(st, w)
			if pos++; pos < checkpoint && data[pos] == opMemoize {
				pos++
				m.memo = append(m.memo, w)
			}
			continue
		case opEmptySet:
			st = append(st, m.newNode(kindSet))
			m.extra += extra[kindSet]
			pos++
			continue
		case opEmptyTuple:
			st = append(st, m.emptyTuple())
			pos++
			continue
		case opTuple1, opTuple2, opTuple3, opTuple, opAppend, opAppends, opSetItem, opSetItems, opReduce:
			if height, ok := m.quick(data[pos], st); ok {
				st = st[:height]
				pos++
				continue
			}
		case opBuild, opNewObj, opNewObjEx, opStackGlobal, opAddItems, opFrozenSet, opBinUnicode, opLong4, opFrame, opPop: // see below
		case opStop:
			m.stack, m.at = st, pos
			return m.stop(pos + 1)
		}
		m.stack, m.at = st, pos
		next, err := m.step(data[pos], pos+1)
		if err != nil {
			return err
		}
		st, pos = m.stack, next
	}
}

// noEntry is the error of a reference to an entry that the memo does not have.
func (m *machine) noEntry(pos, entry int) error {
	m.at = pos
	return m.malformed("a reference to memo entry %d of %d", entry, len(m.memo))
}

// referred is the value of a memo entry that the stream refers to, which must not change any more.
func (m *machine) referred(w word) word {
	if k := w.kind(); k > lastScalar && k <= lastValue {
		m.nodes[w.ref()].flags |= flagFrozen
	}
	return w
}

// checkpoint looks at everything that may run out before the instruction at pos, and returns up to where it cannot: an instruction
// has at least a byte, and adds at most one value and one memo entry. Where instructions may run out, each is counted.
func (m *machine) checkpoint(pos int) (next int, err error) {
	size := len(m.data)
	counted := int64(size) > m.lim.Opcodes
	if counted {
		m.ops++
	}
	switch {
	case pos > size:
		return 0, m.truncated()
	case pos == size:
		m.at = size
		return 0, m.malformed("no STOP instruction")
	case m.ops > m.lim.Opcodes+1:
		return 0, m.over("a stream of too many instructions", m.lim.Opcodes, "instructions")
	case len(m.stack) > m.lim.Stack:
		return 0, m.over("too wide", int64(m.lim.Stack), "values at one time")
	case len(m.memo) > m.lim.Memo:
		return 0, m.over("a stream of too many memo entries", int64(m.lim.Memo), "entries")
	case len(m.nodes)+m.extra > m.lim.Nodes:
		return 0, m.over("a value of too many containers and objects", int64(m.lim.Nodes), "of them")
	case counted:
		return pos + 1, nil
	}
	nodes := (m.lim.Nodes - len(m.nodes) - m.extra) / nodesAByte
	return min(size, pos+min(m.lim.Stack-len(m.stack), m.lim.Memo-len(m.memo), nodes)+1), nil
}

// nodesAByte is how many nodes a byte of the stream makes at most, extra ones counted: EMPTY_SET is one byte and counts for four.
const nodesAByte = 12

// step runs an instruction that is not worth a place in run. The machine's own fields are in force.
func (m *machine) step(op byte, pos int) (next int, err error) {
	m.trace.before(m, op)
	if next, err = m.counted(op, pos); next > 0 || err != nil {
		return next, err
	}
	if op == opFrame {
		return m.frame(pos)
	}
	if next, err = m.compound(op, pos); err == nil {
		m.trace.after(m)
	}
	return next, err
}

// frame runs FRAME, which says how many bytes belong together and does nothing.
func (m *machine) frame(pos int) (next int, err error) {
	if pos+8 > len(m.data) {
		return 0, m.truncated()
	}
	size := binary.LittleEndian.Uint64(m.data[pos:])
	pos += 8
	if size > uint64(len(m.data)-pos) {
		return 0, m.malformed("a frame of %d bytes with %d left", size, len(m.data)-pos)
	}
	if m.at < m.frameEnd {
		return 0, m.malformed("a frame within a frame")
	}
	m.frameEnd = pos + int(size)
	return pos, nil
}

// truncated is the error of a stream whose last instruction is cut.
func (m *machine) truncated() error {
	m.at = len(m.data)
	return m.malformed("the stream ends within an instruction")
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
