package unpickle

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// countedKind is the kind that an instruction with a counted argument pushes, 0 for other instructions.
func countedKind(op byte) kind {
	switch op {
	case opBinUnicode, opBinUnicode8:
		return kindStr
	case opShortBinBytes, opBinBytes, opBinBytes8:
		return kindBytes
	case opByteArray8:
		return kindByteArray
	case opLong1, opLong4:
		return kindInt
	}
	return 0
}

// countedWord is the word of an instruction with a counted argument.
func countedWord(op byte, at int) word {
	w := pack(countedKind(op), at)
	if op != opShortBinBytes && op != opByteArray8 {
		w |= longScalar
	}
	return w
}

// counted runs an instruction whose argument starts with its own length. It returns where the next instruction begins, 0
// where op is of another sort.
func (m *machine) counted(op byte, pos int) (next int, err error) {
	k := countedKind(op)
	if k == 0 {
		return 0, nil
	}
	at := pos - 1
	width := 1
	switch op {
	case opBinUnicode, opBinBytes, opLong4:
		width = 4
	case opBinUnicode8, opBinBytes8, opByteArray8:
		width = 8
	}
	left := len(m.data) - pos - width
	if left < 0 {
		return 0, m.truncated()
	}
	var n uint64
	switch width {
	case 1:
		n = uint64(m.data[pos])
	case 4:
		n = uint64(binary.LittleEndian.Uint32(m.data[pos:]))
	default:
		n = binary.LittleEndian.Uint64(m.data[pos:])
	}
	if n > uint64(left) {
		return 0, m.truncated()
	}
	next = pos + width + int(n)
	m.at = at
	switch k {
	case kindStr:
		if !validText(m.data[pos+width : next]) {
			return 0, m.malformed("text that is not UTF-8")
		}
	case kindByteArray:
		if m.mode == Primitives {
			return 0, m.refuse("a bytearray", "")
		}
	case kindInt:
		// A length with the sign bit is negative to CPython; it is above every budget here. Two spare bytes: sign, rounding.
		if int64(n)*8 > m.lim.IntBits+16 {
			return 0, m.over(fmt.Sprintf("an integer of %d bits", n*8), m.lim.IntBits, "bits")
		}
	}
	m.stack = append(m.stack, countedWord(op, at))
	return next, nil
}

// shortASCII reports whether the n bytes at from are ASCII, as far as that can be told by two loads. Most keys and words are.
func shortASCII(data []byte, from, n int) bool {
	if n > 16 || from+16 > len(data) {
		return false
	}
	const high = 0x8080808080808080
	low := binary.LittleEndian.Uint64(data[from:]) & high
	if n <= 8 {
		return low<<(64-8*uint(n)) == 0
	}
	return low|binary.LittleEndian.Uint64(data[from+8:])&high<<(128-8*uint(n)) == 0
}

// validText reports whether CPython decodes b as UTF-8 with errors="surrogatepass", as its unpickler does: file names with
// undecodable bytes are such text.
func validText(b []byte) bool {
	for !utf8.Valid(b) {
		i := invalidAt(b)
		// A surrogate, U+D800 to U+DFFF, is ED A0..BF 80..BF.
		if len(b)-i < 3 || b[i] != 0xed || b[i+1] < 0xa0 || b[i+1] > 0xbf || b[i+2] < 0x80 || b[i+2] > 0xbf {
			return false
		}
		b = b[i+3:]
	}
	return true
}

// invalidAt is where the first invalid sequence of b starts.
func invalidAt(b []byte) int {
	for i := 0; i < len(b); {
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(b)
}
