package unpickle

import (
	"hash/maphash"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Hashes of ipaddress's types, which its Python code makes of numbers that the sender chose.

// hashAddress is for the addresses of ipaddress: version 4 hashes a text that shows the number, version 6 a tuple of number and scope.
func (m *machine) hashAddress(w word) (h uint64, cost int64, f fate) {
	m.work += 60
	if w.kind() == kindInt {
		v, _, _ := m.integer(w)
		return uint64(v)*xxPrime2 + xxPrime5, 100, random
	}
	a, err := netip.ParseAddr(string(m.text(w)))
	if err != nil {
		return 0, 100, chosen
	}
	scope := uint64(hashNone)
	if a.Zone() != "" {
		scope = maphash.String(seed, a.Zone())
	}
	return mixed(hashAddressNumber(a), scope), 100, known
}

// hashNetwork is the hash of "address/length", a network or an interface.
func hashNetwork(k kind, text []byte) (h uint64, f fate) {
	address, length, _ := strings.Cut(string(text), "/")
	a, err := netip.ParseAddr(address)
	n, err2 := strconv.Atoi(length)
	if err != nil || err2 != nil {
		return 0, chosen
	}
	base := netip.PrefixFrom(a.WithZone(""), n).Masked().Addr()
	if k == kindInterface {
		return mixed(hashAddressNumber(a), hashInt(int64(n)), hashAddressNumber(base)), known
	}
	number := base.AsSlice() // and the mask
	for i := range number {
		number[i] ^= uint8(uint16(0xff00) >> min(8, max(0, n-8*i)))
	}
	return hashUnsigned(number), known
}

func hashAddressNumber(a netip.Addr) uint64 { return hashUnsigned(a.AsSlice()) }

// hashUnsigned hashes a big-endian number.
func hashUnsigned(number []byte) uint64 {
	little := append([]byte{0}, number...) // a sign
	slices.Reverse(little)
	return hashBig(little)
}
