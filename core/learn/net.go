package learn

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// hostName is what a learned rule may name as a host: letters, digits and inner hyphens between dots (RFC 1123), with
// the underscore that service names have.
var hostName = lazy(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,62}\.)*[A-Za-z0-9_-]{0,62}$`)

// protocols are those that a net rule can name.
var protocols = map[string]string{"tcp": "TCP", "udp": "UDP", "icmp": "ICMP"}

// inward are the operations that wait for others.
var inward = map[string]bool{"bind": true, "listen": true, "accept": true, opChosen: true}

// notPublic grades addresses that lead past the internet, the most telling first.
var notPublic = []struct {
	prefix netip.Prefix
	risk   Risk
	why    string
}{
	{netip.MustParsePrefix("169.254.169.254/32"), High, "cloud metadata: hands out credentials"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), High, "cloud metadata: hands out credentials"},
	{netip.MustParsePrefix("100.100.100.200/32"), High, "cloud metadata: hands out credentials"},
	{netip.MustParsePrefix("169.254.0.0/16"), High, "link-local"},
	{netip.MustParsePrefix("fe80::/10"), High, "link-local"},
	{netip.MustParsePrefix("127.0.0.0/8"), Medium, "this machine"},
	{netip.MustParsePrefix("::1/128"), Medium, "this machine"},
	{netip.MustParsePrefix("10.0.0.0/8"), Medium, "a private network"},
	{netip.MustParsePrefix("172.16.0.0/12"), Medium, "a private network"},
	{netip.MustParsePrefix("192.168.0.0/16"), Medium, "a private network"},
	{netip.MustParsePrefix("100.64.0.0/10"), Medium, "a private network"},
	{netip.MustParsePrefix("fc00::/7"), Medium, "a private network"},
}

// localPorts is where Linux takes a port that nobody chose (net.ipv4.ip_local_port_range as shipped).
const localPortLow, localPortHigh = 32768, 60999

// endpoint is what a net rule names.
type endpoint struct{ proto, host, ports, direction string }

func (e endpoint) items() []string { return []string{"ALLOW", e.proto, e.host, e.ports, e.direction} }

// net learns endpoints: the name where the address came from a look-up, else the address; the exact port.
func (g *generaliser) net(entries []entry) []Learned {
	var out []Learned
	var open []entry
	sockets := ownSockets(entries)
	for _, e := range entries {
		if e.Proto == "unix" {
			if !sockets[e.Host] { // made by the program: a matter of the folder it stands in
				out = append(out, g.unix(e)...)
			}
			continue
		}
		host, ok := hostOf(e)
		if !ok {
			out = append(out, leftOut(FamilyNet, e, e.Op+" to "+e.Host+", which is neither an address nor a name"))
			continue
		}
		e.Host = host
		open = append(open, e)
	}
	own := ownPorts(open)
	open = slices.DeleteFunc(withoutReverse(open), func(e entry) bool { return e.Op == opChosen })
	names := g.lookUp(open)
	var folded []entry
	ends := map[string]endpoint{}
	for _, e := range open {
		if e.Op == "resolve" && (names.connected[strings.ToLower(e.Host)] || literal(e.Host)) {
			continue
		}
		if g.o.Policy != nil {
			d := g.o.Policy.Net(policy.NetQuestion{Op: e.Op, Proto: e.Proto, Host: e.Host, Port: e.Port})
			if d.Allow {
				continue
			}
			if d.RuleText != "" {
				out = append(out, leftOut(FamilyNet, e, e.Op+" "+e.Proto+" "+e.Host+":"+strconv.Itoa(e.Port)+" is refused by "+d.Rule.String()))
				continue
			}
		}
		for _, host := range names.hostsOf(e) {
			end, why := endpointOf(e, host, own)
			if why != "" {
				out = append(out, leftOut(FamilyNet, e, why))
				continue
			}
			named := e
			named.Subject = strings.Join(end.items(), "|")
			ends[named.Subject] = end
			folded = append(folded, named)
		}
	}
	for _, e := range fold(folded, func(e entry) string { return e.Subject }) {
		end := ends[e.Subject]
		risk, why := netRisk(e, end)
		if strings.Contains(end.ports, "-") {
			why = join(why, "a port that the system chose for the program itself; it differs with every run")
		}
		out = append(out, g.rule(e, "net="+e.Subject, risk, why, expectation{key: "net", items: end.items(), allows: func(p *policy.Policy) bool {
			return p.NetNeeded() && !p.Net(policy.NetQuestion{Op: "connect", Proto: "tcp", Host: "203.0.113.77", Port: 1}).Allow
		}}))
	}
	return byRisk(out)
}

// hostOf is the host of an observation as a rule says it: an address in its short form, or a name. The empty host of a
// server is every address of the machine.
func hostOf(e entry) (host string, ok bool) {
	a, err := netip.ParseAddr(e.Host)
	switch {
	case err == nil:
		return a.Unmap().String(), true
	case e.Op == "resolve":
		return e.Host, true // judged with the names
	case e.Host == "" && inward[e.Op]:
		return "0.0.0.0", true
	case hostName.MatchString(e.Host):
		return strings.ToLower(e.Host), true
	}
	return "", false
}

// withoutReverse leaves out the look-ups of names for addresses that something else was done with: a rule for that
// allows them as well.
func withoutReverse(entries []entry) []entry {
	used := map[string]bool{}
	for _, e := range entries {
		if e.Op != "reverse" && e.Op != "resolve" {
			used[e.Host] = true
		}
	}
	return slices.DeleteFunc(entries, func(e entry) bool {
		return e.Op == "reverse" && (used[e.Host] || loopback(e.Host) && used["localhost"])
	})
}

// ownSockets are the unix sockets that the program made itself, by their paths.
func ownSockets(entries []entry) map[string]bool {
	out := map[string]bool{}
	for _, e := range entries {
		if e.Proto == "unix" && e.Op == "bind" && strings.HasPrefix(e.Host, "/") {
			out[e.Host] = true
		}
	}
	return out
}

// endpointOf says what to write for an observation of a host, or why nothing can be.
func endpointOf(e entry, host string, own map[ownPort]ownership) (endpoint, string) {
	proto, ok := protocols[e.Proto]
	if e.Op == "resolve" {
		proto, ok = "TCP", true // a look-up has no protocol; names are looked up for it nearly always
	}
	if !ok {
		return endpoint{}, e.Op + " with protocol " + e.Proto + " to " + e.Host + ": no net rule can say that"
	}
	end := endpoint{proto: proto, host: e.Host, ports: strconv.Itoa(e.Port), direction: "OUT"}
	if e.Direction == "IN" || e.Direction == "" && inward[e.Op] {
		end.direction = "IN"
	}
	switch {
	case proto == "ICMP":
		end.ports = "*"
	case e.Port < 0 || e.Port > 65535:
		return endpoint{}, e.Op + " to " + e.Host + " with port " + strconv.Itoa(e.Port)
	case e.Op == "resolve" && e.Port == 0:
		return endpoint{}, e.Host + " was looked up, but nothing connected to it: write net=ALLOW|TCP|HOST|PORT|OUT with the port it is for"
	case end.direction == "IN" && own[ownPort{e.Proto, e.Port}] == keptPort:
		end.ports = "0"
	case own[ownPort{e.Proto, e.Port}] != othersPort && loopback(e.Host):
		end.ports = strconv.Itoa(localPortLow) + "-" + strconv.Itoa(localPortHigh)
	}
	end.host = host
	if !literal(end.host) && !hostName.MatchString(end.host) || strings.Contains(end.host, "%") {
		return endpoint{}, "the host " + end.host + " has a name that no rule can say"
	}
	return end, ""
}

// ownPort is a port of one protocol.
type ownPort struct {
	proto string
	port  int
}

// ownership says whose a port is.
type ownership int

const (
	othersPort ownership = iota
	keptPort             // the socket that the kernel chose it for has it still
	againPort            // bound anew by its number, as programs do that look for a free port first
)

// opChosen tells of the port that the kernel chose at a bind to port 0. It is no operation of its own.
const opChosen = "chosen"

// ownPorts are the ports that the kernel chose for this program: as Python tells, else those that a socket of native code listened on
// without having asked for them. They differ with every run.
func ownPorts(entries []entry) map[ownPort]ownership {
	asked, bound, own := map[string]bool{}, map[ownPort]bool{}, map[ownPort]ownership{}
	for _, e := range entries {
		if e.Op == "bind" {
			asked[e.Proto] = asked[e.Proto] || e.Port == 0
			bound[ownPort{e.Proto, e.Port}] = true
		}
	}
	for _, e := range entries {
		p := ownPort{e.Proto, e.Port}
		told := e.Op == opChosen || e.Op == "listen" && asked[e.Proto] && !bound[p]
		switch {
		case !told || e.Port < localPortLow || e.Port > localPortHigh:
		case bound[p]:
			own[p] = againPort
		default:
			own[p] = keptPort
		}
	}
	return own
}

// names maps addresses back to the names that the program looked up.
type names struct {
	byAddress map[string][]string
	byPort    map[int]string  // a name whose addresses nobody connected to: its answer has changed since
	connected map[string]bool // names that stand for a connection
	asked     map[string]int  // the port that a name was looked up for, 0 for none
}

// hostsOf are what rules for an observation name: the names that its address came from, each of them, else the address.
func (n names) hostsOf(e entry) []string {
	if !literal(e.Host) || inward[e.Op] || e.Direction == "IN" {
		return []string{e.Host}
	}
	var fit, other []string
	for _, name := range n.byAddress[e.Host] {
		if port := n.asked[name]; port == e.Port {
			fit = append(fit, name)
		} else if port == 0 {
			other = append(other, name)
		}
	}
	switch {
	case len(fit)+len(other) > 0:
		return append(fit, other...)
	case len(n.byAddress[e.Host]) > 0:
		return n.byAddress[e.Host][:1]
	case n.byPort[e.Port] != "":
		return []string{n.byPort[e.Port]}
	}
	return []string{e.Host}
}

// lookUp asks for the addresses of the names that the program looked up, if there are connections to explain.
func (g *generaliser) lookUp(entries []entry) names {
	asked := map[string]int{}
	n := names{byAddress: map[string][]string{}, byPort: map[int]string{}, connected: map[string]bool{}, asked: asked}
	var order []string
	for _, e := range entries {
		if name := strings.ToLower(e.Host); e.Op == "resolve" && !literal(name) && hostName.MatchString(name) {
			if !has(asked, name) {
				order = append(order, name)
			}
			asked[name] = e.Port
		}
	}
	outward := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.Op == "resolve" || inward[e.Op] })
	for _, e := range outward {
		if !literal(e.Host) {
			n.connected[e.Host] = true // the look-up and the connection in one
		}
	}
	if len(order) == 0 || len(outward) == 0 {
		return n
	}
	resolver := g.o.Resolver
	if resolver == nil {
		resolver = hostResolver{}
	}
	for deadline, i := time.Now().Add(lookUpTime), 0; i < len(order) && time.Now().Before(deadline); i++ {
		name := order[i]
		addresses, err := resolver.LookupIP(name)
		if err != nil {
			continue
		}
		for _, a := range addresses {
			host := a.Unmap().WithZone("").String()
			if !slices.ContainsFunc(outward, func(e entry) bool { return e.Host == host }) {
				continue
			}
			n.connected[name] = true
			if !slices.Contains(n.byAddress[host], name) {
				n.byAddress[host] = append(n.byAddress[host], name)
			}
		}
	}
	for _, name := range order {
		port := asked[name]
		unexplained := slices.ContainsFunc(outward, func(e entry) bool { return e.Port == port && literal(e.Host) && n.byAddress[e.Host] == nil })
		if !n.connected[name] && port != 0 && unexplained && n.byPort[port] == "" {
			n.byPort[port] = name
			n.connected[name] = true
		}
	}
	return n
}

// lookUpTime bounds the look-ups at the end of a run, all together; what is not explained by then stays an address.
const lookUpTime = 10 * time.Second

type hostResolver struct{}

func (hostResolver) LookupIP(host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookUpTime/5)
	defer cancel()
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// unix learns a socket of the file system: a rule for exactly that path, since its folder would not do.
func (g *generaliser) unix(e entry) []Learned {
	if !strings.HasPrefix(e.Host, "/") || strings.ContainsRune(e.Host, 0) {
		return []Learned{leftOut(FamilyFile, e, e.Op+" to the unix socket "+e.Host+", which has no path")}
	}
	if g.o.Policy != nil && g.o.Policy.Net(policy.NetQuestion{Op: e.Op, Proto: e.Proto, Host: e.Host}).Allow {
		return nil
	}
	n := &need{entry: e, path: e.Host, file: true, write: true, risk: High, notes: []string{"a unix socket: whatever serves it acts outside the sandbox"}}
	return []Learned{g.expose(newPlaces(g.o), n)}
}

func netRisk(e entry, end endpoint) (Risk, string) {
	if e.Host == "localhost" {
		return Medium, "this machine"
	}
	a, err := netip.ParseAddr(e.Host)
	if err != nil {
		return Low, ""
	}
	if a.IsUnspecified() {
		if end.direction == "IN" {
			return High, "reachable from other machines"
		}
		return Medium, "this machine"
	}
	for _, n := range notPublic {
		if n.prefix.Contains(a) {
			return n.risk, n.why
		}
	}
	if end.host == e.Host {
		return Medium, "an address without a name"
	}
	return Low, ""
}

func literal(host string) bool { _, err := netip.ParseAddr(host); return err == nil }

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || host == "localhost"
}
