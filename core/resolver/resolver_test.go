package resolver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// zone is an upstream that answers from a table, and counts what it was asked.
type zone struct {
	names map[string]string // addresses between blanks; "fails", "panics", "waits", "not found at last" (Go's words for NODATA)
	mu    sync.Mutex
	asked []string
	gate  chan struct{} // what "waits" waits for
}

func (z *zone) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	z.mu.Lock()
	z.asked = append(z.asked, network+" "+host)
	z.mu.Unlock()
	name := strings.TrimSuffix(host, ".")
	if name == host {
		panic("a name without its dot would have the search domains added twice")
	}
	notFound := &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	text, known := z.names[name]
	if !known {
		return nil, notFound
	}
	switch text {
	case "fails":
		return nil, &net.DNSError{Err: "server misbehaving", IsTemporary: true}
	case "panics":
		panic("an upstream's own fault")
	case "waits":
		select {
		case <-z.gate:
			text = "192.0.2.99"
		case <-ctx.Done():
			return nil, &net.DNSError{Err: ctx.Err().Error(), IsTimeout: true}
		}
	}
	var out []netip.Addr
	for _, f := range strings.Fields(text) {
		if a := netip.MustParseAddr(f); a.Is4() == (network == "ip4") {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, notFound
	}
	return out, nil
}

func (z *zone) queries() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return append([]string(nil), z.asked...)
}

// LookupIP is the look-up when the profile is loaded.
func (z *zone) LookupIP(host string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, f := range strings.Fields(z.names[host]) {
		if a, err := netip.ParseAddr(f); err == nil {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil // so that the rule stays
	}
	return out, nil
}

// bench is a resolver with what it told.
type bench struct {
	*Resolver
	zone *zone

	mu     sync.Mutex
	denied []policy.Decision
	notes  []string
	clock  atomic.Int64 // seconds
}

var names = map[string]string{
	"api.example.com":     "93.184.216.34 2606:2800:220:1::1",
	"four.example.com":    "93.184.216.35",
	"six.example.com":     "2606:2800:220:1::2",
	"trap.example.com":    "10.0.0.5 169.254.169.254",
	"mixed.example.com":   "10.0.0.5 93.184.216.36",
	"fails.example.com":   "fails",
	"panics.example.com":  "panics",
	"waits.example.com":   "waits",
	"db.corp.example":     "10.1.1.1",
	"deep.a.example.com":  "93.184.216.37",
	"crowded.example.com": crowd(),
}

func crowd() string {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "93.184.217.%d ", i)
	}
	return b.String()
}

func newBench(t testing.TB, rules ...string) *bench {
	t.Helper()
	b := &bench{zone: &zone{names: names, gate: make(chan struct{})}}
	var o profile.Options
	for _, value := range rules {
		o.Overrides = append(o.Overrides, profile.Override{Key: "net", Value: value, Origin: profile.OriginCode})
	}
	p, err := profile.Load(o)
	require.NoError(t, err)
	pol, _, err := policy.Compile(p, policy.Context{Cwd: "/", Home: "/", Resolver: b.zone})
	require.NoError(t, err)
	b.Resolver = New(Config{
		Live: pol.Live(), System: System{Search: []string{"corp.example"}}, Upstream: b.zone,
		Denied: func(d policy.Decision) { b.mu.Lock(); defer b.mu.Unlock(); b.denied = append(b.denied, d) },
		Note:   func(s string) { b.mu.Lock(); defer b.mu.Unlock(); b.notes = append(b.notes, s) },
		now:    func() time.Time { return time.Unix(1000+b.clock.Load(), 0) },
	})
	t.Cleanup(b.Close)
	return b
}

func (b *bench) messages() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, d := range b.denied {
		out = append(out, d.Message())
	}
	return strings.Join(out, "\n")
}

func query(name string, kind uint16) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), kind)
	return m
}

// ask sends a query as bytes and reads the answer, which must fit the question.
func (b *bench) ask(t testing.TB, m *dns.Msg) *dns.Msg {
	t.Helper()
	raw, err := m.Pack()
	require.NoError(t, err)
	reply := b.Answer(context.Background(), raw, false)
	require.NotNil(t, reply)
	var got dns.Msg
	require.NoError(t, got.Unpack(reply))
	require.Equal(t, m.Id, got.Id)
	require.True(t, got.Response)
	return &got
}

func said(m *dns.Msg) string {
	out := dns.RcodeToString[m.Rcode]
	for _, rr := range m.Answer {
		switch v := rr.(type) {
		case *dns.A:
			out += " " + v.A.String()
		case *dns.AAAA:
			out += " " + v.AAAA.String()
		case *dns.PTR:
			out += " " + v.Ptr
		default:
			out += " " + rr.String()
		}
	}
	return out
}

var everyName = []string{"ALLOW|TCP|api.example.com|443|OUT", "ALLOW|TCP|*.example.com|8443|OUT", "ALLOW|TCP|db|5432|OUT", "ALLOW|TCP|@loopback|8000|OUT", "ALLOW|TCP|*.localhost|8000|OUT"}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   uint16
		want   string
		denial string // a part of what is recorded; "" nothing is
	}{
		{"api.example.com", dns.TypeA, "NOERROR 93.184.216.34", ""},
		{"api.example.com", dns.TypeAAAA, "NOERROR 2606:2800:220:1::1", ""},
		{"API.Example.COM", dns.TypeA, "NOERROR 93.184.216.34", ""},
		{"deep.a.example.com", dns.TypeA, "NOERROR 93.184.216.37", ""},
		{"four.example.com", dns.TypeAAAA, "NOERROR", ""}, // NODATA: the name is there
		{"six.example.com", dns.TypeA, "NOERROR", ""},
		{"gone.example.com", dns.TypeA, "NXDOMAIN", ""},
		{"gone.example.com", dns.TypeAAAA, "NXDOMAIN", ""},
		{"fails.example.com", dns.TypeA, "SERVFAIL", ""},
		{"panics.example.com", dns.TypeA, "SERVFAIL", ""},
		{"trap.example.com", dns.TypeA, "NOERROR", "The name leads to 10.0.0.5, which is not public"},
		{"mixed.example.com", dns.TypeA, "NOERROR 93.184.216.36", "The name leads to 10.0.0.5"},
		{"db.corp.example", dns.TypeA, "NOERROR 10.1.1.1", ""},
		{"db", dns.TypeA, "NXDOMAIN", ""}, // as a client asks when the search list is through
		{"localhost", dns.TypeA, "NOERROR 127.0.0.1", ""},
		{"localhost", dns.TypeAAAA, "NOERROR ::1", ""},
		{"app.localhost", dns.TypeA, "NOERROR 127.0.0.1", ""},

		{"evil.example.org", dns.TypeA, "NXDOMAIN", "net=ALLOW|TCP|evil.example.org|443|OUT"},
		{"evil.example.org.corp.example", dns.TypeA, "NXDOMAIN", "net=ALLOW|TCP|evil.example.org|443|OUT"},
		{"evil.example.org", dns.TypeTXT, "NXDOMAIN", "evil.example.org"},
		{"evil.example.org", dns.TypeHTTPS, "NXDOMAIN", "evil.example.org"},
		{"example.com", dns.TypeA, "NXDOMAIN", "net=ALLOW|TCP|example.com|443|OUT"},
		{"corp.example", dns.TypeA, "NXDOMAIN", "corp.example"},
		{"other.corp.example", dns.TypeA, "NXDOMAIN", "net=ALLOW|TCP|other|443|OUT"},
		{".", dns.TypeNS, "NXDOMAIN", "look-up"},
		{"192.0.2.1", dns.TypeA, "NXDOMAIN", "this is not a host's name"},
		{"3405803777", dns.TypeA, "NXDOMAIN", "this is not a host's name"},
		{"0xcb007101", dns.TypeA, "NXDOMAIN", "this is not a host's name"},
		{"<broadcast>", dns.TypeA, "NXDOMAIN", "this is not a host's name"},
		{`a\000b.example.com`, dns.TypeA, "NXDOMAIN", "look-up"},
		{`a\.b.example.com`, dns.TypeA, "NXDOMAIN", "look-up"},

		{"api.example.com", dns.TypeHTTPS, "NOERROR", ""},
		{"api.example.com", dns.TypeSVCB, "NOERROR", ""},
		{"api.example.com", dns.TypeCNAME, "NOERROR", ""},
		{"api.example.com", dns.TypeSOA, "NOERROR", ""},
		{"api.example.com", dns.TypeTXT, "REFUSED", "asked for TXT"},
		{"api.example.com", dns.TypeNULL, "REFUSED", "asked for NULL"},
		{"api.example.com", dns.TypeANY, "REFUSED", "asked for ANY"},
		{"api.example.com", dns.TypeMX, "REFUSED", "asked for MX"},
		{"api.example.com", dns.TypeSRV, "REFUSED", "asked for SRV"},
		{"api.example.com", dns.TypeAXFR, "REFUSED", "asked for AXFR"},
		{"api.example.com", 65280, "REFUSED", "asked for TYPE65280"},

		{"8.8.8.8.in-addr.arpa", dns.TypePTR, "NXDOMAIN", "reverse look-up of 8.8.8.8"},
		{"1.2.in-addr.arpa", dns.TypePTR, "NXDOMAIN", ""},
		{"secret.in-addr.arpa", dns.TypeTXT, "NXDOMAIN", ""},
		{"x.ip6.arpa", dns.TypePTR, "NXDOMAIN", ""},
	} {
		t.Run(c.name+" "+typeName(c.kind), func(t *testing.T) {
			b := newBench(t, everyName...)
			m := query(c.name, c.kind)
			got := b.ask(t, m)
			assert.Equal(t, c.want, said(got))
			assert.Equal(t, m.Question, got.Question, "as it was asked, in its case too")
			if len(got.Answer) == 0 && got.Rcode != dns.RcodeServerFailure && got.Rcode != dns.RcodeRefused {
				require.Len(t, got.Ns, 1, "an SOA record: or clients ask again")
				assert.IsType(t, &dns.SOA{}, got.Ns[0])
			}
			if c.denial == "" {
				assert.Empty(t, b.messages())
			} else {
				assert.Contains(t, b.messages(), c.denial)
			}
			if got.Rcode == dns.RcodeRefused || c.denial != "" && got.Rcode == dns.RcodeNameError {
				assert.Empty(t, b.zone.queries(), "what is refused goes nowhere")
			}
		})
	}
}

func TestAnAnswerMakesItsAddressReachable(t *testing.T) {
	b := newBench(t, everyName...)
	connect := func(host string, port int) bool {
		return b.Live.Net(policy.NetQuestion{Op: "connect", Proto: "tcp", Host: host, Port: port}).Allow
	}
	assert.False(t, connect("93.184.216.35", 8443))
	b.ask(t, query("four.example.com", dns.TypeA))
	assert.True(t, connect("93.184.216.35", 8443))
	assert.False(t, connect("93.184.216.35", 443))
	b.ask(t, query("db.corp.example", dns.TypeA))
	assert.True(t, connect("10.1.1.1", 5432), "the short name's rule")
	b.ask(t, query("mixed.example.com", dns.TypeA))
	assert.False(t, connect("10.0.0.5", 8443))

	got := b.ask(t, query("35.216.184.93.in-addr.arpa", dns.TypePTR))
	assert.Equal(t, "NOERROR four.example.com.", said(got))
	b.ask(t, query("six.example.com", dns.TypeAAAA))
	arpa, err := dns.ReverseAddr("2606:2800:220:1::2")
	require.NoError(t, err)
	assert.Equal(t, "NOERROR six.example.com.", said(b.ask(t, query(arpa, dns.TypePTR))))
}

func TestEdnsAndTruncation(t *testing.T) {
	b := newBench(t, everyName...)
	plain := b.ask(t, query("crowded.example.com", dns.TypeA))
	assert.True(t, plain.Truncated)
	assert.Nil(t, plain.IsEdns0())
	m := query("crowded.example.com", dns.TypeA)
	m.SetEdns0(4096, true)
	got := b.ask(t, m)
	assert.False(t, got.Truncated)
	assert.Len(t, got.Answer, 64)
	require.NotNil(t, got.IsEdns0())
	assert.EqualValues(t, ednsSize, got.IsEdns0().UDPSize())
	m = query("crowded.example.com", dns.TypeA)
	m.SetEdns0(600, false)
	raw, _ := m.Pack()
	assert.LessOrEqual(t, len(b.Answer(context.Background(), raw, false)), 600)
	raw, _ = query("crowded.example.com", dns.TypeA).Pack()
	require.NoError(t, got.Unpack(b.Answer(context.Background(), raw, true)))
	assert.Len(t, got.Answer, 64, "a stream has room")

	m = query("api.example.com", dns.TypeA)
	m.SetEdns0(1232, false)
	m.IsEdns0().SetVersion(1)
	assert.Equal(t, dns.RcodeBadVers, b.ask(t, m).Rcode)
}

func TestWhatIsNoPlainQuery(t *testing.T) {
	b := newBench(t, everyName...)
	change := func(f func(*dns.Msg)) *dns.Msg { m := query("api.example.com", dns.TypeA); f(m); return m }
	for want, m := range map[string]*dns.Msg{
		"NOTIMP":  change(func(m *dns.Msg) { m.Opcode = dns.OpcodeUpdate }),
		"FORMERR": change(func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) }),
		"REFUSED": change(func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }),
	} {
		assert.Equal(t, want, said(b.ask(t, m)))
	}
	raw, _ := query("api.example.com", dns.TypeA).Pack()
	for n := range raw {
		if reply := b.Answer(context.Background(), raw[:n], false); n < 12 {
			assert.Nil(t, reply)
		} else {
			require.NotNil(t, reply, n)
			assert.EqualValues(t, dns.RcodeFormatError, reply[3]&0xf, n)
		}
	}
	raw[2] |= 0x80
	assert.Nil(t, b.Answer(context.Background(), raw, false), "an answer is not answered")
	assert.Empty(t, b.zone.queries())
}

func TestReadingResolvConf(t *testing.T) {
	for text, want := range map[string]string{
		"nameserver 10.0.0.2\nsearch Corp.Example. a.corp.example\noptions ndots:5\n":        "[10.0.0.2:53] [a.corp.example corp.example]",
		"domain one.example\nsearch two.example\n":                                           "[127.0.0.1:53] [two.example]",
		"# nameserver 1.1.1.1\n;nameserver 1.1.1.1\nnameserver fe80::1%eth0\nnameserver x\n": "[[fe80::1%eth0]:53] [host.example]",
		"nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4\n":   "[1.1.1.1:53 1.1.1.2:53 1.1.1.3:53] [host.example]",
		"": "[127.0.0.1:53] [host.example]",
	} {
		s := parseSystem(text, "me.host.example")
		assert.Equal(t, want, fmt.Sprintf("%v %v", s.Servers, s.Search), text)
	}
	assert.Empty(t, parseSystem("", "me").Search)
	assert.Equal(t, "looked up by /etc/hosts and 10.0.0.2, fe80::1%eth0 (search domains a.b); programs in a sandbox cannot ask fe80::1%eth0, which belongs to an interface",
		parseSystem("nameserver 10.0.0.2\nnameserver fe80::1%eth0\nsearch a.b", "me").String())
}

func TestServersInANetworkOfItsOwn(t *testing.T) {
	for text, want := range map[string]string{
		"nameserver 10.0.0.2\nnameserver ::ffff:10.0.0.3\nnameserver 2001:db8::53\n": "[10.0.0.2 10.0.0.3 2001:db8::53]",
		"nameserver fe80::1%eth0\nnameserver fe80::2\nnameserver 10.0.0.2\n":         "[10.0.0.2]",
		"nameserver 224.0.0.1\nnameserver 0.0.0.0\nnameserver ::\n":                  "[127.0.0.1]",
		"": "[127.0.0.1]",
	} {
		assert.Equal(t, want, fmt.Sprint(parseSystem(text, "me").Inside()), text)
	}
}

// What a decision costs on the way of a look-up, beside what it costs to connect (policy.BenchmarkLive).
func BenchmarkAnswer(b *testing.B) {
	for name, host := range map[string]string{"allowed": "api.example.com", "refused": "evil.example.org"} {
		b.Run(name, func(b *testing.B) {
			w := newBench(b, everyName...)
			w.Denied = nil
			raw, _ := query(host, dns.TypeA).Pack()
			w.Answer(context.Background(), raw, false)
			b.ReportAllocs()
			for b.Loop() {
				w.Answer(context.Background(), raw, false)
			}
		})
	}
}
