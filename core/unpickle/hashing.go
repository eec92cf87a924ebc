package unpickle

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// fate says what is known of a key's hash.
type fate uint8

const (
	unhashable fate = iota
	random          // keyed with the loading process's secret, or its addresses: the sender cannot aim
	known           // computed here as CPython would, but for secrets in it, for which something stands
	chosen          // the sender could aim, but the hash is not computed here
)

// Constants of Python/pyhash.c, Objects/tupleobject.c and Objects/setobject.c (64 bits).
const (
	hashBits  = 61
	hashMod   = 1<<hashBits - 1
	hashInf   = 314159
	hashImag  = 1000003
	hashNone  = 0xfca86420 // since 3.12; an address before
	xxPrime1  = 11400714785074694791
	xxPrime2  = 14029467366897019727
	xxPrime5  = 2870177450012600261
	tupleTail = 3527539
)

// hash computes CPython's hash of a value that is to be a key. cost is its expanded size in elements.
func (m *machine) hash(w word) (h uint64, cost int64, f fate) {
	m.work++ // counted on the way down, so that a tuple reached twice counts twice and the recursion ends at the budget
	switch w.kind() {
	case kindStr, kindBytes:
		m.work += m.reading(w)
		return m.secret(w), 1, random
	case kindPath:
		m.work += 8
		for _, part := range m.args(w) {
			m.work += 1 + m.reading(part)
			h = (h ^ m.secret(part)) * xxPrime1
		}
		return h, 50, random
	case kindEllipsis:
		return xxPrime5, 1, random
	case kindDate:
		return m.secret(m.args(w)[0]), 1, random
	case kindAddress:
		return m.hashAddress(m.args(w)[0])
	case kindNone:
		return hashNone, 1, known
	case kindBool, kindInt:
		v, raw, ok := m.integer(w)
		if !ok {
			m.work += int64(len(raw) / 8)
			return hashBig(raw), 1 + int64(len(raw)/8), known
		}
		return hashInt(v), 1, known
	case kindFloat:
		if h, cost, f = hashFloatKey(m.float(w)); f == random {
			h = m.identity(w)
		}
		return h, cost, f
	case kindTuple, kindStructTime:
		return m.hashTuple(m.visible(w))
	case kindFrozenSet:
		return m.hashFrozenSet(m.args(w))
	case kindDateTime, kindTime:
		return m.hashMoment(w)
	case kindTimedelta:
		return m.hashTuple(m.args(w))
	case kindTimezone:
		return m.hash(m.args(w)[0])
	case kindUUID, kindFraction, kindDecimal, kindComplex:
		return m.hashNumber(w)
	case kindNetwork, kindInterface:
		m.work += 150
		h, f = hashNetwork(w.kind(), m.text(m.args(w)[0]))
		return h, 400, f
	case kindRange:
		return 0, 5, chosen
	case kindZone:
		return m.identity(w), 1, random
	case kindObject, kindClass, kindGlobal:
		return m.identity(w), 1, random // mode Objects: classes of the application hash as they like
	}
	return 0, 0, unhashable
}

// seed is this process's own secret.
var seed = maphash.MakeSeed()

// secret stands for CPython's hash of a text, which is keyed with a secret of the application's: nobody can tell what it is, but it is the
// same for equal texts. So tuples that hold the same text and numbers of one hash have one hash.
func (m *machine) secret(w word) uint64 {
	if m.data[w.ref()] == opNextBuffer {
		return m.identity(w)
	}
	return maphash.Bytes(seed, m.text(w))
}

// identity stands for the hash of what hashes by its address.
func (m *machine) identity(w word) uint64 { return (uint64(w) + xxPrime5) * xxPrime2 }

// mixed is the hash of a tuple of values that have these.
func mixed(lanes ...uint64) uint64 {
	acc := uint64(xxPrime5)
	for _, lane := range lanes {
		acc = bits.RotateLeft64(acc+lane*xxPrime2, 31) * xxPrime1
	}
	acc += uint64(len(lanes)) ^ (xxPrime5 ^ tupleTail)
	if acc == ^uint64(0) {
		acc = 1546275796
	}
	return acc
}

// visible are the items that a tuple, or the tuple that a struct_time is, hashes and compares.
func (m *machine) visible(w word) []word {
	items := m.args(w)
	if w.kind() == kindStructTime {
		items = m.args(items[0])
		return items[:min(9, len(items))]
	}
	return items
}

// hashTuple combines the hashes of the items. That some of them depend on a secret does not keep a sender from aiming the others: the hash
// is known, but for the secret, if any item's is.
func (m *machine) hashTuple(items []word) (h uint64, cost int64, f fate) {
	acc := uint64(xxPrime5)
	cost, f = 1, random
	if len(items) == 0 {
		f = known
	}
	for _, w := range items {
		lane, c, lf := m.hash(w)
		cost += c
		if f = combined(f, lf); f == unhashable {
			return 0, cost, f
		}
		if m.overworked() {
			return 0, cost, chosen
		}
		acc = bits.RotateLeft64(acc+lane*xxPrime2, 31) * xxPrime1
	}
	acc += uint64(len(items)) ^ (xxPrime5 ^ tupleTail)
	if acc == ^uint64(0) {
		acc = 1546275796
	}
	return acc, cost, f
}

// combined is the fate of a hash that is made from hashes of both fates.
func combined(a, b fate) fate {
	if a == unhashable || b == unhashable {
		return unhashable
	}
	return max(a, b) // random < known < chosen
}

func (m *machine) hashFrozenSet(items []word) (h uint64, cost int64, f fate) {
	cost, f = 1, random
	if len(items) == 0 {
		f = known
	}
	members := make([]uint64, 0, len(items))
	m.work += 7 * int64(len(items)) // they are sorted below
	for _, w := range items {
		e, c, ef := m.hash(w)
		cost += c
		if f = combined(f, ef); f == unhashable {
			return 0, cost, f
		}
		if m.overworked() {
			return 0, cost, chosen
		}
		members = append(members, e)
		h ^= ((e ^ 89869747) ^ (e << 16)) * 3644798167
	}
	if f == known && twice(members) {
		f = chosen // perhaps the same member twice: not worth telling apart
	}
	// The empty slots of CPython's table are folded in twice or not at all: they cancel out.
	h ^= uint64(len(items)+1) * 1927868237
	h ^= (h >> 11) ^ (h >> 25)
	h = h*69069 + 907133923
	if h == ^uint64(0) {
		h = 590923713
	}
	return h, cost, f
}

// twice reports whether two of the hashes are equal. It sorts them.
func twice(hashes []uint64) bool {
	slices.Sort(hashes)
	for i, h := range hashes {
		if i > 0 && h == hashes[i-1] {
			return true
		}
	}
	return false
}

// hashMoment is for datetime and time: naive ones hash their bytes with the secret, aware ones their distance from UTC.
func (m *machine) hashMoment(w word) (h uint64, cost int64, f fate) {
	a := m.args(w)
	if m.node(w).flags&flagAware == 0 {
		return m.secret(a[0]), 1, random
	}
	if w.kind() == kindTime || a[1].kind() != kindTimezone {
		return 0, 1, chosen
	}
	d := m.args(m.args(a[1])[0]) // timezone(timedelta(days, seconds, microseconds))
	days, sec, us := momentParts(m.text(a[0]))
	v := [3]int64{}
	for i := range v {
		v[i], _, _ = m.integer(d[i])
	}
	days, sec, us = days-v[0], sec-v[1], us-v[2]
	if us < 0 {
		us, sec = us+1_000_000, sec-1
	}
	for sec < 0 {
		sec, days = sec+86400, days-1
	}
	acc := uint64(xxPrime5)
	for _, lane := range [3]int64{days, sec, us} {
		acc += hashInt(lane) * xxPrime2
		acc = bits.RotateLeft64(acc, 31) * xxPrime1
	}
	acc += 3 ^ (xxPrime5 ^ tupleTail)
	return acc, 4, known
}

// hashNumber is for the numeric types that are made from arguments.
func (m *machine) hashNumber(w word) (h uint64, cost int64, f fate) {
	a := m.args(w)
	switch w.kind() {
	case kindUUID: // in Python's own code, as the next two
		m.work += 8
		h, cost, f = m.hash(a[0])
		return h, cost + 8, f
	case kindComplex:
		re, _, rf := hashFloatKey(m.float(a[0]))
		im, _, imf := hashFloatKey(m.float(a[1]))
		if rf == random || imf == random {
			return m.identity(w), 2, random
		}
		if h = re + hashImag*im; h == ^uint64(0) {
			h = ^uint64(1)
		}
		return h, 2, known
	case kindDecimal:
		if h, cost, f = hashDecimal(m.text(a[0])); f == random {
			h = m.identity(w)
		}
		m.work += cost
		return h, cost, f
	default: // Fraction
		n, d := m.bigInt(a[0]), m.bigInt(a[1])
		m.work += 90 + int64(n.BitLen()+d.BitLen())/8
		mod := big.NewInt(hashMod)
		inv := new(big.Int).ModInverse(d, mod)
		if inv == nil {
			return hashInf, 70, known
		}
		r := new(big.Int).Mul(new(big.Int).Mod(new(big.Int).Abs(n), mod), inv)
		h = r.Mod(r, mod).Uint64()
		return signed(h, n.Sign() < 0), 70 + int64(n.BitLen()+d.BitLen())/8, known
	}
}

func (m *machine) float(w word) float64 {
	return math.Float64frombits(binary.BigEndian.Uint64(m.data[w.ref()+1:]))
}

func (m *machine) bigInt(w word) *big.Int {
	v, raw, ok := m.integer(w)
	if ok {
		return big.NewInt(v)
	}
	be := make([]byte, len(raw))
	for i, c := range raw {
		be[len(raw)-1-i] = c
	}
	n := new(big.Int).SetBytes(be)
	if raw[len(raw)-1]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
	}
	return n
}

// signed puts the sign on a residue; -1 is CPython's error value and becomes -2.
func signed(h uint64, negative bool) uint64 {
	if negative {
		h = -h
	}
	if h == ^uint64(0) {
		h = ^uint64(1)
	}
	return h
}

func hashInt(v int64) uint64 {
	u := uint64(v)
	if v < 0 {
		u = -u
	}
	if u >= hashMod {
		u %= hashMod
	}
	return signed(u, v < 0)
}

// hashBig hashes a little-endian two's complement integer.
func hashBig(raw []byte) uint64 {
	negative := len(raw) > 0 && raw[len(raw)-1]&0x80 != 0
	var x, carry uint64 = 0, 1
	shift := uint(0)
	for len(raw) > 0 {
		var part [8]byte // as a little-endian number of 56 bits
		n := copy(part[:7], raw)
		raw = raw[n:]
		v := binary.LittleEndian.Uint64(part[:])
		if negative { // the magnitude: every bit turned, plus one; there are none beyond the end
			bits := uint(8 * n)
			v = (^v & (1<<bits - 1)) + carry
			carry = v >> bits
			v &= 1<<bits - 1
		}
		if x += rotate61(v, shift); x >= hashMod {
			x -= hashMod
		}
		shift = (shift + 56) % hashBits
	}
	return signed(x, negative)
}

// rotate61 is v * 2^n modulo 2^61 - 1, for v below 2^61.
func rotate61(v uint64, n uint) uint64 {
	return (v<<n)&hashMod | v>>(hashBits-n)
}

// hashFloatKey is _Py_HashDouble.
func hashFloatKey(v float64) (h uint64, cost int64, f fate) {
	if math.IsNaN(v) {
		return 0, 1, random // by address since 3.10
	}
	if math.IsInf(v, 0) {
		return signed(hashInf, v < 0), 1, known
	}
	frac, exp := math.Frexp(math.Abs(v))
	var x uint64
	for frac != 0 {
		x = rotate61(x, 28)
		frac *= 1 << 28
		exp -= 28
		y := uint64(frac)
		frac -= float64(y)
		if x += y; x >= hashMod {
			x -= hashMod
		}
	}
	if exp >= 0 {
		exp %= hashBits
	} else {
		exp = hashBits - 1 - ((-1 - exp) % hashBits)
	}
	return signed(rotate61(x, uint(exp)), v < 0), 1, known
}
