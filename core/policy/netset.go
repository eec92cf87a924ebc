package policy

import "net/netip"

// set is a named set of addresses. An address belongs to one set at most: the table's first match.
type set uint8

const (
	public set = iota // in no named set
	metadata
	loopback
	linkLocal
	private
	unspecified // 0.0.0.0 and ::, this host or all its addresses
	sets        // how many there are
)

// setRow is one network of a set.
type setRow struct {
	prefix netip.Prefix
	set    set
	why    string
}

// setNames are the names that rules use. unspecified has none: it is granted by its own address.
var setNames = map[string]set{"@metadata": metadata, "@loopback": loopback, "@link-local": linkLocal, "@private": private}

// setTable is every named set, the narrower before the wider: an address of @metadata is not one of @link-local, so a
// grant of @link-local does not open the cloud's credentials.
var setTable = []setRow{
	{netip.MustParsePrefix("169.254.169.254/32"), metadata, "AWS, GCP, Azure, OpenStack, DigitalOcean, Oracle"},
	{netip.MustParsePrefix("169.254.169.253/32"), metadata, "AWS resolver"},
	{netip.MustParsePrefix("169.254.170.2/32"), metadata, "AWS ECS task credentials"},
	{netip.MustParsePrefix("169.254.170.23/32"), metadata, "AWS EKS pod identity"},
	{netip.MustParsePrefix("169.254.0.23/32"), metadata, "Tencent Cloud"},
	{netip.MustParsePrefix("100.100.100.200/32"), metadata, "Alibaba Cloud"},
	{netip.MustParsePrefix("192.0.0.192/32"), metadata, "Oracle Cloud classic"},
	{netip.MustParsePrefix("168.63.129.16/32"), metadata, "Azure wire server"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), metadata, "AWS"},
	{netip.MustParsePrefix("fd00:ec2::23/128"), metadata, "AWS EKS pod identity"},
	{netip.MustParsePrefix("fd00:ec2::253/128"), metadata, "AWS resolver"},
	{netip.MustParsePrefix("fd20:ce::254/128"), metadata, "GCP"},
	{netip.MustParsePrefix("fe80::a9fe:a9fe/128"), metadata, "OpenStack"},

	{netip.MustParsePrefix("127.0.0.0/8"), loopback, "RFC 1122"},
	{netip.MustParsePrefix("::1/128"), loopback, "RFC 4291"},

	{netip.MustParsePrefix("169.254.0.0/16"), linkLocal, "RFC 3927"},
	{netip.MustParsePrefix("fe80::/10"), linkLocal, "RFC 4291"},

	{netip.MustParsePrefix("10.0.0.0/8"), private, "RFC 1918"},
	{netip.MustParsePrefix("172.16.0.0/12"), private, "RFC 1918"},
	{netip.MustParsePrefix("192.168.0.0/16"), private, "RFC 1918"},
	{netip.MustParsePrefix("100.64.0.0/10"), private, "carrier-grade NAT, RFC 6598"},
	{netip.MustParsePrefix("fc00::/7"), private, "unique local, RFC 4193"},
	{netip.MustParsePrefix("fec0::/10"), private, "site local, RFC 3879"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), private, "local NAT64, RFC 8215"},

	{netip.MustParsePrefix("0.0.0.0/8"), unspecified, "this host, RFC 1122"},
	{netip.MustParsePrefix("::/128"), unspecified, "RFC 4291"},
}

// setOf returns the set of an unfolded address.
func setOf(a netip.Addr) set {
	for i := range setTable {
		if setTable[i].prefix.Contains(a) {
			return setTable[i].set
		}
	}
	return public
}

// setOfPrefix returns the set that a whole prefix lies in: granting 10.1.0.0/16 is granting a part of @private by its
// own address, granting 0.0.0.0/0 is granting none of the sets.
func setOfPrefix(p netip.Prefix) set {
	for i := range setTable {
		if t := setTable[i].prefix; t.Bits() <= p.Bits() && t.Contains(p.Addr()) {
			return setTable[i].set
		}
	}
	return public
}

// setHolds tells that an address lies in a set by any row, not only by its first match: a DENY of @link-local refuses
// the metadata addresses in it too.
func setHolds(s set, a netip.Addr) bool {
	for i := range setTable {
		if setTable[i].set == s && setTable[i].prefix.Contains(a) {
			return true
		}
	}
	return false
}
