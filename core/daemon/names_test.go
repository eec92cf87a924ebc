package daemon

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/resolver"
	"github.com/pysandboxes/pysandboxes/core/wire"
)

// slow gives one address for every name, once it may.
type slow struct{ gate chan struct{} }

func (s slow) LookupNetIP(ctx context.Context, network, _ string) ([]netip.Addr, error) {
	select {
	case <-s.gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if network == "ip6" {
		return nil, nil
	}
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// What the guard asks about is looked up while the program looks it up, and the connection that follows waits for that.
func TestAConnectionWaitsForWhatItsNameGave(t *testing.T) {
	p, err := profile.Load(profile.Options{Overrides: []profile.Override{{Key: "net", Value: "ALLOW|TCP|*.example.com|443|OUT", Origin: profile.OriginCode}}})
	require.NoError(t, err)
	pol, _, err := policy.Compile(p, policy.Context{Cwd: "/", Home: "/"})
	require.NoError(t, err)
	up := slow{make(chan struct{})}
	n := names{live: pol.Live()}
	n.resolver = resolver.New(resolver.Config{Live: n.live, Upstream: up})
	defer n.close()
	j := judge{policy: pol, names: n, denials: &denials{}}
	ask := func(op, host string, port int) wire.Answer {
		return j.answer(wire.Question{Seq: 1, Op: wire.OpNet, NetOp: op, Proto: "tcp", Host: host, Port: port})
	}
	assert.False(t, ask("connect", "93.184.216.34", 443).Allow)
	assert.False(t, ask("resolve", "www.example.org", 443).Allow)
	assert.True(t, ask("resolve", "www.example.com", 443).Allow, "at once: nobody waits for the look-up before it is needed")
	connected := make(chan wire.Answer)
	go func() { connected <- ask("connect", "93.184.216.34", 443) }()
	close(up.gate)
	assert.True(t, (<-connected).Allow)
	assert.True(t, ask("connect", "93.184.216.34", 443).Allow)
	refused := ask("connect", "93.184.216.34", 80)
	assert.Equal(t, []string{"net=ALLOW|TCP|www.example.com|80|OUT", "net=ALLOW|TCP|93.184.216.34|80|OUT"}, refused.Denial.Add)

	for i := range 100 {
		a := ask("resolve", strings.Repeat("x", 40)+string(rune('a'+i%26))+strings.Repeat("y", i/26)+".example.com", 443)
		if !a.Allow {
			assert.Contains(t, a.Message, "new names below example.com")
			return
		}
	}
	t.Error("names without end")
}
