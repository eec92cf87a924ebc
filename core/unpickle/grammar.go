package unpickle

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strconv"
)

// Each function says whether args are what CPython dumps for its type, within what the constructor accepts.

func (m *machine) noArgs(args []word) bool { return len(args) == 0 }

func (m *machine) complexArgs(args []word) bool {
	return len(args) == 2 && args[0].kind() == kindFloat && args[1].kind() == kindFloat
}

// rangeArgs: three integers of any size, the step not zero.
func (m *machine) rangeArgs(args []word) bool {
	return len(args) == 3 && args[0].kind() == kindInt && args[1].kind() == kindInt && args[2].kind() == kindInt && !m.isZero(args[2])
}

func (m *machine) isZero(w word) bool {
	v, raw, ok := m.integer(w)
	if !ok {
		return len(bytes.TrimRight(raw, "\x00")) == 0
	}
	return v == 0
}

// sliceArgs: three scalars. A slice of containers is legal Python that nobody means.
func (m *machine) sliceArgs(args []word) bool {
	for _, w := range args {
		if w.kind() > kindBytes {
			return false
		}
	}
	return len(args) == 3
}

// pathArgs: texts; 3.11 and 3.12 dump the parts, 3.13 the whole.
func (m *machine) pathArgs(args []word) bool {
	for _, w := range args {
		if w.kind() != kindStr {
			return false
		}
	}
	return true
}

// dateArgs: four bytes, year (big endian), month, day. The constructor checks the month alone.
func (m *machine) dateArgs(args []word) bool {
	if len(args) != 1 || args[0].kind() != kindBytes {
		return false
	}
	b := m.text(args[0])
	return len(b) == 4 && validDate(b, b[2])
}

func validDate(b []byte, month byte) bool {
	year := int(binary.BigEndian.Uint16(b))
	return year >= 1 && year <= 9999 && month >= 1 && month <= 12 && b[3] >= 1 && int(b[3]) <= daysIn(year, month)
}

func daysIn(year int, month byte) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// dateTimeArgs: ten bytes, a date (the month's top bit is fold) and a time; perhaps a time zone.
func (m *machine) dateTimeArgs(args []word) bool {
	if !m.zoned(args) {
		return false
	}
	b := m.text(args[0])
	return len(b) == 10 && validDate(b, b[2]&0x7f) && validTime(b[4:], b[4])
}

// timeArgs: six bytes, hour (its top bit is fold), minute, second, microsecond (big endian); perhaps a time zone.
func (m *machine) timeArgs(args []word) bool {
	if !m.zoned(args) {
		return false
	}
	b := m.text(args[0])
	return len(b) == 6 && validTime(b, b[0]&0x7f)
}

func (m *machine) zoned(args []word) bool {
	if len(args) == 2 && args[1].kind() != kindTimezone && args[1].kind() != kindZone {
		return false
	}
	return (len(args) == 1 || len(args) == 2) && args[0].kind() == kindBytes
}

func validTime(b []byte, hour byte) bool {
	us := int(b[3])<<16 | int(b[4])<<8 | int(b[5])
	return hour < 24 && b[1] < 60 && b[2] < 60 && us < 1_000_000
}

func (m *machine) timedeltaArgs(args []word) bool {
	return len(args) == 3 && m.within(args[0], -999_999_999, 999_999_999) && m.within(args[1], 0, 86_399) && m.within(args[2], 0, 999_999)
}

// timezoneArgs: a timedelta of less than a day either way, perhaps a name.
func (m *machine) timezoneArgs(args []word) bool {
	if len(args) == 0 || len(args) > 2 || args[0].kind() != kindTimedelta || len(args) == 2 && args[1].kind() != kindStr {
		return false
	}
	d := m.args(args[0])
	minusDay := m.within(d[0], -1, -1) && !(m.isZero(d[1]) && m.isZero(d[2]))
	return minusDay || m.within(d[0], 0, 0)
}

// zoneMakerArgs: getattr(ZoneInfo, "_unpickle"), nothing else.
func (m *machine) zoneMakerArgs(args []word) bool {
	return len(args) == 2 && args[0].kind() == kindClass && classes[args[0].ref()].kind == kindZone &&
		args[1].kind() == kindStr && string(m.text(args[1])) == "_unpickle"
}

// zoneArgs: a key of the time zone database and 0 or 1. A key names a file below the database: no empty, hidden or parent parts.
func (m *machine) zoneArgs(args []word) bool {
	if len(args) != 2 || args[0].kind() != kindStr || !m.within(args[1], 0, 1) {
		return false
	}
	key := m.text(args[0])
	if len(key) == 0 || len(key) > 64 {
		return false
	}
	start := true
	for _, c := range key {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		switch {
		case c == '/' && !start:
			start = true
		case letter, !start && (c == '_' || c == '-' || c == '+'):
			start = false
		default:
			return false
		}
	}
	return !start
}

// structTimeArgs: 9 to 11 integers and the dict of the two fields that the sequence does not show.
func (m *machine) structTimeArgs(args []word) bool {
	if len(args) != 2 || args[0].kind() != kindTuple || args[1].kind() != kindDict {
		return false
	}
	seq := m.args(args[0])
	if len(seq) != 9 {
		return false
	}
	for _, w := range seq {
		if !m.within(w, -1<<31, 1<<31) {
			return false
		}
	}
	fields, ok := m.pairs(args[1])
	if !ok || len(fields) != 4 || !m.isText(fields[0], "tm_zone") || !m.isText(fields[2], "tm_gmtoff") {
		return false
	}
	zone, offset := fields[1], fields[3]
	return (zone.kind() == kindStr || zone.kind() == kindNone) && (offset.kind() == kindNone || m.within(offset, -1<<31, 1<<31))
}

func (m *machine) isText(w word, want string) bool {
	return w.kind() == kindStr && string(m.text(w)) == want
}

// pairs are the keys and values of a small dict.
func (m *machine) pairs(w word) ([]word, bool) {
	n := m.node(w)
	if n.n > smallDict {
		return nil, false
	}
	if n.n == 0 {
		return nil, true
	}
	if int(n.start)+2*int(n.n) > len(m.items) {
		return nil, false
	}
	return m.items[n.start : n.start+2*n.n], true
}

// uuidState: {"int": 0..2^128-1} and perhaps "is_safe": 0 or -1.
func (m *machine) uuidState(w word) (number word, ok bool) {
	if w.kind() != kindDict || m.node(w).flags&flagFrozen != 0 {
		return 0, false
	}
	p, ok := m.pairs(w)
	if !ok || len(p) < 2 || !m.isText(p[0], "int") || !m.unsigned(p[1], 128) {
		return 0, false
	}
	if len(p) == 4 && !(m.isText(p[2], "is_safe") && m.within(p[3], -1, 0)) {
		return 0, false
	}
	return p[1], true
}

// unsigned reports whether w is an int of at most that many bits, not below zero.
func (m *machine) unsigned(w word, bits int) bool {
	if w.kind() != kindInt {
		return false
	}
	v, raw, ok := m.integer(w)
	if ok {
		return v >= 0 && (bits >= 63 || v < 1<<bits)
	}
	used := len(bytes.TrimRight(raw, "\x00"))
	return raw[len(raw)-1]&0x80 == 0 && used*8 <= bits
}

// fractionArgs: numerator and denominator. The constructor divides them by their greatest common divisor: at most
// 64 Kbit each, and the square of their length is charged as work.
func (m *machine) fractionArgs(args []word) bool {
	if len(args) != 2 || args[0].kind() != kindInt || args[1].kind() != kindInt {
		return false
	}
	nbits, _ := m.bigBits(args[0])
	dbits, negative := m.bigBits(args[1])
	if negative || m.isZero(args[1]) || nbits > 1<<16 || dbits > 1<<16 {
		return false
	}
	words := max(nbits, dbits) / 64
	m.work += words * words / 4
	return !m.overworked()
}

func (m *machine) ipv4AddressArgs(args []word) bool {
	return len(args) == 1 && m.unsigned(args[0], 32)
}

func (m *machine) ipv6AddressArgs(args []word) bool {
	return len(args) == 1 && args[0].kind() == kindStr && validIPv6(string(m.text(args[0])))
}

func validIPv6(text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && a.Is6() && len(text) <= 128
}

func (m *machine) ipv4NetworkArgs(args []word) bool   { return m.networkArgs(args, 32, true) }
func (m *machine) ipv6NetworkArgs(args []word) bool   { return m.networkArgs(args, 128, true) }
func (m *machine) ipv4InterfaceArgs(args []word) bool { return m.networkArgs(args, 32, false) }
func (m *machine) ipv6InterfaceArgs(args []word) bool { return m.networkArgs(args, 128, false) }

// networkArgs: "address/length"; of a network the bits beyond the length are zero.
func (m *machine) networkArgs(args []word, bits int, masked bool) bool {
	if len(args) != 1 || args[0].kind() != kindStr {
		return false
	}
	address, length, ok := bytes.Cut(m.text(args[0]), []byte("/"))
	n, err := strconv.ParseUint(string(length), 10, 8)
	if !ok || err != nil || int(n) > bits || len(address) > 128 || strconv.Itoa(int(n)) != string(length) {
		return false
	}
	a, err := netip.ParseAddr(string(address))
	if err != nil || a.BitLen() != bits {
		return false
	}
	return !masked || a.Zone() == "" && netip.PrefixFrom(a, int(n)).Masked().Addr() == a
}

func (m *machine) counterArgs(args []word) bool { return len(args) == 1 && args[0].kind() == kindDict }

// dequeArgs: nothing, or an empty tuple and the greatest length.
func (m *machine) dequeArgs(args []word) bool {
	if len(args) == 0 {
		return true
	}
	return len(args) == 2 && args[0].kind() == kindTuple && m.node(args[0]).n == 0 && m.within(args[1], 0, 1<<62)
}

// defaultDictArgs: nothing, or one of the builtin factories.
func (m *machine) defaultDictArgs(args []word) bool {
	if len(args) == 0 {
		return true
	}
	if len(args) != 1 || args[0].kind() != kindClass {
		return false
	}
	c := &classes[args[0].ref()]
	return c.kind == kindClass || c.kind == kindComplex
}

// exceptionArgs: any in mode Objects. As the rich form of an exception: the arguments and the attributes of what Exception stands for.
func (m *machine) exceptionArgs(args []word) bool {
	if m.exceptions {
		return len(args) == 2 && args[0].kind() == kindTuple && args[1].kind() == kindDict
	}
	for _, w := range args {
		if w.kind() > lastValue {
			return false
		}
	}
	return true
}
