package providers_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/internal/rtnl"
)

// The tests of a walled sandbox run in a network namespace of their own, as the host of the sandboxes that they start: it
// has an address outside the loopback network, and others that nobody answers.
const (
	hostVariable = "PYSANDBOXES_TEST_HOST"
	outside4     = "10.77.0.1"
	outside6     = "fd77::1"
	blackHole    = "10.88.0.1"
)

// onHost runs the test in such a namespace: as root, then as an unprivileged user; where it does not run as root, as root
// of a user namespace.
func onHost(t *testing.T) bool {
	t.Helper()
	kernelBoundary(t)
	if os.Getenv(hostVariable) != "" {
		return true
	}
	for _, user := range []uint32{0, nobody} {
		if user != 0 && os.Geteuid() != 0 {
			continue
		}
		name := strings.Split(t.Name(), "/")[0]
		t.Run(fmt.Sprintf("user=%d", user), func(t *testing.T) {
			mine, err := os.Executable()
			require.NoError(t, err)
			self := dirOf(t) + "/test"
			data, err := os.ReadFile(mine)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(self, data, 0o755))
			c := exec.Command(self, "-test.run", "^"+name+"$", "-test.v")
			c.Dir = "/"
			c.Env = append(os.Environ(), hostVariable+"="+fmt.Sprint(user), probeVariable+"="+probe, "TMPDIR=/tmp")
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
			if os.Geteuid() != 0 {
				c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
				c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
				c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
			}
			out, err := c.CombinedOutput()
			if strings.Contains(string(out), "SKIP: "+name) {
				t.Skipf("%s", out)
			}
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "PASS: "+name)
			t.Logf("%s", out)
		})
	}
	return false
}

// dirOf is a folder that everyone may read.
func dirOf(t *testing.T) string {
	dir, err := os.MkdirTemp("", "providers-host-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// hostNetwork sets the namespace up, and goes on as the user that the test is for.
func hostNetwork() error {
	link, err := rtnl.Open()
	if err != nil {
		return err
	}
	defer link.Close()
	if err := link.Up(); err != nil {
		return err
	}
	for _, a := range []string{outside4, outside6, "192.0.2.9"} {
		if err := link.Address(netip.MustParseAddr(a), true); err != nil {
			return err
		}
	}
	if err := link.Outward(netip.MustParseAddr("192.0.2.9")); err != nil {
		return err
	}
	if os.Getenv(hostVariable) == "0" {
		return nil
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(nobody, nobody, nobody); err != nil {
		return err
	}
	if err := syscall.Setresuid(nobody, nobody, nobody); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
}

// rules allows what is in it: "connect tcp 10.77.0.1:80".
type rules struct {
	mu      sync.Mutex
	allowed map[string]bool
	asked   []string
}

func allow(lines ...string) *rules {
	r := &rules{allowed: map[string]bool{}}
	for _, l := range lines {
		r.allowed[l] = true
	}
	return r
}

func (r *rules) Net(q policy.NetQuestion) policy.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := q.Op + " " + q.Proto + " " + net.JoinHostPort(q.Host, fmt.Sprint(q.Port))
	r.asked = append(r.asked, line)
	return policy.Decision{Allow: r.allowed[line], Family: "net", Op: q.Op, Subject: line}
}

// echo serves at an address: what comes goes back. It returns the address.
func echo(t *testing.T, network, address string) string {
	t.Helper()
	l, err := net.Listen(network, address)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
