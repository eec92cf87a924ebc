package unpickle

import "encoding/binary"

// word is one value of the abstract machine: its kind in the low byte, and above bit 32 a reference: for a scalar the offset
// of its instruction in the stream (so that it can be read again when it matters), for the rest an index.
// Packing keeps the stack and the memo at eight bytes an entry and free of pointers.
type word uint64

type kind uint8

// The order matters: scalars, then kinds with a node, then those that are no values of their own.
const (
	kindNone kind = iota + 1
	kindBool
	kindInt
	kindFloat
	kindStr
	kindBytes
	kindEllipsis
	kindByteArray
	lastScalar = kindByteArray

	kindTuple kind = iota + 8
	kindList
	kindDict
	kindSet
	kindFrozenSet
	kindOrderedDict
	kindDefaultDict
	kindCounter
	kindDeque
	kindComplex
	kindRange
	kindSlice
	kindPath
	kindDate
	kindDateTime
	kindTime
	kindTimedelta
	kindTimezone
	kindZone
	kindStructTime
	kindDecimal
	kindFraction
	kindUUID
	kindAddress
	kindNetwork
	kindInterface
	kindException
	kindObject // mode Objects: an instance of a class of the application's
	lastValue  = kindObject

	kindClass      kind = iota + 16 // reference: index in classes
	kindGlobal                      // mode Objects: a class or function that is in no table
	kindZoneMaker                   // ZoneInfo._unpickle
	kindUUIDShell                   // a UUID before its BUILD
	kindSpecialTup                  // a tuple that holds one of these
)

// longScalar marks a text, bytes or int whose instruction may hold more than 255 bytes: it costs more to hash than a step.
const longScalar word = 1 << 8

func (w word) kind() kind  { return kind(w) }
func (w word) ref() uint32 { return uint32(w >> 32) }

func pack(k kind, ref int) word { return word(uint64(uint32(ref))<<32 | uint64(k)) }

// node is what has to be known of a value that is no scalar.
type node struct {
	start uint32 // tuple, leaf: first of its items in machine.items; small dict: of its key, value pairs
	n     uint32 // items, or pairs of a dict, or members of a set
	keys  int32  // dict, set: 1 + index in machine.tables, 0 none; tuple: its expanded size, as far as that is below maxSize
	depth uint16
	kind  kind
	flags uint8
}

const (
	flagFrozen uint8 = 1 << iota // referred to by a memo reference: must not change any more
	flagAware                    // datetime, time: has a time zone
	flagKnown                    // tuple: is a key by its flags alone, whose hash the sender can aim, perhaps but for a secret in it
	flagRandom                   // tuple: is a key by its flags alone, whose hash depends on nothing but secrets
)

// maxSize is where the expanded size of a tuple stops to be counted: far above every budget.
const maxSize = 1 << 30

// smallDict is how many pairs a dict may have for its items to be kept (states of struct_time and UUID need them).
const smallDict = 2

// integer reads a scalar int back. ok is false where it needs more than 64 bits; then raw has its two's complement.
func (m *machine) integer(w word) (v int64, raw []byte, ok bool) {
	p := m.data[w.ref():]
	switch p[0] {
	case opNewTrue:
		return 1, nil, true
	case opNewFalse:
		return 0, nil, true
	case opBinInt1:
		return int64(p[1]), nil, true
	case opBinInt2:
		return int64(binary.LittleEndian.Uint16(p[1:])), nil, true
	case opBinInt:
		return int64(int32(binary.LittleEndian.Uint32(p[1:]))), nil, true
	case opLong1:
		raw = p[2 : 2+int(p[1])]
	default: // LONG4
		raw = p[5 : 5+int(binary.LittleEndian.Uint32(p[1:]))]
	}
	if len(raw) > 8 {
		return 0, raw, false
	}
	var u uint64
	for i := len(raw) - 1; i >= 0; i-- {
		u = u<<8 | uint64(raw[i])
	}
	if n := len(raw); n > 0 && n < 8 && raw[n-1]&0x80 != 0 {
		u |= ^uint64(0) << (8 * n)
	}
	return int64(u), raw, true
}

// text reads a scalar str or bytes back. Those of a buffer are not at hand: they are longer than any text that is looked into.
func (m *machine) text(w word) []byte {
	p := m.data[w.ref():]
	switch p[0] {
	case opShortBinUnicode, opShortBinBytes:
		return p[2 : 2+int(p[1])]
	case opBinUnicode, opBinBytes:
		return p[5 : 5+int(binary.LittleEndian.Uint32(p[1:]))]
	case opNextBuffer:
		return nil
	default:
		return p[9 : 9+int(binary.LittleEndian.Uint64(p[1:]))]
	}
}

// within reports whether w is an int between lo and hi.
func (m *machine) within(w word, lo, hi int64) bool {
	if w.kind() != kindInt {
		return false
	}
	v, _, ok := m.integer(w)
	return ok && v >= lo && v <= hi
}

// bigBits is an upper bound of the bits of an int, and whether it is below zero.
func (m *machine) bigBits(w word) (bits int64, negative bool) {
	v, raw, ok := m.integer(w)
	if !ok {
		return int64(len(raw)) * 8, raw[len(raw)-1]&0x80 != 0
	}
	return 64, v < 0
}

func (m *machine) node(w word) *node { return &m.nodes[w.ref()] }

// args are the items of a tuple, or the arguments that a leaf was made from.
func (m *machine) args(w word) []word {
	n := m.node(w)
	return m.items[n.start : n.start+n.n]
}
