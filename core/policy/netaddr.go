package policy

import (
	"net/netip"
	"strconv"
	"strings"
)

// parseAddr reads an address in any spelling that the C library takes for one: dotted, IPv6 with or without a zone or
// brackets, and IPv4 in decimal, octal or hexadecimal with one to four parts (inet_aton).
func parseAddr(host string) (netip.Addr, bool) {
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	if host == "" || !addressByte(host[0]) {
		return netip.Addr{}, false
	}
	if a, err := netip.ParseAddr(host); err == nil {
		return a.WithZone(""), true
	}
	return parseLegacy(host)
}

// addressByte tells what an address may begin with; it spares names the parsers.
func addressByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || c == ':'
}

// Address reads an address in any spelling that the C library takes for one.
func Address(host string) (netip.Addr, bool) { return parseAddr(host) }

// parseLegacy is inet_aton: each part may be 0x…, 0… or decimal, the last one fills the bytes that are left.
func parseLegacy(host string) (netip.Addr, bool) {
	if host[0] < '0' || host[0] > '9' || len(host) > 64 {
		return netip.Addr{}, false
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, p := range parts {
		n, ok := legacyNumber(p)
		last := i == len(parts)-1
		switch {
		case !ok, !last && n > 0xff:
			return netip.Addr{}, false
		case !last:
			value |= n << (24 - 8*i)
		case n >= 1<<(32-8*i):
			return netip.Addr{}, false
		default:
			value |= n
		}
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

func legacyNumber(s string) (uint64, bool) {
	base := 10
	switch {
	case strings.HasPrefix(s, "0x"), strings.HasPrefix(s, "0X"):
		s, base = s[2:], 16
	case len(s) > 1 && s[0] == '0':
		s, base = s[1:], 8
	}
	if s == "" || s[0] == '+' || s[0] == '-' || strings.Contains(s, "_") {
		return 0, false
	}
	n, err := strconv.ParseUint(s, base, 33)
	return n, err == nil
}

var (
	nat64    = netip.MustParsePrefix("64:ff9b::/96")
	sixToFor = netip.MustParsePrefix("2002::/16")
	compat   = netip.MustParsePrefix("::/96")
)

// unfold returns the IPv4 address that an IPv6 address carries: mapped (::ffff:1.2.3.4), 6to4, NAT64 and the old
// compatible form. Other addresses come back as they are.
func unfold(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	if a.Is4In6() {
		return a.Unmap()
	}
	b := a.As16()
	switch {
	case nat64.Contains(a), compat.Contains(a) && (b[12]|b[13]|b[14]) != 0:
		return netip.AddrFrom4([4]byte(b[12:16]))
	case sixToFor.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}
