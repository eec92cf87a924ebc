package policy

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/nearest"
)

// Protocols and directions are bits, so that `*` and lists are one test.
const (
	protoTCP = 1 << iota
	protoUDP
	protoICMP
	protoAll = protoTCP | protoUDP | protoICMP
)

const (
	dirIn = 1 << iota
	dirOut
	dirAll = dirIn | dirOut
)

var protocols = map[string]uint8{"tcp": protoTCP, "udp": protoUDP, "icmp": protoICMP, "*": protoAll}
var directions = map[string]uint8{"in": dirIn, "out": dirOut, "*": dirAll}

// netRule is one net line.
type netRule struct {
	deny   bool
	protos uint8
	dirs   uint8
	ports  []portRange // nil: all
	line   int

	// Exactly one of these says which network.
	any    bool
	named  set // a set by its name
	prefix netip.Prefix
	name   string // a host name, lower case, without a dot at the end
	domain string // names below this one, at any depth; not the name itself

	class  set        // the set that prefix lies in, public where it is wider
	except []*netRule // prefix is an address of name: the DENY rules for domains above the name
}

type portRange struct{ from, to uint16 }

// fieldError is a fault in one field of a net rule.
type fieldError struct {
	message, hint string
}

func (e *fieldError) Error() string { return e.message }

const netForm = "The form is net=ALLOW or DENY|PROTOCOL|NETWORK|PORTS|DIRECTION, as in net=ALLOW|TCP|api.example.com|443|OUT."

// parseNet reads the five fields of a net rule.
func parseNet(fields []string) (netRule, *fieldError) {
	var r netRule
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	if len(fields) != 5 {
		return r, &fieldError{"a net rule has five fields, this one has " + strconv.Itoa(len(fields)), netForm}
	}
	switch strings.ToUpper(fields[0]) {
	case "ALLOW":
	case "DENY":
		r.deny = true
	default:
		return r, unknown("action", fields[0], []string{"ALLOW", "DENY"})
	}
	var ok bool
	if r.protos, ok = protocols[strings.ToLower(fields[1])]; !ok {
		return r, unknown("protocol", fields[1], []string{"TCP", "UDP", "ICMP", "*"})
	}
	if err := r.network(fields[2]); err != nil {
		return r, err
	}
	var err *fieldError
	if r.ports, err = parsePorts(fields[3]); err != nil {
		return r, err
	}
	if r.dirs, ok = directions[strings.ToLower(fields[4])]; !ok {
		return r, unknown("direction", fields[4], []string{"IN", "OUT", "*"})
	}
	return r, nil
}

func unknown(what, word string, known []string) *fieldError {
	hint := netForm
	if near := nearest.Word(word, known); near != "" {
		hint = "Did you mean " + near + "? " + netForm
	}
	return &fieldError{"unknown " + what + " " + strconv.Quote(word) + ": known are " + strings.Join(known, ", "), hint}
}

// network reads the NETWORK field.
func (r *netRule) network(text string) *fieldError {
	switch {
	case text == "*":
		r.any = true
		return nil
	case strings.HasPrefix(text, "@"):
		var ok bool
		if r.named, ok = setNames[strings.ToLower(text)]; !ok {
			return unknown("set", text, []string{"@private", "@loopback", "@link-local", "@metadata"})
		}
		return nil
	case strings.HasPrefix(text, "*."):
		if r.domain = hostName(text[2:]); r.domain == "" {
			return &fieldError{strconv.Quote(text[2:]) + " is not the name of a domain", "Write *.example.com for the names below example.com, at any depth."}
		}
		if _, isAddress := parseAddr(r.domain); isAddress {
			return &fieldError{"nothing is below an address: " + text, "Write a network: 192.0.2.0/24."}
		}
		return nil
	case strings.Contains(text, "/"):
		return r.cidr(text)
	}
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")); err == nil {
		if a.Zone() != "" {
			return &fieldError{"an address with a zone cannot be a rule", "Write it without " + "%" + a.Zone() + ": it holds for every interface."}
		}
		r.set(netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
		return nil
	}
	if a, ok := parseAddr(text); ok {
		return &fieldError{"an unusual spelling of an address: " + text, "Write " + a.String() + "."}
	}
	if r.name = hostName(text); r.name == "" {
		return &fieldError{strconv.Quote(text) + " is not an address, a network, a host name or a named set", netForm}
	}
	return nil
}

func (r *netRule) cidr(text string) *fieldError {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return &fieldError{"not a network: " + text, "Write an address and the length of its prefix: 192.0.2.0/24."}
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return &fieldError{"a network of mapped IPv4 addresses: " + text, "Write it as IPv4."}
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if p != p.Masked() {
		return &fieldError{text + " has bits set behind its prefix", "Write " + p.Masked().String() + ", or one address without the /."}
	}
	r.set(p)
	return nil
}

func (r *netRule) set(p netip.Prefix) { r.prefix, r.class = p, setOfPrefix(p) }

// hostName returns a host name in the form that decisions compare, "" if it is none.
func hostName(text string) string {
	text = strings.ToLower(strings.TrimSuffix(text, "."))
	if text == "" || len(text) > 253 {
		return ""
	}
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return ""
		}
		for i := 0; i < len(label); i++ {
			if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return ""
			}
		}
	}
	return text
}

// parsePorts reads `*`, numbers and ranges between commas.
func parsePorts(text string) ([]portRange, *fieldError) {
	if text == "*" {
		return nil, nil
	}
	var out []portRange
	for p := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(p), "-")
		if !isRange {
			to = from
		}
		a, errA := strconv.ParseUint(strings.TrimSpace(from), 10, 16)
		b, errB := strconv.ParseUint(strings.TrimSpace(to), 10, 16)
		if errA != nil || errB != nil || a > b {
			return nil, &fieldError{"not a port or a range of ports: " + strconv.Quote(strings.TrimSpace(p)), "Ports are 0 to 65535: 443, 8000-8010, 80,443 or *."}
		}
		out = append(out, portRange{uint16(a), uint16(b)})
	}
	slices.SortFunc(out, func(a, b portRange) int { return int(a.from) - int(b.from) })
	return out, nil
}

// holds tells that the rule speaks of this protocol, direction and port.
func (r *netRule) holds(q *question) bool {
	if r.protos&q.proto == 0 || r.dirs&q.dir == 0 {
		return false
	}
	if r.ports == nil {
		return true
	}
	for _, p := range r.ports {
		if q.port >= int(p.from) && q.port <= int(p.to) {
			return true
		}
	}
	return false
}

// excepted tells that a DENY for a domain takes away what the rule allows by its name. The address may be allowed by
// other rules: which names lead to it is not known.
func (r *netRule) excepted(q *question) bool {
	for _, d := range r.except {
		if d.holds(q) {
			return true
		}
	}
	return false
}
