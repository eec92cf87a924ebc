package unpickle

// Mode is how much a result may contain; the value of remote-result-mode= in a profile.
type Mode string

// The modes, from the narrowest to the widest.
const (
	// Primitives: None, bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset.
	Primitives Mode = "primitives"
	// DataOnly adds the value types of the standard library (classes.go). The default.
	DataOnly Mode = "data-only"
	// Objects lets any class through that the gadget table does not name; the unpickler that follows must resolve classes
	// without importing and ask Gadget for the defining module of what it found.
	Objects Mode = "objects"
)

// Limits are the budgets of one validation. A zero field takes its default, a negative one is as zero.
type Limits struct {
	Bytes    int64 // length of the stream
	Opcodes  int64 // instructions
	Stack    int   // values on the stack at one time
	Memo     int   // memo entries
	Depth    int   // containers within containers
	IntBits  int64 // bits of one integer
	Digits   int   // digits of one Decimal
	Nodes    int   // containers and values that are made by calls, the larger ones counted as several; default a quarter of Bytes
	HashWork int64 // elements visited for hashing and comparing keys, beyond what the length of the stream earns
}

// DefaultLimits are what a zero Limits means.
var DefaultLimits = Limits{
	Bytes:    1 << 30,
	Opcodes:  1 << 28,
	Stack:    1 << 25,
	Memo:     1 << 25,
	Depth:    1000,
	IntBits:  1 << 20,
	Digits:   100_000,
	HashWork: 100_000_000,
}

// fewNodes are allowed however short a stream must be.
const fewNodes = 1 << 16

// extra is what a value of a kind takes beyond one node, in nodes of 64 bytes (CPython 3.11, 64 bits): deques come with a block of 64
// slots, sets with a table of 8 entries.
var extra = [256]int{
	kindSet: 3, kindFrozenSet: 3, kindDeque: 11, kindOrderedDict: 2, kindDefaultDict: 1, kindCounter: 1, kindStructTime: 3, kindPath: 2,
	kindNetwork: 2, kindInterface: 5, kindDecimal: 1, kindZone: 2, kindObject: 4,
}

// making is what a value costs to make where that is Python's own code, in steps of 100 ns; what C code makes costs less than to read it.
var making = [256]int64{
	kindPath: 50, kindNetwork: 150, kindInterface: 300, kindAddress: 100, kindCounter: 50, kindUUID: 10, kindFraction: 10,
}

// withDefaults fills the zero fields. Offsets are held in 32 bits, which bounds Bytes whatever the caller wants.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits
	pick64 := func(v *int64, def int64) {
		if *v <= 0 {
			*v = def
		}
	}
	pick := func(v *int, def int) {
		if *v <= 0 {
			*v = def
		}
	}
	pick64(&l.Bytes, d.Bytes)
	pick64(&l.Opcodes, d.Opcodes)
	pick(&l.Stack, d.Stack)
	pick(&l.Memo, d.Memo)
	pick(&l.Depth, d.Depth)
	pick64(&l.IntBits, d.IntBits)
	pick(&l.Digits, d.Digits)
	pick64(&l.HashWork, d.HashWork)
	if l.Bytes > 1<<31 {
		l.Bytes = 1 << 31
	}
	// A byte of the stream may be a container, which takes the application 56 bytes or more, and four may be a text of 76. With this bound
	// a value takes some 30 times Bytes at most.
	pick(&l.Nodes, max(fewNodes, int(l.Bytes/4)))
	if l.Depth > 60_000 {
		l.Depth = 60_000
	}
	return l
}
