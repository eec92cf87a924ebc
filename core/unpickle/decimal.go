package unpickle

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// decimalParts splits what str(Decimal) writes: sign, digits with perhaps a point, exponent; or NaN, sNaN, Infinity.
type decimalParts struct {
	negative    bool
	whole, rest []byte // digits before and after the point
	exponent    int64
	special     byte // 0, 'I', 'N', 'S'
}

// maxExponent keeps clear of libmpdec's own bound, 999999999999999999, whatever the number of digits.
const maxExponent = 999_999_999_990_000_000

func parseDecimal(b []byte, maxDigits int) (d decimalParts, ok bool) {
	if len(b) > 0 && b[0] == '-' {
		d.negative, b = true, b[1:]
	}
	switch {
	case string(b) == "Infinity":
		d.special = 'I'
		return d, true
	case len(b) >= 3 && string(b[:3]) == "NaN":
		d.special, b = 'N', b[3:]
		return d, digits(b) == len(b) && len(b) <= maxDigits
	case len(b) >= 4 && string(b[:4]) == "sNaN":
		d.special, b = 'S', b[4:]
		return d, digits(b) == len(b) && len(b) <= maxDigits
	}
	n := digits(b)
	d.whole, b = b[:n], b[n:]
	if len(b) > 0 && b[0] == '.' {
		n = digits(b[1:])
		d.rest, b = b[1:1+n], b[1+n:]
		if n == 0 {
			return d, false
		}
	}
	if len(d.whole) == 0 || len(d.whole)+len(d.rest) > maxDigits {
		return d, false
	}
	if len(b) == 0 {
		return d, true
	}
	if b[0] != 'E' || len(b) < 3 || b[1] != '+' && b[1] != '-' || digits(b[2:]) != len(b)-2 {
		return d, false
	}
	e, err := strconv.ParseInt(string(b[1:]), 10, 64)
	d.exponent = e
	return d, err == nil && e <= maxExponent && e >= -maxExponent
}

// digits is how many ASCII digits b begins with.
func digits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}

func (m *machine) decimalArgs(args []word) bool {
	if len(args) != 1 || args[0].kind() != kindStr {
		return false
	}
	_, ok := parseDecimal(m.text(args[0]), m.lim.Digits)
	return ok
}

// hashDecimal is the hash that a Decimal shares with the int or Fraction it equals: coefficient * 10^exponent modulo 2^61-1.
func hashDecimal(text []byte) (h uint64, cost int64, f fate) {
	d, _ := parseDecimal(text, len(text))
	cost = 1 + int64(len(text)/8)
	switch d.special {
	case 'I':
		return signed(hashInf, d.negative), cost, known
	case 'N':
		return 0, cost, random
	case 'S':
		return 0, cost, unhashable
	}
	var x uint64
	for _, part := range [2][]byte{d.whole, d.rest} {
		for len(part) > 0 {
			n := min(len(part), 17)
			v, scale := uint64(0), uint64(1)
			for _, c := range part[:n] {
				v, scale = v*10+uint64(c-'0'), scale*10
			}
			part = part[n:]
			if x = mulMod(x, scale) + v; x >= hashMod {
				x -= hashMod
			}
		}
	}
	exponent := d.exponent - int64(len(d.rest))
	base := uint64(10)
	if exponent < 0 {
		base, exponent = inverse10, -exponent
	}
	for ; exponent > 0; exponent >>= 1 {
		if exponent&1 != 0 {
			x = mulMod(x, base)
		}
		base = mulMod(base, base)
	}
	return signed(x, d.negative), cost, known
}

// inverse10 is the number whose product with 10 is 1 modulo 2^61-1.
const inverse10 = 2075258708292324556

// mulMod is a*b modulo 2^61-1, for factors below that: what is above bit 61 counts once more at the bottom.
func mulMod(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	x := lo&hashMod + (lo>>hashBits | hi<<(64-hashBits))
	if x >= hashMod {
		x -= hashMod
	}
	return x
}

// momentParts are what an aware datetime's hash is made from: proleptic ordinal, second of the day, microsecond.
func momentParts(b []byte) (days, seconds, us int64) {
	year, month := int(binary.BigEndian.Uint16(b)), b[2]&0x7f
	y := int64(year - 1)
	days = y*365 + y/4 - y/100 + y/400 + int64(b[3])
	for i := byte(1); i < month; i++ {
		days += int64(daysIn(year, i))
	}
	seconds = int64(b[4])*3600 + int64(b[5])*60 + int64(b[6])
	return days, seconds, int64(b[7])<<16 | int64(b[8])<<8 | int64(b[9])
}
