package resolver

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func listening(t testing.TB, b *bench) netip.AddrPort {
	t.Helper()
	at, err := b.Listen()
	require.NoError(t, err)
	return at[0]
}

func TestServingByUDPAndTCP(t *testing.T) {
	b := newBench(t, everyName...)
	at, err := b.Listen()
	require.NoError(t, err)
	for _, where := range at {
		for _, network := range []string{"udp", "tcp"} {
			c := dns.Client{Net: network}
			got, _, err := c.Exchange(query("api.example.com", dns.TypeA), where.String())
			require.NoError(t, err)
			assert.Equal(t, "NOERROR 93.184.216.34", said(got))
			got, _, err = c.Exchange(query("evil.example.org", dns.TypeA), where.String())
			require.NoError(t, err)
			assert.Equal(t, "NXDOMAIN", said(got))
		}
	}
}

// A name whose server does not answer holds up no other.
func TestAWaitingLookUpHoldsUpNoOther(t *testing.T) {
	b := newBench(t, everyName...)
	at := listening(t, b).String()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			got, err := dns.Exchange(query("waits.example.com", dns.TypeA), at)
			if assert.NoError(t, err) {
				assert.Equal(t, "NOERROR 192.0.2.99", said(got))
			}
		})
	}
	for len(b.zone.queries()) == 0 {
		runtime.Gosched()
	}
	got, err := dns.Exchange(query("api.example.com", dns.TypeA), at)
	require.NoError(t, err)
	assert.Equal(t, "NOERROR 93.184.216.34", said(got))
	close(b.zone.gate)
	wg.Wait()
}

func TestOneStreamAfterTheOther(t *testing.T) {
	b := newBench(t, everyName...)
	at := listening(t, b)
	c, err := net.Dial("tcp", at.String())
	require.NoError(t, err)
	defer c.Close()
	for range 3 { // on one connection, the length in a packet of its own
		raw, _ := query("api.example.com", dns.TypeA).Pack()
		_, err = c.Write(binary.BigEndian.AppendUint16(nil, uint16(len(raw))))
		require.NoError(t, err)
		_, err = c.Write(raw)
		require.NoError(t, err)
		var head [2]byte
		_, err = io.ReadFull(c, head[:])
		require.NoError(t, err)
		reply := make([]byte, binary.BigEndian.Uint16(head[:]))
		_, err = io.ReadFull(c, reply)
		require.NoError(t, err)
		var m dns.Msg
		require.NoError(t, m.Unpack(reply))
		assert.Equal(t, "NOERROR 93.184.216.34", said(&m))
	}
}

// Connections that say nothing, or half of something, keep nobody out and are gone with the resolver.
func TestStreamsAreBounded(t *testing.T) {
	b := newBench(t, everyName...)
	at := listening(t, b).String()
	before := runtime.NumGoroutine()
	var open []net.Conn
	for range 3 * maxStreams {
		c, err := net.Dial("tcp", at)
		require.NoError(t, err)
		_, _ = c.Write([]byte{0xff})
		open = append(open, c)
	}
	assert.Less(t, runtime.NumGoroutine(), before+2*maxStreams)
	got, err := dns.Exchange(query("api.example.com", dns.TypeA), at)
	require.NoError(t, err)
	assert.Equal(t, "NOERROR 93.184.216.34", said(got))
	began := time.Now()
	b.Close()
	assert.Less(t, time.Since(began), idleStreams/2)
	for _, c := range open {
		c.Close()
	}
}

func TestCloseEndsWhatWaits(t *testing.T) {
	b := newBench(t, everyName...)
	at := listening(t, b).String()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		c := dns.Client{Timeout: time.Second}
		_, _, _ = c.Exchange(query("waits.example.com", dns.TypeA), at)
	}()
	for len(b.zone.queries()) == 0 {
		runtime.Gosched()
	}
	began := time.Now()
	b.Close()
	b.Close()
	assert.Less(t, time.Since(began), lookupTime/2)
	<-answered
	c, err := net.ListenUDP("udp", nil)
	require.NoError(t, err)
	require.NoError(t, b.ServePacket(c), "a closed resolver serves nothing and leaves nothing open")
	_, err = c.WriteTo([]byte{1}, c.LocalAddr())
	assert.ErrorIs(t, err, net.ErrClosed)
}
