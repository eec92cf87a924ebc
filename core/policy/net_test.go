package policy

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type netCase struct {
	op, proto, host string
	port            int
	allow           bool
}

func (c netCase) question() NetQuestion { return NetQuestion{c.op, c.proto, c.host, c.port} }

func TestNet(t *testing.T) {
	w := newWorld(t)
	w.resolver["api.example.com"] = []string{"93.184.216.34", "2606:2800:220:1::1"}
	w.resolver["inner.example.com"] = []string{"10.0.0.9", "93.184.216.40"}
	w.resolver["db"] = []string{"172.18.0.3"}
	w.resolver["evil.example.com"] = []string{"203.0.113.66"}
	for name, c := range map[string]struct {
		rules []string
		cases []netCase
	}{
		"nothing": {nil, []netCase{{"connect", "tcp", "127.0.0.1", 80, false}, {"bind", "tcp", "", 0, false}, {"resolve", "tcp", "example.com", 0, false},
			{"resolve", "tcp", "127.0.0.1", 0, true}, {"resolve", "", "", 0, true}}},
		"address": {[]string{"net=ALLOW|TCP|203.0.113.1|443,8000-8010|OUT"}, []netCase{
			{"connect", "tcp", "203.0.113.1", 443, true}, {"connect", "tcp", "203.0.113.1", 8005, true}, {"connect", "tcp", "203.0.113.1", 80, false},
			{"connect", "udp", "203.0.113.1", 443, false}, {"bind", "tcp", "203.0.113.1", 443, false}, {"connect", "tcp", "203.0.113.2", 443, false},
			{"connect", "tcp", "::ffff:203.0.113.1", 443, true}, {"connect", "tcp", "0xcb.0.0x7101", 443, true}, {"connect", "tcp", "3405803777", 443, true},
			{"connect", "raw", "203.0.113.1", 443, false}, {"connect", "*", "203.0.113.1", 443, false}, {"fly", "tcp", "203.0.113.1", 443, false},
			{"connect", "tcp", "64:ff9b::cb00:7101", 443, true}, {"connect", "tcp", "2002:cb00:7101::1", 443, true}, {"connect", "tcp", "::203.0.113.1", 443, true}}},
		"cidr": {[]string{"net=allow|tcp|203.0.113.0/24|*|out", "net=ALLOW|TCP|2001:db8::/32|443|OUT"}, []netCase{
			{"connect", "tcp", "203.0.113.77", 1, true}, {"connect", "tcp", "203.0.114.1", 1, false}, {"connect", "tcp", "2001:db8:1::5", 443, true},
			{"connect", "tcp", "2001:db8:1::5%eth0", 443, true}, {"connect", "tcp", "2001:db9::1", 443, false}}},
		"star does not hold the sets": {[]string{"net=ALLOW|*|*|*|*"}, []netCase{
			{"connect", "tcp", "93.184.216.34", 443, true}, {"connect", "udp", "2606:2800::1", 53, true}, {"connect", "icmp", "93.184.216.34", 0, true},
			{"connect", "tcp", "127.0.0.1", 80, false}, {"connect", "tcp", "10.0.0.1", 80, false}, {"connect", "tcp", "169.254.169.254", 80, false},
			{"connect", "tcp", "0.0.0.0", 80, false}, {"connect", "tcp", "::", 80, false}, {"connect", "tcp", "", 80, false}, {"connect", "tcp", "::1", 80, false},
			{"connect", "tcp", "::ffff:127.0.0.1", 80, false}, {"connect", "tcp", "64:ff9b::a9fe:a9fe", 80, false}, {"connect", "tcp", "2002:7f00:1::", 80, false},
			{"connect", "tcp", "fd00:ec2::254", 80, false}, {"connect", "tcp", "0177.1", 80, false}, {"connect", "tcp", "2130706433", 80, false},
			{"bind", "tcp", "0.0.0.0", 80, false}, {"connect", "tcp", "100.64.0.1", 80, false}, {"resolve", "tcp", "any.example.org", 443, true},
			{"resolve", "tcp", "not a name", 443, false}, {"connect", "raw", "93.184.216.34", 0, false}}},
		"wide cidr is no way round": {[]string{"net=ALLOW|TCP|0.0.0.0/0|*|OUT", "net=ALLOW|TCP|::/0|*|OUT", "net=ALLOW|TCP|169.254.0.0/16|*|OUT", "net=ALLOW|TCP|64:ff9b::/96|*|OUT"}, []netCase{
			{"connect", "tcp", "93.184.216.34", 1, true}, {"connect", "tcp", "127.0.0.1", 1, false}, {"connect", "tcp", "10.0.0.1", 1, false},
			{"connect", "tcp", "169.254.1.1", 1, true}, {"connect", "tcp", "169.254.169.254", 1, false}, {"connect", "tcp", "64:ff9b::a00:1", 1, false}}},
		"sets by name": {[]string{"net=ALLOW|TCP|@loopback|8000-8010|*", "net=ALLOW|TCP|@link-local|1|OUT"}, []netCase{
			{"connect", "tcp", "127.5.5.5", 8000, true}, {"connect", "tcp", "::1", 8000, true}, {"bind", "tcp", "127.0.0.1", 8000, true},
			{"connect", "tcp", "0.0.0.0", 8000, true}, {"bind", "tcp", "0.0.0.0", 8000, false}, {"connect", "tcp", "localhost", 8000, true},
			{"connect", "tcp", "localhost", 9000, false}, {"resolve", "tcp", "localhost", 0, true}, {"connect", "tcp", "10.0.0.1", 8000, false},
			{"connect", "tcp", "169.254.3.3", 1, true}, {"connect", "tcp", "169.254.169.254", 1, false}}},
		"private and deny": {[]string{"net=ALLOW|TCP|@private|*|OUT", "net=DENY|*|10.0.0.0/8|22|*"}, []netCase{
			{"connect", "tcp", "10.0.0.1", 80, true}, {"connect", "tcp", "10.0.0.1", 22, false}, {"connect", "tcp", "192.168.1.1", 22, true},
			{"connect", "tcp", "100.100.100.200", 80, false}, {"connect", "tcp", "fd00::1", 80, true}, {"connect", "tcp", "::ffff:10.0.0.1", 22, false}}},
		"deny wins":                     {[]string{"net=DENY|*|@metadata|*|OUT", "net=ALLOW|TCP|169.254.169.254|80|OUT"}, []netCase{{"connect", "tcp", "169.254.169.254", 80, false}}},
		"deny of a set holds all in it": {[]string{"net=DENY|*|@link-local|*|OUT", "net=ALLOW|TCP|169.254.169.254|80|OUT"}, []netCase{{"connect", "tcp", "169.254.169.254", 80, false}}},
		"metadata by its own address":   {[]string{"net=ALLOW|TCP|169.254.169.254|80|OUT"}, []netCase{{"connect", "tcp", "169.254.169.254", 80, true}}},
		"names": {[]string{"net=ALLOW|TCP|API.example.com.|443|OUT", "net=ALLOW|TCP|inner.example.com|443|OUT", "net=ALLOW|TCP|db|5432|OUT"}, []netCase{
			{"resolve", "tcp", "api.example.com", 443, true}, {"resolve", "tcp", "API.EXAMPLE.COM.", 0, true}, {"resolve", "tcp", "www.example.com", 443, false},
			{"connect", "tcp", "93.184.216.34", 443, true}, {"connect", "tcp", "2606:2800:220:1::1", 443, true}, {"connect", "tcp", "93.184.216.34", 80, false},
			{"connect", "tcp", "api.example.com", 443, true}, {"connect", "tcp", "api.example.com", 80, false}, {"connect", "tcp", "10.0.0.9", 443, false},
			{"connect", "tcp", "93.184.216.40", 443, true}, {"connect", "tcp", "172.18.0.3", 5432, true}, {"reverse", "", "93.184.216.34", 0, true},
			{"reverse", "", "8.8.8.8", 0, false}, {"resolve", "tcp", "xn--secret.evil.org", 0, false}}},
		"denied name": {[]string{"net=ALLOW|TCP|203.0.113.0/24|*|OUT", "net=DENY|*|evil.example.com|*|OUT"}, []netCase{
			{"connect", "tcp", "203.0.113.66", 80, false}, {"connect", "tcp", "203.0.113.65", 80, true}, {"resolve", "tcp", "evil.example.com", 80, false}}},
		"in": {[]string{"net=ALLOW|TCP|0.0.0.0|8080|IN", "net=ALLOW|UDP|127.0.0.1|0|IN"}, []netCase{
			{"bind", "tcp", "", 8080, true}, {"listen", "tcp", "0.0.0.0", 8080, true}, {"bind", "udp", "127.0.0.1", 0, true},
			{"bind", "udp", "127.0.0.1", 5, false}, {"connect", "tcp", "0.0.0.0", 8080, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			pol := w.policy(t, c.rules...)
			for _, q := range c.cases {
				d := pol.Net(q.question())
				assert.Equal(t, q.allow, d.Allow, "%+v: %s", q, d.Message())
			}
		})
	}
}

func TestNetMessages(t *testing.T) {
	w := newWorld(t)
	pol := w.policy(t, "net=DENY|*|@metadata|*|OUT")
	for _, c := range []struct {
		q    NetQuestion
		has  []string
		ends string
	}{
		{NetQuestion{"connect", "tcp", "127.0.0.1", 80}, []string{"DENIED tcp connect to 127.0.0.1:80 OUT: ", "(wider: net=ALLOW|TCP|@loopback|80|OUT)"}, "\n    net=ALLOW|TCP|127.0.0.1|80|OUT"},
		{NetQuestion{"connect", "udp", "2001:db8::1", 53}, []string{"DENIED udp connect to [2001:db8::1]:53 OUT"}, "\n    net=ALLOW|UDP|2001:db8::1|53|OUT"},
		{NetQuestion{"bind", "tcp", "", 8080}, []string{"DENIED tcp bind to :8080 IN"}, "\n    net=ALLOW|TCP|0.0.0.0|8080|IN"},
		{NetQuestion{"resolve", "", "evil.example.com", 0}, []string{"DENIED tcp look-up of evil.example.com:0 OUT"}, "\n    net=ALLOW|TCP|evil.example.com|443|OUT"},
		{NetQuestion{"connect", "tcp", "169.254.169.254", 80}, []string{"DENIED tcp connect to 169.254.169.254:80 OUT", ".py-sandboxes:1"}, "\n    net=DENY|*|@metadata|*|OUT"},
		{NetQuestion{"connect", "raw", "127.0.0.1", 0}, []string{"DENIED raw connect", "cannot be granted"}, "cannot be granted."},
		{NetQuestion{"socket", "raw", "", 29}, []string{"DENIED raw make a socket", "cannot be granted"}, "cannot be granted."},
		{NetQuestion{"connect", "unix", "@x", 0}, []string{"DENIED unix connect to @x OUT"}, "abstract sockets cannot be granted."},
		{NetQuestion{"connect", "unix", "/run/x.sock", 0}, []string{"DENIED unix connect to /run/x.sock OUT"}, "\n    expose-rw=/run/x.sock"},
	} {
		m := pol.Net(c.q).Message()
		for _, s := range c.has {
			assert.Contains(t, m, s)
		}
		assert.True(t, strings.HasSuffix(m, c.ends), "%q should end with %q", m, c.ends)
	}
	// What is said to add is enough.
	for _, q := range []NetQuestion{{"connect", "tcp", "127.0.0.1", 80}, {"bind", "tcp", "", 8080}, {"connect", "udp", "::ffff:10.0.0.1", 53}, {"connect", "icmp", "192.0.2.1", 0}} {
		d := pol.Net(q)
		require.NotEmpty(t, d.Add)
		for _, line := range d.Add {
			if strings.Contains(line, "0.0.0.0") || !strings.Contains(line, "@") {
				assert.True(t, w.policy(t, line).Net(q).Allow, "%s for %+v", line, q)
			}
		}
	}
}

func TestUnixSockets(t *testing.T) {
	w := newWorld(t)
	w.folder(t, "run")
	pol := w.policy(t, "expose-rw=./run", "expose-rw=./run/own.sock", "expose-ro=./ro.sock")
	for _, c := range []netCase{
		{"connect", "unix", w.dir + "/run/own.sock", 0, true},
		{"connect", "unix", w.dir + "/run/other.sock", 0, false},
		{"sendto", "unix", w.dir + "/run/other.sock", 0, false},
		{"bind", "unix", w.dir + "/run/other.sock", 0, true},
		{"connect", "unix", w.dir + "/ro.sock", 0, false},
		{"connect", "unix", "\x00abstract", 0, false},
		{"connect", "unix", "@abstract", 0, false},
		{"connect", "unix", "", 0, false},
		{"connect", "unix", w.dir + "/run/../run/own.sock", 0, false},
	} {
		assert.Equal(t, c.allow, pol.Net(c.question()).Allow, "%+v", c)
	}
}

func TestNamesThatCannotBeLookedUp(t *testing.T) {
	w := newWorld(t)
	w.resolver["slow.example.com"] = []string{"later", "later", "192.0.2.7"}
	w.resolver["down.example.com"] = []string{"never"}
	w.resolver["mad.example.com"] = []string{"panic"}
	pol := w.policy(t, "net=ALLOW|TCP|slow.example.com|443|OUT")
	assert.True(t, pol.Net(NetQuestion{"connect", "tcp", "192.0.2.7", 443}).Allow)
	assert.Equal(t, []time.Duration{200 * time.Millisecond, 400 * time.Millisecond}, w.slept)
	assert.Equal(t, []netip.Addr{netip.MustParseAddr("192.0.2.7")}, pol.Pinned("SLOW.example.com"))

	w.slept = nil
	for _, name := range []string{"gone.example.com", "down.example.com", "mad.example.com"} {
		pol = w.policy(t, "net=ALLOW|TCP|"+name+"|443|OUT")
		assert.Contains(t, w.warned(), ".py-sandboxes:1: "+name+" cannot be looked up now: ")
		assert.True(t, pol.NetNeeded())
		assert.True(t, pol.LooksUpNames())
		assert.True(t, pol.Net(NetQuestion{"resolve", "tcp", name, 443}).Allow)
		assert.Empty(t, pol.Pinned(name))
		assert.Contains(t, pol.NoAddress(name), name+" has had no address so far")
		assert.Empty(t, pol.NoAddress("other."+name))

		// Decided when the name has been asked for.
		live, there := pol.Live(), NetQuestion{"connect", "tcp", "192.0.2.8", 443}
		d := live.Net(there)
		assert.False(t, d.Allow)
		assert.Contains(t, d.Message(), ".py-sandboxes:1 stands, but "+name+" has had no address so far")
		assert.NotContains(t, d.Message(), "|"+name+"|", "the line that stands is not asked for")
		other := there
		other.Port = 444
		assert.NotContains(t, live.Net(other).Message(), "stands")
		kept, refused := live.Given(name, []netip.Addr{netip.MustParseAddr("192.0.2.8"), netip.MustParseAddr("10.0.0.5")})
		assert.Len(t, kept, 1)
		assert.Len(t, refused, 1)
		assert.True(t, live.Net(there).Allow)
		assert.False(t, live.Net(other).Allow)
		there.Host = "192.0.2.9"
		assert.NotContains(t, live.Net(there).Message(), "stands", "it has an address by now")
		assert.Contains(t, pol.Live().Net(there).Message(), "stands", "each sandbox for itself")

		_, err := w.try(t, "net=DENY|TCP|"+name+"|443|OUT")
		assert.ErrorContains(t, err, "DENY would refuse nothing")
		pol = w.policy(t, "net=ALLOW|TCP|"+name+"|443|IN")
		assert.Contains(t, w.warned(), ".py-sandboxes:1: the rule is dropped: "+name)
		assert.False(t, pol.NetNeeded())
	}
}

func TestPublicNamesDoNotLeadInside(t *testing.T) {
	w := newWorld(t)
	w.resolver["trap.example.com"] = []string{"10.0.0.5", "169.254.169.254"}
	w.resolver["db.internal"] = []string{"10.0.0.5", "169.254.169.254"}
	pol := w.policy(t, "net=ALLOW|TCP|trap.example.com|80|OUT")
	assert.False(t, pol.Net(NetQuestion{"connect", "tcp", "10.0.0.5", 80}).Allow)
	assert.Contains(t, w.warned(), "trap.example.com points to 10.0.0.5")
	pol = w.policy(t, "net=ALLOW|TCP|db.internal|80|OUT")
	assert.True(t, pol.Net(NetQuestion{"connect", "tcp", "10.0.0.5", 80}).Allow)
	assert.False(t, pol.Net(NetQuestion{"connect", "tcp", "169.254.169.254", 80}).Allow)
	pol = w.policy(t, "net=ALLOW|TCP|trap.example.com|80|OUT", "net=ALLOW|TCP|10.0.0.5|1|OUT")
	assert.True(t, pol.Net(NetQuestion{"connect", "tcp", "10.0.0.5", 80}).Allow)
}

func TestBadNetRules(t *testing.T) {
	for line, want := range map[string]string{
		"net=ALLOW|TCP|1.2.3.4|80":              "five fields",
		"net=ALOW|TCP|1.2.3.4|80|OUT":           "Did you mean ALLOW?",
		"net=ALLOW|TPC|1.2.3.4|80|OUT":          "Did you mean TCP?",
		"net=ALLOW|TCP|@privat|80|OUT":          "Did you mean @private?",
		"net=ALLOW|TCP|*.|80|OUT":               "not the name of a domain",
		"net=ALLOW|TCP|*.*.example.com|80|OUT":  "not the name of a domain",
		"net=ALLOW|TCP|api.*.com|80|OUT":        "not an address",
		"net=ALLOW|TCP|*.192.0.2.1|80|OUT":      "nothing is below an address",
		"net=ALLOW|TCP|1.2.3.4/33|80|OUT":       "not a network",
		"net=ALLOW|TCP|1.2.3.4/8|80|OUT":        "Write 1.0.0.0/8",
		"net=ALLOW|TCP|0x7f.1|80|OUT":           "Write 127.0.0.1",
		"net=ALLOW|TCP|fe80::1%eth0|80|OUT":     "zone",
		"net=ALLOW|TCP|a b|80|OUT":              "not an address",
		"net=ALLOW|TCP|1.2.3.4|65536|OUT":       "not a port",
		"net=ALLOW|TCP|1.2.3.4|9-1|OUT":         "not a port",
		"net=ALLOW|TCP|1.2.3.4||OUT":            "not a port",
		"net=ALLOW|TCP|1.2.3.4|80|OUTSIDE":      "unknown direction",
		"net=ALLOW|TCP|-bad.example.com|80|OUT": "not an address",
	} {
		_, err := newWorld(t).try(t, line)
		assert.ErrorContains(t, err, want, line)
		assert.ErrorContains(t, err, ".py-sandboxes:1:5", line)
	}
}

func TestStarIsWarnedOf(t *testing.T) {
	w := newWorld(t)
	assert.True(t, w.policy(t, "net=ALLOW|TCP|*|443|OUT").NetNeeded())
	assert.Contains(t, w.warned(), "* does not hold @private")
	assert.False(t, w.policy(t, "net=DENY|*|*|*|*").NetNeeded())
	assert.NotContains(t, w.warned(), "does not hold")
}

func FuzzNet(f *testing.F) {
	for _, s := range []string{"ALLOW|TCP|1.2.3.4|80|OUT", "DENY|*|@metadata|*|*", "allow|udp|::ffff:1.2.3.4/120|1-2,3|in", "ALLOW|TCP|a.b|0|OUT", "||||", "ALLOW|TCP|0x7f.1|*|OUT"} {
		f.Add(s, "127.0.0.1", 80)
	}
	f.Add("ALLOW|*|*|*|*", "0177.0x1", 0)
	f.Fuzz(func(t *testing.T, rule, host string, port int) {
		r, err := parseNet(strings.Split(rule, "|"))
		if err != nil {
			require.NotEmpty(t, err.message)
			return
		}
		var n netRules
		index := &n.allow
		if r.deny {
			index = &n.deny
		}
		if r.name == "" {
			index.put(&r)
		}
		pol := &Policy{net: n}
		pol.lines = make([]line, 2)
		for op := range netOps {
			d := pol.Net(NetQuestion{op, "tcp", host, port})
			require.NotEmpty(t, d.Message())
			if d.Allow && r.deny && op != "resolve" {
				t.Fatalf("a DENY allowed %s to %q", op, host)
			}
			if a, ok := hostAddr(host); ok && d.Allow && r.any && op == "connect" && setOf(unfold(a)) != public {
				t.Fatalf("* opened %s", host)
			}
		}
	})
}
