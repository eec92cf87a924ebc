package providers_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers"
)

// networks is a probe in a network of its own. It skips where this machine gives none.
func networks(t *testing.T, ops ...string) providers.Command {
	t.Helper()
	kernelBoundary(t)
	c := confined(ops...)
	c.Boundary.Filter.Inet, c.Boundary.Filter.UDP, c.Judge = true, true, anywhere{}
	c.Network = providers.Walled
	p, err := providers.Start(c)
	if err != nil {
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
			t.Skipf("no network namespace to be had here: %v", err)
		}
		require.NoError(t, err)
	}
	_, err = p.Wait()
	require.NoError(t, err)
	return c
}

func TestNetworkOfItsOwn(t *testing.T) {
	everyone(t)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	host := "dial=tcp," + l.Addr().String()
	c := networks(t, host, "dial=udp,198.51.100.7:9", "status=caps", "read=/proc/self/status")
	judge := c.Judge
	c.Judge = nil
	got, status := outcome(t, c)
	assert.Zero(t, status)
	assert.Contains(t, got[host], "ECONNREFUSED", "the loopback is its own")
	assert.Contains(t, got["dial=udp,198.51.100.7:9"], "ok ", "datagrams go to the supervisor")
	assert.Equal(t, "0", got["status=caps"], "what init needed is gone")
	assert.Equal(t, "EACCES", got["read=/proc/self/status"])

	plain := c
	plain.Network, plain.Judge = "", judge
	got, _ = outcome(t, plain)
	assert.NotContains(t, got[host], "ECONNREFUSED", "without a network of its own")
}

// Before Linux 5.14 the kernel gives no number of a network namespace.
func TestProvesItsNetworkByItsFile(t *testing.T) {
	everyone(t)
	c := networks(t, "dial=udp,198.51.100.7:9")
	defer providers.WithoutCookie()()
	got, status := outcome(t, c)
	assert.Zero(t, status)
	assert.Contains(t, got["dial=udp,198.51.100.7:9"], "ok ")
}

// A user namespace bounds what is made in it: none is to be had in one with a bound of zero.
func TestFallsBackToTheNetworkOfTheHost(t *testing.T) {
	const inside, bound = "PYSANDBOXES_TEST_NO_NETWORKS", "/proc/sys/user/max_net_namespaces"
	if os.Getenv(inside) == "" {
		networks(t, "tcp")
		c := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
		c.Env = append(os.Environ(), inside+"=1", probeVariable+"="+probe)
		c.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
		}
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "PASS: "+t.Name())
		return
	}
	require.NoError(t, os.WriteFile(bound, []byte("0"), 0))
	c := confined("tcp")
	c.Boundary.Filter.Inet, c.Boundary.Filter.UDP, c.Judge = true, true, anywhere{}
	c.Network = providers.Either
	p := start(t, c)
	_, err := p.Wait()
	require.NoError(t, err)
	assert.Contains(t, strings.Join(p.Notes(), "\n"), "unwalled")

	c.Network = providers.Walled
	_, err = providers.Start(c)
	assert.ErrorIs(t, err, unix.ENOSPC, "asked for by name, it is not replaced")
}

func BenchmarkStartWalled(b *testing.B) {
	for _, network := range []providers.Network{"", providers.Walled} {
		b.Run(fmt.Sprintf("network=%s", network), func(b *testing.B) {
			for range b.N {
				c := confined("exit=0")
				c.Boundary.Filter.Inet, c.Boundary.Filter.UDP, c.Judge = true, true, anywhere{}
				c.Network = network
				p, err := providers.Start(c)
				require.NoError(b, err)
				_, _ = p.Wait()
			}
		})
	}
}

// What a walled sandbox takes of its supervisor ends with it.
func TestWalledLeavesNoDescriptor(t *testing.T) {
	c := networks(t, "dial=udp,198.51.100.7:9")
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(entries)
	}
	run := func() {
		p, err := providers.Start(c)
		require.NoError(t, err)
		_, err = p.Wait()
		require.NoError(t, err)
	}
	run()
	before := count()
	for range 10 {
		run()
	}
	assert.LessOrEqual(t, count(), before)
}
