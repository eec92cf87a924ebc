package resolver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// What is kept, what is waited for, what is bounded.

func TestNamesAreLookedUpOnceInAWhile(t *testing.T) {
	b := newBench(t, everyName...)
	for range 3 {
		got := b.ask(t, query("api.example.com", dns.TypeA))
		assert.LessOrEqual(t, got.Answer[0].Header().Ttl, uint32(keepFound/time.Second))
	}
	assert.Equal(t, []string{"ip4 api.example.com."}, b.zone.queries())
	b.clock.Add(int64(keepFound / time.Second))
	b.ask(t, query("api.example.com", dns.TypeA))
	assert.Len(t, b.zone.queries(), 2)

	for range 3 {
		b.ask(t, query("gone.example.com", dns.TypeA))
	}
	assert.Len(t, b.zone.queries(), 4, "both families, to tell no name from no address")
}

func TestManyWhoAskForOneNameWaitForOneLookUp(t *testing.T) {
	b := newBench(t, everyName...)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			assert.Equal(t, "NOERROR 192.0.2.99", said(b.ask(t, query("waits.example.com", dns.TypeA))))
		})
	}
	for len(b.zone.queries()) == 0 {
		time.Sleep(time.Millisecond)
	}
	close(b.zone.gate)
	wg.Wait()
	assert.Equal(t, []string{"ip4 waits.example.com."}, b.zone.queries())
}

func TestAnUpstreamThatHangsIsAFailure(t *testing.T) {
	b := newBench(t, everyName...)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	raw, _ := query("waits.example.com", dns.TypeA).Pack()
	var got dns.Msg
	require.NoError(t, got.Unpack(b.Answer(ctx, raw, false)))
	assert.Equal(t, dns.RcodeServerFailure, got.Rcode)
}

func TestTheBudgetBelowADomain(t *testing.T) {
	b := newBench(t, everyName...)
	label := strings.Repeat("x", 50)
	sent := 0
	for i := range 100 {
		if b.ask(t, query(fmt.Sprintf("%s%d.example.com", label, i), dns.TypeA)).Rcode == dns.RcodeNameError {
			sent++
		}
	}
	assert.Less(t, sent*len(label), budgetBytes)
	assert.Greater(t, sent*(len(label)+16), budgetBytes/2, "it is not less than it says")
	assert.Len(t, b.notes, 1, "said once")
	assert.Contains(t, b.notes[0], "below example.com")
	assert.Contains(t, b.messages(), "more than 1024 bytes of new names below example.com")
	asked := len(b.zone.queries())
	assert.LessOrEqual(t, asked, 2*sent)

	assert.Equal(t, dns.RcodeNameError, b.ask(t, query(label+"0.example.com", dns.TypeA)).Rcode, "asked before")
	assert.Equal(t, "NOERROR 93.184.216.34", said(b.ask(t, query("api.example.com", dns.TypeA))), "a rule of its own has no bound")
	b.clock.Add(60)
	assert.Equal(t, dns.RcodeNameError, b.ask(t, query(label+"new.example.com", dns.TypeA)).Rcode, "another minute")
}

func TestNamesOfEtcHosts(t *testing.T) {
	b := newBench(t, "ALLOW|TCP|*.example.com|443|OUT", "DENY|*|*.not.example.com|*|*")
	giveListed(b.Live, "# a comment\n198.51.100.1 a.Example.com b.example.com. # 198.51.100.9 c.example.com\n198.51.100.2\ta.example.com\n"+
		"198.51.100.3 other.example.org x.not.example.com\n10.0.0.5 inner.example.com\nnonsense d.example.com\n198.51.100.4\n2001:db8::1 a.example.com")
	for host, allow := range map[string]bool{"198.51.100.1": true, "198.51.100.2": true, "2001:db8::1": true,
		"198.51.100.3": false, "10.0.0.5": false, "198.51.100.4": false, "198.51.100.9": false} {
		assert.Equal(t, allow, b.Live.Net(policy.NetQuestion{Op: "connect", Proto: "tcp", Host: host, Port: 443}).Allow, host)
	}
	assert.Empty(t, b.messages())
	b = newBench(t, "ALLOW|TCP|192.0.2.1|443|OUT")
	GiveListed(b.Live)
}

func TestExpectAndSettle(t *testing.T) {
	b := newBench(t, everyName...)
	assert.False(t, b.Settle())
	for _, name := range []string{"four.example.com.", "not a name", "panics.example.com", "evil.example.org", "DB"} {
		_, ok := b.Expect(name)
		assert.True(t, ok)
	}
	b.Settle()
	assert.True(t, b.Live.Net(policy.NetQuestion{Op: "connect", Proto: "tcp", Host: "93.184.216.35", Port: 8443}).Allow)
	assert.True(t, b.Live.Net(policy.NetQuestion{Op: "connect", Proto: "tcp", Host: "10.1.1.1", Port: 5432}).Allow, "by a search domain")
	assert.NotContains(t, fmt.Sprint(b.zone.queries()), "evil")
	for i := range 40 {
		if d, ok := b.Expect(fmt.Sprintf("%s%d.example.com", strings.Repeat("x", 50), i)); !ok {
			assert.Contains(t, d.Message(), "more than 1024 bytes of new names")
			b.Close()
			b.Expect("six.example.com")
			assert.False(t, b.Settle())
			return
		}
	}
	t.Error("names without end")
}

func TestNothingIsExpectedOfAClosedResolver(t *testing.T) {
	b := newBench(t, everyName...)
	b.Close()
	b.Expect("six.example.com")
	assert.False(t, b.Settle())
}
