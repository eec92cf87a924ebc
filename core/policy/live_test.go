package policy

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func addresses(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range texts {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func tcp(host string, port int) NetQuestion { return NetQuestion{"connect", "tcp", host, port} }

func TestDomains(t *testing.T) {
	w := newWorld(t)
	w.resolver["secret.example.com"] = []string{"203.0.113.9"}
	pol := w.policy(t, "net=ALLOW|TCP|*.Example.com.|443|OUT", "net=DENY|*|*.internal.example.com|*|*", "net=DENY|TCP|secret.example.com|*|OUT")
	assert.True(t, pol.NetNeeded())
	assert.Contains(t, w.warned(), "what is below internal.example.com is refused by its name")
	for _, c := range []netCase{
		{"resolve", "", "a.example.com", 0, true},
		{"resolve", "", "A.B.Example.COM.", 0, true},
		{"resolve", "", "example.com", 0, false},     // not below itself
		{"resolve", "", "notexample.com", 0, false},  // a name ends where a label does
		{"resolve", "", ".example.com", 0, false},    // no name
		{"resolve", "", "a..example.com", 0, false},  //
		{"resolve", "", "a.example.com.x", 0, false}, //
		{"resolve", "", "x.internal.example.com", 0, false},
		{"resolve", "", "internal.example.com", 0, true},
		{"connect", "tcp", "a.example.com", 443, true},
		{"connect", "tcp", "a.example.com", 80, false},
		{"connect", "udp", "a.example.com", 443, false},
		{"connect", "tcp", "x.internal.example.com", 443, false},
		{"connect", "tcp", "secret.example.com", 443, false},
		{"connect", "tcp", "93.184.216.34", 443, false}, // nobody has looked it up
	} {
		d := pol.Net(c.question())
		assert.Equal(t, c.allow, d.Allow, "%+v: %s", c, d.Message())
	}
	assert.Equal(t, "example.com", pol.BelowDomain("a.example.com"))
	assert.Empty(t, pol.BelowDomain("example.org"))
	rules := pol.DomainRules()
	require.Len(t, rules, 2)
	assert.Equal(t, []string{"example.com", "internal.example.com"}, []string{rules[0].Domain, rules[1].Domain})
}

// What a name had when the profile was loaded is no way round a DENY for the domain above it.
func TestDenyOfADomainHoldsAtWhatItsNamesHad(t *testing.T) {
	w := newWorld(t)
	w.resolver["api.example.com"] = []string{"198.51.100.1"}
	pol := w.policy(t, "net=ALLOW|TCP|api.example.com|80,443|OUT", "net=DENY|*|*.example.com|443|*")
	assert.True(t, pol.Net(tcp("198.51.100.1", 80)).Allow)
	assert.False(t, pol.Net(tcp("198.51.100.1", 443)).Allow)
	assert.False(t, pol.Net(tcp("api.example.com", 443)).Allow)
	pol = w.policy(t, "net=ALLOW|TCP|api.example.com|443|OUT", "net=DENY|*|*.example.com|443|*", "net=ALLOW|TCP|198.51.100.0/24|*|OUT")
	assert.True(t, pol.Net(tcp("198.51.100.1", 443)).Allow, "the address has a rule of its own")
}

func TestAnAddressIsReachableByTheNamesThatGaveIt(t *testing.T) {
	w := newWorld(t)
	w.resolver["api.example.org"] = []string{"198.51.100.1"}
	pol := w.policy(t, "net=ALLOW|TCP|*.example.com|443|OUT", "net=ALLOW|TCP|api.example.org|8443|OUT")
	live := pol.Live()
	assert.False(t, live.Net(tcp("93.184.216.34", 443)).Allow)
	kept, refused := live.Given("www.example.com", addresses("93.184.216.34", "2606:2800:220:1::1", "64:ff9b::c633:6407"))
	assert.Len(t, kept, 3)
	assert.Empty(t, refused)
	for _, c := range []netCase{
		{"connect", "tcp", "93.184.216.34", 443, true},
		{"connect", "tcp", "::ffff:93.184.216.34", 443, true},
		{"connect", "tcp", "2606:2800:220:1::1", 443, true},
		{"connect", "tcp", "198.51.100.7", 443, true}, // what the NAT64 address carries
		{"connect", "tcp", "64:ff9b::c633:6407", 443, true},
		{"connect", "tcp", "93.184.216.34", 80, false},
		{"connect", "udp", "93.184.216.34", 443, false},
		{"bind", "tcp", "93.184.216.34", 443, false},
		{"listen", "tcp", "93.184.216.34", 443, false},
		{"connect", "tcp", "93.184.216.35", 443, false},
		{"reverse", "", "93.184.216.34", 0, true},
		{"reverse", "", "93.184.216.35", 0, false},
		{"connect", "tcp", "198.51.100.1", 8443, true}, // as it was when the profile was loaded
	} {
		d := live.Net(c.question())
		assert.Equal(t, c.allow, d.Allow, "%+v: %s", c, d.Message())
		assert.Equal(t, c.allow && c.host == "198.51.100.1", pol.Net(c.question()).Allow, "the policy itself does not change")
	}
	assert.False(t, pol.Live().Net(tcp("93.184.216.34", 443)).Allow, "another sandbox looked nothing up")

	live.Given("api.example.org", addresses("198.51.100.2"))
	assert.True(t, live.Net(tcp("198.51.100.2", 8443)).Allow, "a new address of an allowed name")
	assert.True(t, live.Net(tcp("198.51.100.1", 8443)).Allow, "and the former one")

	live.Given("other.example.com", addresses("198.51.100.2")) // one address of two names: the rules of both
	assert.True(t, live.Net(tcp("198.51.100.2", 8443)).Allow)
	assert.True(t, live.Net(tcp("198.51.100.2", 443)).Allow)
	assert.Equal(t, "other.example.com", live.NameOf(netip.MustParseAddr("::ffff:198.51.100.2")))

	live.Given("nowhere.example.net", addresses("198.51.100.3")) // no rule speaks of it
	assert.False(t, live.Net(tcp("198.51.100.3", 443)).Allow)
}

func TestARefusedAddressNamesItsName(t *testing.T) {
	live := newWorld(t).policy(t, "net=ALLOW|TCP|*.example.com|443|OUT").Live()
	live.Given("www.example.com", addresses("93.184.216.34"))
	d := live.Net(tcp("93.184.216.34", 80))
	assert.Equal(t, []string{"net=ALLOW|TCP|www.example.com|80|OUT", "net=ALLOW|TCP|93.184.216.34|80|OUT"}, d.Add)
	assert.Contains(t, d.Message(), "A look-up of www.example.com gave that address.")
	d = live.Net(tcp("93.184.216.35", 80))
	assert.Equal(t, []string{"net=ALLOW|TCP|93.184.216.35|80|OUT"}, d.Add)
}

func TestDenyOfANameHoldsAtWhatItGave(t *testing.T) {
	w := newWorld(t)
	w.resolver["evil.example.com"] = []string{"203.0.113.66"}
	live := w.policy(t, "net=ALLOW|TCP|*|*|OUT", "net=DENY|TCP|evil.example.com|80|OUT", "net=DENY|TCP|*.bad.org|*|OUT").Live()
	assert.True(t, live.Net(tcp("203.0.113.67", 80)).Allow)
	live.Given("evil.example.com", addresses("203.0.113.67"))
	assert.False(t, live.Net(tcp("203.0.113.67", 80)).Allow)
	assert.True(t, live.Net(tcp("203.0.113.67", 443)).Allow)
	live.Given("good.example.com", addresses("203.0.113.67"))
	assert.False(t, live.Net(tcp("203.0.113.67", 80)).Allow, "another name of the address changes nothing")
	live.Given("x.bad.org", addresses("203.0.113.68"))
	d := live.Net(tcp("203.0.113.68", 443))
	assert.False(t, d.Allow)
	assert.Contains(t, d.Message(), "net=DENY|TCP|*.bad.org|*|OUT")
}

func TestAnswersDoNotLeadInside(t *testing.T) {
	inside := []string{"127.0.0.1", "10.0.0.5", "169.254.1.1", "169.254.169.254", "0.0.0.0", "::1", "fd00::1", "fe80::1", "::ffff:10.0.0.6", "64:ff9b::a00:7", "2002:a00:8::1", "100.64.0.1", "fd00:ec2::254"}
	live := newWorld(t).policy(t, "net=ALLOW|TCP|*.example.com|8080|OUT", "net=ALLOW|TCP|*.internal|8080|OUT").Live()
	kept, refused := live.Given("trap.example.com", addresses(append(inside, "93.184.216.34")...))
	assert.Equal(t, addresses("93.184.216.34"), kept)
	require.Len(t, refused, len(inside))
	for i, host := range inside {
		assert.False(t, live.Net(tcp(host, 8080)).Allow, host)
		assert.Contains(t, refused[i].Message(), "look-up of trap.example.com", host)
		assert.Contains(t, refused[i].Message(), "leads to "+netip.MustParseAddr(host).String(), host)
	}
	assert.Equal(t, []string{"net=ALLOW|TCP|10.0.0.5|8080|OUT", "net=ALLOW|TCP|@private|8080|OUT"}, refused[1].Add)

	// A name of a private network means a private address, and never the cloud's credentials.
	kept, refused = live.Given("db.internal", addresses("10.0.0.5", "169.254.169.254"))
	assert.Equal(t, addresses("10.0.0.5"), kept)
	assert.Len(t, refused, 1)
	assert.True(t, live.Net(tcp("10.0.0.5", 8080)).Allow)
	assert.False(t, live.Net(tcp("169.254.169.254", 8080)).Allow)

	// A rule that names the range means it.
	for _, line := range []string{"net=ALLOW|TCP|10.0.0.0/8|1|OUT", "net=ALLOW|TCP|@private|1|OUT", "net=ALLOW|TCP|10.0.0.5|1|OUT"} {
		live = newWorld(t).policy(t, "net=ALLOW|TCP|*.example.com|8080|OUT", line).Live()
		kept, _ = live.Given("trap.example.com", addresses("10.0.0.5", "169.254.169.254"))
		assert.Equal(t, addresses("10.0.0.5"), kept, line)
		assert.True(t, live.Net(tcp("10.0.0.5", 8080)).Allow, line)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	w := newWorld(t)
	w.resolver["evil.example.com"] = []string{"203.0.113.66"}
	live := w.policy(t, "net=ALLOW|TCP|*.example.org|443|OUT", "net=ALLOW|TCP|*|80|OUT", "net=DENY|TCP|evil.example.com|80|OUT").Live()
	live.Given("evil.example.com", addresses("203.0.113.67"))
	number := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}) }
	for i := range maxGiven + 100 {
		live.Given("first.example.org", []netip.Addr{number(0)}) // in use all the time
		live.Given(fmt.Sprintf("n%d.example.org", i), []netip.Addr{number(i)})
	}
	assert.Len(t, live.given, maxGiven)
	assert.True(t, live.Net(tcp(number(0).String(), 443)).Allow)
	assert.False(t, live.Net(tcp(number(1).String(), 443)).Allow, "given longest ago")
	assert.True(t, live.Net(tcp(number(maxGiven+99).String(), 443)).Allow)
	assert.False(t, live.Net(tcp("203.0.113.67", 80)).Allow, "a DENY is never forgotten")

	var many []netip.Addr
	for i := range maxGiven + 10 {
		many = append(many, number(i))
	}
	kept, _ := live.Given("many.example.org", many)
	assert.Len(t, kept, maxAnswer)
	for i := 0; i < len(many); i += maxAnswer {
		live.Given("evil.example.com", many[i:min(len(many), i+maxAnswer)])
	}
	kept, _ = live.Given("evil.example.com", addresses("203.0.113.70"))
	assert.Empty(t, kept, "an address whose DENY could not be remembered is not given")
	assert.LessOrEqual(t, len(live.given), maxGiven)
}

// More rules that allow an address never make its verdict wrong, only forgetful.
func TestManyNamesOfOneAddress(t *testing.T) {
	w := newWorld(t)
	var lines []string
	for i := range maxRules + 20 {
		name := fmt.Sprintf("n%d.example.com", i)
		w.resolver[name] = []string{"192.0.2.1"}
		lines = append(lines, fmt.Sprintf("net=ALLOW|TCP|%s|%d|OUT", name, 1000+i))
	}
	live := w.policy(t, lines...).Live()
	for i := range maxRules + 20 {
		live.Given(fmt.Sprintf("n%d.example.com", i), addresses("192.0.2.2"))
	}
	assert.Len(t, live.given[netip.MustParseAddr("192.0.2.2")].allow, maxRules)
	assert.True(t, live.Net(tcp("192.0.2.2", 1000+maxRules+19)).Allow)
}

func TestLiveDecisionsDoNotAllocate(t *testing.T) {
	live := newWorld(t).policy(t, "net=ALLOW|TCP|*.example.com|443|OUT", "net=ALLOW|TCP|192.0.2.1|80|OUT").Live()
	live.Given("www.example.com", addresses("93.184.216.34"))
	for _, q := range []NetQuestion{tcp("93.184.216.34", 443), tcp("192.0.2.1", 80), {"resolve", "", "www.example.com", 0}, tcp("www.example.com", 443)} {
		require.True(t, live.Net(q).Allow)
		assert.Zero(t, testing.AllocsPerRun(100, func() { live.Net(q) }), "%+v", q)
	}
}

func TestLiveIsForManyAtOnce(t *testing.T) {
	live := newWorld(t).policy(t, "net=ALLOW|TCP|*.example.com|443|OUT").Live()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 500 {
				host := netip.AddrFrom4([4]byte{198, 18, byte(i), byte(j)})
				live.Given("a.example.com", []netip.Addr{host})
				assert.True(t, live.Net(tcp(host.String(), 443)).Allow)
				assert.Equal(t, "a.example.com", live.NameOf(host))
			}
		})
	}
	wg.Wait()
}

func TestCoverOfDomains(t *testing.T) {
	rule := func(network string) NetRule {
		n, err := ParseNet([]string{"ALLOW", "TCP", network, "443", "OUT"})
		require.NoError(t, err)
		return n
	}
	for _, c := range []struct {
		wide, narrow string
		covers       bool
	}{
		{"*.example.com", "a.example.com", false}, {"*.example.com", "example.com", false}, {"*.example.com", "*.example.com", true},
		{"*.example.com", "*.a.example.com", true}, {"*.a.example.com", "*.example.com", false}, {"*.example.com", "notexample.com", false},
		{"a.example.com", "*.a.example.com", false}, {"*", "*.example.com", true}, {"*", "*.internal", false}, {"*.example.com", "*", false},
		{"*.example.com", "10.0.0.1", false}, {"*.example.com", "@private", false}, {"@private", "*.example.com", false}, {"0.0.0.0/0", "*.example.com", false},
	} {
		assert.Equal(t, c.covers, rule(c.wide).Covers(rule(c.narrow)), "%s over %s", c.wide, c.narrow)
	}
	deny, err := ParseNet([]string{"DENY", "TCP", "*.example.com", "*", "*"})
	require.NoError(t, err)
	assert.True(t, deny.Covers(rule("a.example.com")), "it takes away all that an ALLOW gives")
	assert.Equal(t, "ALLOW|TCP|*.example.com|443|OUT", rule("*.EXAMPLE.com.").String())
}

func BenchmarkLive(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		pol := large(b, n)
		live := pol.Live()
		for i := range maxGiven {
			live.Given("n.example.com", []netip.Addr{netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})})
		}
		q := tcp("198.51.0.5", 1005)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !live.Net(q).Allow {
					b.Fatal("refused")
				}
			}
		})
	}
}

func FuzzGiven(f *testing.F) {
	f.Add("a.example.com", []byte{10, 0, 0, 1, 93, 184, 216, 34})
	f.Add("x.internal", []byte{169, 254, 169, 254})
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		p := &Policy{lines: make([]line, 4)}
		for i, fields := range []string{"ALLOW|TCP|*.example.com|*|OUT", "ALLOW|TCP|*.internal|*|OUT", "DENY|*|*.bad.example.com|*|*"} {
			r, err := parseNet(strings.Split(fields, "|"))
			require.Nil(t, err)
			r.line = i + 1
			p.net.index(r.deny).put(&r)
		}
		live := p.Live()
		var addrs []netip.Addr
		for len(raw) >= 4 {
			if len(raw) >= 16 {
				addrs = append(addrs, netip.AddrFrom16([16]byte(raw[:16])))
			}
			addrs, raw = append(addrs, netip.AddrFrom4([4]byte(raw[:4]))), raw[4:]
		}
		kept, _ := live.Given(name, addrs)
		for _, a := range kept {
			allowed := live.Net(tcp(a.String(), 443)).Allow
			if allowed && !p.Net(NetQuestion{"resolve", "", name, 0}).Allow {
				t.Fatalf("%q gave %s, and may not be looked up", name, a)
			}
			if allowed && publicName(hostName(name)) && setOf(unfold(a)) != public {
				t.Fatalf("%q leads inside, to %s", name, a)
			}
		}
	})
}
