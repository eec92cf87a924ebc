package broker

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestPacketsSurviveTheWay(t *testing.T) {
	for _, f := range []flow{
		{netip.MustParseAddrPort("192.0.2.1:1000"), netip.MustParseAddrPort("198.51.100.7:53")},
		{netip.MustParseAddrPort("[2001:db8::1]:1000"), netip.MustParseAddrPort("[2001:db8::7]:53")},
	} {
		raw := datagram(f, []byte("odd"))
		p, ok := parsePacket(raw)
		require.True(t, ok)
		assert.Equal(t, f, p.flow)
		assert.Equal(t, "odd", string(p.payload))
		header := headerIP
		if f.from.Addr().Is6() {
			header = headerIP6
		}
		assert.Zero(t, checksum(pseudo(f, unix.IPPROTO_UDP, len(raw)-header), raw[header:]), "the sum over all is zero")

		p, ok = parsePacket(tcp(f, 7, 0, tcpSYN))
		require.True(t, ok)
		assert.Equal(t, uint32(7), p.seq)
		assert.Equal(t, f, p.flow)

		for n := range raw { // cut anywhere, or with a length that is not there
			_, _ = parsePacket(raw[:n])
		}
		raw[header+4], raw[header+5] = 0xff, 0xff
		_, ok = parsePacket(raw)
		assert.False(t, ok, "a datagram that claims to be longer than it is")
	}
	_, ok := parsePacket([]byte{0x4f})
	assert.False(t, ok)
}

func FuzzPacket(f *testing.F) {
	f.Add(datagram(flow{netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:2")}, []byte("x")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, ok := parsePacket(raw)
		if ok && len(p.payload) > len(raw) {
			t.Fatal("more than there was")
		}
	})
}

func TestStandInsStandForOneAddress(t *testing.T) {
	var s standIns
	seen := map[netip.Addr]bool{}
	for _, real := range []string{"127.0.0.1", "127.0.0.9", "::1"} {
		for _, connected := range []bool{false, true} {
			a, ok := s.of(netip.MustParseAddr(real), connected)
			require.True(t, ok)
			assert.False(t, seen[a])
			seen[a] = true
			again, _ := s.of(netip.MustParseAddr(real), connected)
			assert.Equal(t, a, again)
			back, was, ok := s.standsFor(a)
			require.True(t, ok)
			assert.Equal(t, real, back.String())
			assert.Equal(t, connected, was)
		}
	}
	_, _, ok := s.standsFor(netip.MustParseAddr("198.18.255.1"))
	assert.False(t, ok, "one that was never given")
	for n := 0; n < maxStandIns; n++ {
		_, _ = s.of(netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)}), false)
	}
	_, ok = s.of(netip.MustParseAddr("127.2.0.1"), false)
	assert.False(t, ok, "there is a bound")
}

func TestOptionsAreCarried(t *testing.T) {
	made := func() int {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	from, to := made(), made()
	for _, o := range []struct{ level, name, value int }{
		{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1}, {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1}, {unix.SOL_SOCKET, unix.SO_REUSEADDR, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 77}, {unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1}, {unix.SOL_SOCKET, unix.SO_RCVBUF, 50000},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 1234}, {unix.IPPROTO_IP, unix.IP_TOS, 16},
	} {
		require.NoError(t, unix.SetsockoptInt(from, o.level, o.name, o.value))
		want, err := unix.GetsockoptInt(from, o.level, o.name)
		require.NoError(t, err)
		before, err := unix.GetsockoptInt(to, o.level, o.name)
		require.NoError(t, err)
		require.NotEqual(t, want, before)
		require.Zero(t, carryOptions(from, to, unix.AF_INET6, true))
		got, err := unix.GetsockoptInt(to, o.level, o.name)
		require.NoError(t, err)
		assert.Equal(t, want, got, "%d %d", o.level, o.name)
	}
	limit := unix.Timeval{Sec: 3, Usec: 4000}
	require.NoError(t, unix.SetsockoptTimeval(from, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit))
	require.Zero(t, carryOptions(from, to, unix.AF_INET6, true))
	got, err := unix.GetsockoptTimeval(to, unix.SOL_SOCKET, unix.SO_RCVTIMEO)
	require.NoError(t, err)
	assert.Equal(t, limit.Sec, got.Sec)

	require.NoError(t, unix.SetsockoptInt(from, unix.IPPROTO_TCP, unix.TCP_NODELAY, 0))
	require.Zero(t, carryOptions(from, to, unix.AF_INET6, false))
	now, err := unix.GetsockoptInt(to, unix.IPPROTO_TCP, unix.TCP_NODELAY)
	require.NoError(t, err)
	assert.Zero(t, now, "what was set back meanwhile")
}
