package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Clients of all kinds ask the resolver where they find it, at port 53 of what resolv.conf names: in a network and mount
// namespace that this test makes for a copy of itself, as a sandbox has one.

const inside = "PYSANDBOXES_TEST_INSIDE" // names the part of this test that runs in the namespace

// In the namespace: two servers, as many machines have; only the second one answers for some of the tests.
const resolvInside = "nameserver 127.0.0.1\nnameserver 127.0.0.2\nsearch corp.example\noptions timeout:2 attempts:2\n"

// enter runs the test of this name again in namespaces of its own, and reports what came of it. It returns false inside.
func enter(t *testing.T) bool {
	if os.Getenv(inside) == t.Name() {
		settle(t)
		return false
	}
	c := exec.Command("/proc/self/exe", "-test.run", "^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), inside+"="+t.Name())
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		c.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Skipf("no namespaces for this user: %v", err)
	}
	if strings.HasPrefix(string(out), "--- SKIP: "+t.Name()+" ") || strings.Contains(string(out), "\n--- SKIP: "+t.Name()+" ") {
		t.Skip(string(out))
	}
	require.NoError(t, err, "%s", out)
	return true
}

// settle makes the namespace a machine: a loopback device and the files by which names are looked up.
func settle(t *testing.T) {
	require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	require.NoError(t, err)
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
	for path, text := range map[string]string{
		"/etc/resolv.conf": resolvInside, "/etc/hosts": "127.0.0.1 localhost\n10.9.9.9 listed.example.com\n", "/etc/nsswitch.conf": "hosts: files dns\n",
	} {
		file := filepath.Join(t.TempDir(), filepath.Base(path))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		require.NoError(t, os.Chmod(filepath.Dir(file), 0o755))
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			t.Skipf("%s: %v", path, err)
		}
		require.NoError(t, unix.Mount(file, real, "", unix.MS_BIND, ""), path)
	}
}

// at53 serves at an address of the namespace, by the descriptors of its sockets: so a sandbox's are handed over.
func (b *bench) at53(t *testing.T, host string) {
	t.Helper()
	l, err := net.Listen("tcp", host+":53")
	require.NoError(t, err)
	c, err := net.ListenPacket("udp", host+":53")
	require.NoError(t, err)
	number := func(file *os.File, err error) int {
		require.NoError(t, err)
		defer file.Close()
		fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		require.NoError(t, err)
		return fd
	}
	packet, stream := number(c.(*net.UDPConn).File()), number(l.(*net.TCPListener).File())
	l.Close()
	c.Close()
	require.NoError(t, b.ServeSockets(packet, stream))
}

// compiled builds lookup.c.
func compiled(t *testing.T, compiler string, flags ...string) string {
	cc, err := exec.LookPath(compiler)
	if err != nil {
		t.Skipf("%s is not here", compiler)
	}
	program := filepath.Join(t.TempDir(), "lookup")
	out, err := exec.Command(cc, append(append([]string{"-o", program}, flags...), "testdata/lookup.c")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// client looks names up and gives a line for each.
type client func(t *testing.T, family string, names ...string) []string

func program(command ...string) client {
	return func(t *testing.T, family string, names ...string) []string {
		c := exec.Command(command[0], slices.Concat(command[1:], []string{family}, names)...)
		c.Stderr = os.Stderr
		out, err := c.Output()
		require.NoError(t, err, "%s", out)
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
}

func python(t *testing.T, script string) client {
	exe, err := filepath.Abs("../../.venv/bin/python")
	require.NoError(t, err)
	if out, err := exec.Command(exe, "-c", "import pycares, ctypes").CombinedOutput(); err != nil {
		t.Skipf("no Python environment with pycares: %s", out)
	}
	return program(exe, script)
}

func pureGo(t *testing.T, family string, names ...string) []string {
	r := net.Resolver{PreferGo: true}
	var out []string
	for _, name := range names {
		network := map[string]string{"4": "ip4", "6": "ip6", "0": "ip"}[family]
		addrs, err := r.LookupNetIP(context.Background(), network, name)
		var dnsErr *net.DNSError
		switch {
		case errors.As(err, &dnsErr) && dnsErr.IsNotFound:
			out = append(out, name+": no name")
		case err != nil:
			out = append(out, name+": failed")
		case len(addrs) > 8:
			out = append(out, fmt.Sprintf("%s: %d addresses", name, len(addrs)))
		default:
			line := name + ":"
			slices.SortFunc(addrs, func(a, b netip.Addr) int { return strings.Compare(a.Unmap().String(), b.Unmap().String()) })
			for _, a := range addrs {
				line += " " + a.Unmap().String()
			}
			out = append(out, line)
		}
	}
	return out
}

var clients = []struct {
	name string
	make func(t *testing.T) client
}{
	{"glibc", func(t *testing.T) client { return program(compiled(t, "cc")) }},
	{"musl", func(t *testing.T) client { return program(compiled(t, "musl-gcc", "-static")) }},
	{"c-ares", func(t *testing.T) client { return python(t, "testdata/ares.py") }},
	{"Go", func(*testing.T) client { return pureGo }},
}

func TestClientsGetWhatTheyAskFor(t *testing.T) {
	if enter(t) {
		return
	}
	b := newBench(t, everyName...)
	b.at53(t, "127.0.0.1")
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			look := c.make(t)
			assert.Equal(t, []string{
				"api.example.com: 2606:2800:220:1::1 93.184.216.34", "four.example.com: 93.184.216.35", "six.example.com: 2606:2800:220:1::2",
				"db: 10.1.1.1", "localhost: 127.0.0.1", "listed.example.com: 10.9.9.9", "crowded.example.com: many addresses",
			}, plain(look(t, "0", "api.example.com", "four.example.com", "six.example.com", "db", "localhost", "listed.example.com", "crowded.example.com")))
			assert.Equal(t, []string{"api.example.com: 93.184.216.34", "four.example.com: 93.184.216.35"}, look(t, "4", "api.example.com", "four.example.com"))
			assert.Equal(t, []string{"api.example.com: 2606:2800:220:1::1"}, look(t, "6", "api.example.com"))

			// What is refused, or is not there, is said at once: no other server is asked, nothing is tried again.
			for _, line := range look(t, "0", "evil.example.org", "gone.example.com", "evil") {
				assert.Contains(t, line, ": no ", "no name, or no data")
			}
			for _, line := range look(t, "4", "six.example.com", "trap.example.com") {
				assert.Contains(t, line, ": no ")
			}
			assert.LessOrEqual(t, strings.Count(b.messages(), "look-up of evil.example.org:0"), 4, "two families, with the search domain and without: nothing is tried again")
			assert.Contains(t, b.messages(), "net=ALLOW|TCP|evil.example.org|443|OUT")
			assert.Contains(t, b.messages(), "\n    net=ALLOW|TCP|evil|443|OUT")
			for _, asked := range b.zone.queries() {
				assert.NotContains(t, asked, "evil")
			}
			b.mu.Lock()
			b.denied = nil
			b.mu.Unlock()
		})
	}
}

// plain leaves out where clients differ of themselves: ::1 for localhost, and how many they take of a message by UDP that
// says that there are more.
func plain(lines []string) []string {
	for i := range lines {
		for _, six := range []string{"localhost: 127.0.0.1 ::1", "localhost: ::1 127.0.0.1"} {
			lines[i] = strings.Replace(lines[i], six, "localhost: 127.0.0.1", 1)
		}
		lines[i] = regexp.MustCompile(`: (64|29) addresses`).ReplaceAllString(lines[i], ": many addresses")
	}
	return lines
}

// An upstream that fails is a failure that ends soon, and not "no such name".
func TestClientsSeeAFailure(t *testing.T) {
	if enter(t) {
		return
	}
	b := newBench(t, everyName...)
	b.at53(t, "127.0.0.1")
	b.at53(t, "127.0.0.2")
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			look := c.make(t)
			began := time.Now()
			line := look(t, "0", "fails.example.com")[0]
			assert.Regexp(t, ": (again|failed|refused)", line)
			assert.Less(t, time.Since(began), 5*time.Second)
		})
	}
}

// A client that asks all its servers at once from one unconnected socket, and takes an answer only from an address that it
// asked, as musl does: written out here, so that it is there where musl is not.
func TestAClientThatAsksAllServersAtOnce(t *testing.T) {
	if enter(t) {
		return
	}
	b := newBench(t, everyName...)
	b.at53(t, "127.0.0.1")
	b.at53(t, "127.0.0.2")
	c, err := net.ListenUDP("udp4", &net.UDPAddr{})
	require.NoError(t, err)
	defer c.Close()
	raw, _ := query("api.example.com", dns.TypeA).Pack()
	servers := map[netip.AddrPort]bool{}
	for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
		at := netip.AddrPortFrom(netip.MustParseAddr(host), 53)
		servers[at] = false
		_, err := c.WriteToUDPAddrPort(raw, at)
		require.NoError(t, err)
	}
	require.NoError(t, c.SetReadDeadline(time.Now().Add(5*time.Second)))
	for range servers {
		buf := make([]byte, 1232)
		n, from, err := c.ReadFromUDPAddrPort(buf)
		require.NoError(t, err)
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		answered, asked := servers[from]
		require.True(t, asked && !answered, "an answer from %s", from)
		servers[from] = true
		var m dns.Msg
		require.NoError(t, m.Unpack(buf[:n]))
		assert.Equal(t, "NOERROR 93.184.216.34", said(&m))
	}
}
