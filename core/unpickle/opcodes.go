package unpickle

import "github.com/nlpodyssey/gopickle/pickle"

// The instructions that are understood, by their names in CPython's pickletools.py. Everything else is refused by name
// (refusedOpcodes) or as unknown.
const (
	opMark            = '('
	opStop            = '.'
	opPop             = '0'
	opPopMark         = '1'
	opBinInt          = 'J'
	opBinInt1         = 'K'
	opBinInt2         = 'M'
	opNone            = 'N'
	opReduce          = 'R'
	opBinUnicode      = 'X'
	opAppend          = 'a'
	opBuild           = 'b'
	opEmptyDict       = '}'
	opAppends         = 'e'
	opBinGet          = 'h'
	opLongBinGet      = 'j'
	opEmptyList       = ']'
	opBinPut          = 'q'
	opLongBinPut      = 'r'
	opSetItem         = 's'
	opTuple           = 't'
	opEmptyTuple      = ')'
	opSetItems        = 'u'
	opBinFloat        = 'G'
	opProto           = 0x80
	opNewObj          = 0x81
	opTuple1          = 0x85
	opTuple2          = 0x86
	opTuple3          = 0x87
	opNewTrue         = 0x88
	opNewFalse        = 0x89
	opLong1           = 0x8a
	opLong4           = 0x8b
	opBinBytes        = 'B'
	opShortBinBytes   = 'C'
	opShortBinUnicode = 0x8c
	opBinUnicode8     = 0x8d
	opBinBytes8       = 0x8e
	opEmptySet        = 0x8f
	opAddItems        = 0x90
	opFrozenSet       = 0x91
	opNewObjEx        = 0x92
	opStackGlobal     = 0x93
	opMemoize         = 0x94
	opFrame           = 0x95
	opByteArray8      = 0x96
	opNextBuffer      = 0x97
	opReadOnlyBuffer  = 0x98
)

// Protocols between which a stream may say it is. 0 and 1 have no PROTO instruction.
const (
	lowestProtocol  = 2
	highestProtocol = pickle.HighestProtocol
)

// refusedOpcodes are CPython's other instructions, with the reason shown.
var refusedOpcodes = map[byte]string{
	'2':  "DUP, which CPython's pickler never writes",
	'F':  "FLOAT, a text instruction of protocol 0",
	'I':  "INT, a text instruction of protocol 0",
	'L':  "LONG, a text instruction of protocol 0",
	'P':  "PERSID: persistent ids name objects of the parent",
	'Q':  "BINPERSID: persistent ids name objects of the parent",
	'S':  "STRING, a text instruction of protocol 0",
	'T':  "BINSTRING of Python 2",
	'U':  "SHORT_BINSTRING of Python 2",
	'V':  "UNICODE, a text instruction of protocol 0",
	'c':  "GLOBAL, a text instruction of protocol 0",
	'd':  "DICT of protocol 0",
	'g':  "GET, a text instruction of protocol 0",
	'i':  "INST, a text instruction of protocol 0",
	'l':  "LIST of protocol 0",
	'o':  "OBJ of protocol 1",
	'p':  "PUT, a text instruction of protocol 0",
	0x82: "EXT1: extension codes name objects by the parent's registry",
	0x83: "EXT2: extension codes name objects by the parent's registry",
	0x84: "EXT4: extension codes name objects by the parent's registry",
}
