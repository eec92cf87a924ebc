package unpickle

import (
	"encoding/binary"
	"math"
)

// generator writes streams as a pickler might: values of every kind within one another, arguments near the borders of what their
// constructors take, and now and then an instruction that does not belong there. Its choices come from the fuzzer's bytes.
type generator struct {
	choices []byte
	out     []byte
	memo    int
	depth   int
}

// generate turns choices into a stream of protocol 2 to 5.
func generate(choices []byte) []byte {
	g := &generator{choices: choices}
	g.out = append(g.out, opProto, byte(2+g.pick(4)))
	if g.pick(8) == 1 { // the rich form of an exception
		g.call(&classes[classIndex["builtins\x00Exception"]], func() {
			g.op(opMark)
			g.several()
			g.op(opTuple)
		}, func() {
			g.op(opEmptyDict)
			g.fill()
		})
	} else {
		g.value()
	}
	return append(g.out, opStop)
}

// pick is a number below n; 0 where the choices have run out, so that every stream ends.
func (g *generator) pick(n int) int {
	if len(g.choices) == 0 {
		return 0
	}
	c := int(g.choices[0])
	g.choices = g.choices[1:]
	if n > 256 && len(g.choices) > 0 {
		c = c<<8 | int(g.choices[0])
		g.choices = g.choices[1:]
	}
	return c % n
}

func (g *generator) raw(n int) []byte {
	b := make([]byte, n)
	g.choices = g.choices[copy(b, g.choices):]
	return b
}

func (g *generator) op(parts ...byte) { g.out = append(g.out, parts...) }

func (g *generator) text(s string) {
	g.op(opShortBinUnicode, byte(len(s)))
	g.out = append(g.out, s...)
	g.memoize()
}

func (g *generator) bytes(b []byte) {
	g.op(opShortBinBytes, byte(len(b)))
	g.out = append(g.out, b...)
	g.memoize()
}

// memoize may note the last value, in one of the two ways.
func (g *generator) memoize() {
	switch g.pick(4) {
	case 0, 1:
		g.op(opMemoize)
		g.memo++
	case 2:
		if g.memo < 256 {
			g.op(opBinPut, byte(g.memo))
			g.memo++
		}
	}
}

var texts = []string{
	"", "a", "é", "int", "is_safe", "tm_zone", "tm_gmtoff", "_unpickle", "UTC", "Europe/Berlin", "Etc/GMT+5", "a/../b", "0", "-0", "1.5", "1E+10",
	"1e5", "Infinity", "NaN", "sNaN1", "1_0", "9E-999999999999", "10.0.0.0/8", "10.0.0.1/8", "::/0", "fe80::1%eth0", "::ffff:1.2.3.4", "::1/128",
	"1.2.3.4/32", "1.2.3.4/255.0.0.0", "\xed\xb3\xbf", "/a/b", "..", "c:\\x", "os", "system", "builtins", "\x00", "٣",
}

func (g *generator) anyText() {
	if g.pick(3) == 0 {
		g.text(string(g.raw(g.pick(9))))
		return
	}
	g.text(texts[g.pick(len(texts))])
}

func (g *generator) integer() {
	switch g.pick(7) {
	case 0:
		g.op(opBinInt1, byte(g.pick(256)))
	case 1:
		g.op(append([]byte{opBinInt2}, g.raw(2)...)...)
	case 2:
		g.op(append([]byte{opBinInt}, g.raw(4)...)...)
	case 3:
		n := g.pick(20)
		g.op(append([]byte{opLong1, byte(n)}, g.raw(n)...)...)
	case 4:
		borders := []int64{-1, 0, 1, 86399, 86400, 999_999, 1_000_000, -999_999_999, 1 << 31, -1 << 31, 1<<61 - 1, 1 << 62, math.MaxInt64, math.MinInt64, 9999}
		g.op(binary.LittleEndian.AppendUint64([]byte{opLong1, 8}, uint64(borders[g.pick(len(borders))]))...)
	case 5:
		n := g.pick(12)
		g.op(append(binary.LittleEndian.AppendUint32([]byte{opLong4}, uint32(n)), g.raw(n)...)...)
	default:
		g.op(opBinInt1, byte(g.pick(3)))
	}
}

func (g *generator) float() {
	some := []float64{0, math.Copysign(0, -1), 1, -1.5, math.Inf(1), math.Inf(-1), math.NaN(), 5e-324, math.MaxFloat64, 1 << 61}
	v := math.Float64frombits(binary.BigEndian.Uint64(g.raw(8)))
	if g.pick(2) == 0 {
		v = some[g.pick(len(some))]
	}
	g.op(binary.BigEndian.AppendUint64([]byte{opBinFloat}, math.Float64bits(v))...)
}

// moment is the argument of a date, time or datetime: mostly a good one.
func (g *generator) moment(n int) {
	b := g.raw(n)
	if g.pick(8) != 0 {
		at := 0
		if n != 6 {
			b[0], b[2], b[3] = b[0]%40, b[2]&0x80|(1+b[2]%13), 1+b[3]%31
			if n == 4 {
				b[2] &= 0x7f
			}
			at = 4
		}
		if n != 4 {
			b[at], b[at+1], b[at+2], b[at+3] = b[at]&0x80|b[at]%25, b[at+1]%61, b[at+2]%61, b[at+3]%17
		}
	}
	g.bytes(b)
}

func (g *generator) lookup(module, name string) {
	g.text(module)
	g.text(name)
	g.op(opStackGlobal)
	g.memoize()
}

// call writes a class and its arguments.
func (g *generator) call(c *class, arguments ...func()) {
	g.lookup(c.module, c.name)
	g.op(opMark)
	for _, a := range arguments {
		a()
	}
	g.op(opTuple)
	g.memoize()
	g.op(opReduce)
	g.memoize()
}

// made is a value of a listed class.
func (g *generator) made() {
	c := &classes[g.pick(len(classes))]
	switch c.kind {
	case kindComplex:
		g.call(c, g.float, g.float)
	case kindRange:
		g.call(c, g.integer, g.integer, g.integer)
	case kindSlice:
		g.call(c, g.scalar, g.scalar, g.scalar)
	case kindEllipsis:
		g.lookup(c.module, c.name)
	case kindPath:
		g.call(c, g.anyText, g.anyText)
	case kindDate:
		g.call(c, func() { g.moment(4) })
	case kindDateTime, kindTime:
		n := 10
		if c.kind == kindTime {
			n = 6
		}
		if g.pick(2) == 0 {
			g.call(c, func() { g.moment(n) })
			return
		}
		g.call(c, func() { g.moment(n) }, g.zone)
	case kindTimedelta:
		g.delta()
	case kindTimezone:
		g.call(c, g.delta)
	case kindZoneMaker, kindZone:
		g.zone()
	case kindStructTime:
		g.call(c, func() {
			g.op(opMark)
			for range 9 {
				g.integer()
			}
			g.op(opTuple)
		}, func() {
			g.op(opEmptyDict, opMark)
			g.text("tm_zone")
			g.scalar()
			g.text("tm_gmtoff")
			g.integer()
			g.op(opSetItems)
		})
	case kindFraction:
		g.call(c, g.integer, g.integer)
	case kindUUID:
		g.lookup(c.module, c.name)
		g.op(opEmptyTuple, opNewObj)
		g.memoize()
		g.op(opEmptyDict)
		g.text("int")
		g.integer()
		g.op(opSetItem, opBuild)
	case kindDecimal, kindAddress, kindNetwork, kindInterface:
		if c.name == "IPv4Address" {
			g.call(c, g.integer)
			return
		}
		g.call(c, g.anyText)
	case kindOrderedDict:
		g.call(c)
		g.fill()
	case kindDefaultDict:
		g.call(c, func() { f := classes[len(classes)-len(exceptionClasses)-1-g.pick(13)]; g.lookup(f.module, f.name) })
		g.fill()
	case kindCounter:
		g.call(c, func() { g.op(opEmptyDict); g.fill() })
	case kindDeque:
		g.call(c, func() { g.op(opEmptyTuple) }, g.integer)
		g.op(opMark)
		g.several()
		g.op(opAppends)
	case kindException:
		g.call(c, g.value)
	default:
		g.lookup(c.module, c.name)
	}
}

func (g *generator) delta() {
	g.call(&classes[classIndex["datetime\x00timedelta"]], func() { g.op(opBinInt1, byte(g.pick(3))) }, g.integer, g.integer)
}

func (g *generator) zone() {
	if g.pick(2) == 0 {
		g.call(&classes[classIndex["datetime\x00timezone"]], g.delta)
		return
	}
	g.lookup("builtins", "getattr")
	g.lookup("zoneinfo", "ZoneInfo")
	g.text("_unpickle")
	g.op(opTuple2, opReduce)
	g.memoize()
	g.anyText()
	g.op(opBinInt1, byte(g.pick(3)), opTuple2, opReduce)
}

// fill puts pairs into the dict on the stack.
func (g *generator) fill() {
	g.memoize()
	g.op(opMark)
	for range g.pick(4) {
		g.value()
		g.value()
	}
	g.op(opSetItems)
}

func (g *generator) several() {
	for range g.pick(5) {
		g.value()
	}
}

func (g *generator) scalar() {
	switch g.pick(8) {
	case 0:
		g.op(opNone)
	case 1:
		g.op(opNewTrue + byte(g.pick(2)))
	case 2, 3:
		g.integer()
	case 4:
		g.float()
	case 5:
		g.anyText()
	case 6:
		g.bytes(g.raw(g.pick(12)))
	default:
		n := g.pick(5)
		g.op(append(binary.LittleEndian.AppendUint64([]byte{opByteArray8}, uint64(n)), g.raw(n)...)...)
	}
}

func (g *generator) value() {
	if g.depth > 6 || len(g.choices) == 0 {
		g.scalar()
		return
	}
	g.depth++
	defer func() { g.depth-- }()
	if g.pick(60) == 1 { // what does not belong there
		g.op(byte(g.pick(256)))
	}
	switch g.pick(12) {
	case 0, 1:
		g.scalar()
	case 2, 3, 4:
		g.made()
	case 5:
		if g.memo > 0 {
			g.op(opBinGet, byte(g.pick(min(g.memo, 256))))
			return
		}
		g.scalar()
	case 6:
		g.op(opEmptyList)
		g.memoize()
		g.op(opMark)
		g.several()
		g.op(opAppends)
	case 7:
		g.op(opEmptyDict)
		g.fill()
	case 8:
		g.op(opEmptySet)
		g.memoize()
		g.op(opMark)
		g.several()
		g.op(opAddItems)
	case 9:
		g.op(opMark)
		g.several()
		g.op(opFrozenSet)
		g.memoize()
	case 10:
		n := 1 + g.pick(3)
		for range n {
			g.value()
		}
		g.op(opTuple1 + byte(n-1))
		g.memoize()
	default:
		g.op(opMark)
		g.several()
		g.op(opTuple)
		g.memoize()
	}
}
