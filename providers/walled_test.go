package providers_test

import (
	"bufio"
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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/broker"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers"
	"github.com/pysandboxes/pysandboxes/providers/internal/rtnl"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
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

// walledPython runs a program in a walled sandbox and gives what it printed and what was refused.
func walledPython(t *testing.T, r *rules, program string, args ...string) (string, []string) {
	t.Helper()
	c := python(t, program)
	c.Child.Argv = append(c.Child.Argv, args...)
	c.Boundary.Filter.Inet = true
	c.Network = providers.Walled
	c.Judge = r
	var mu sync.Mutex
	var denied []string
	c.Denied = func(d broker.Denial) {
		mu.Lock()
		defer mu.Unlock()
		denied = append(denied, d.Subject)
	}
	c.Note = func(text string) { t.Errorf("the broker said: %s", text) }
	out := says(t, c)
	mu.Lock()
	defer mu.Unlock()
	return out, denied
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

const dialProgram = `
import socket, sys
for to in sys.argv[1:]:
    host, port = to.rsplit(":", 1)
    host = host.strip("[]")
    s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        s.connect((host, int(port)))
        s.sendall(b"hello")
        print(s.recv(5).decode(), s.getpeername()[0] == host, s.getsockname()[1] > 0)
    except OSError as e:
        print(type(e).__name__, e.errno)
    s.close()
`

func TestWalledConnect(t *testing.T) {
	if !onHost(t) {
		return
	}
	four, six := echo(t, "tcp4", outside4+":0"), echo(t, "tcp6", "["+outside6+"]:0")
	local, forbidden := echo(t, "tcp4", "127.0.0.1:0"), echo(t, "tcp4", "127.0.0.1:0")
	r := allow("connect tcp "+four, "connect tcp "+six, "connect tcp "+local, "connect tcp "+outside4+":1")
	out, denied := walledPython(t, r, dialProgram, four, six, local, forbidden, outside4+":1", outside4+":2", "127.0.0.1:3")
	assert.Equal(t, strings.Join([]string{
		"hello True True", "hello True True", "hello True True", "ConnectionRefusedError 111",
		"ConnectionRefusedError 111", "ConnectionRefusedError 111", "ConnectionRefusedError 111",
	}, "\n"), out)
	assert.Equal(t, []string{"connect tcp " + forbidden, "connect tcp " + outside4 + ":2", "connect tcp 127.0.0.1:3"}, denied)
}

// slow is a listener that takes no connection until open is called: the first packet of one is dropped and sent again
// after a second.
func slow(t *testing.T) (address string, open func()) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: netip.MustParseAddr(outside4).As4()}))
	require.NoError(t, unix.Listen(fd, 0))
	f := os.NewFile(uintptr(fd), "listener")
	l, err := net.FileListener(f)
	require.NoError(t, err)
	f.Close()
	t.Cleanup(func() { l.Close() })
	filler, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { filler.Close() })
	var once sync.Once
	return l.Addr().String(), func() {
		once.Do(func() {
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
		})
	}
}

// A connection that takes its time: the program's socket is on the way meanwhile, for every way to wait.
func TestWalledSlowConnect(t *testing.T) {
	if !onHost(t) {
		return
	}
	for name, program := range map[string]string{
		"poll": `
s = socket.socket(); s.setblocking(False)
print(errno.errorcode[s.connect_ex(to)], errno.errorcode[s.connect_ex(to)])
p = select.poll(); p.register(s, select.POLLOUT)
print(p.poll(100), os.write(1, b"open\n") > 0)
events = p.poll(10000)
print(events == [(s.fileno(), select.POLLOUT)], s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), s.getpeername() == to)
s.setblocking(True); s.sendall(b"hello"); print(s.recv(5))
`,
		"epoll": `
s = socket.socket(); s.setblocking(False)
e = select.epoll(); e.register(s, select.EPOLLOUT | select.EPOLLIN | select.EPOLLET)
d = s.dup(); e.register(d, select.EPOLLOUT)
e.poll(0)
print(errno.errorcode[s.connect_ex(to)], errno.errorcode[s.connect_ex(to)])
print(e.poll(0.1), os.write(1, b"open\n") > 0)
print(sorted(e.poll(10)) == sorted([(s.fileno(), select.EPOLLOUT), (d.fileno(), select.EPOLLOUT)]), s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), s.getpeername() == to)
e.modify(d, select.EPOLLIN)
s.setblocking(True); d.send(b"hello"); print(s.recv(5, socket.MSG_PEEK)); print(sorted(x[0] for x in e.poll(5)), d.recv(5))
e.unregister(d); e.unregister(s)
print(os.get_inheritable(s.fileno()))
`,
		"timeout": `
s = socket.socket(); s.settimeout(0.2)
try: s.connect(to)
except TimeoutError: print("timeout")
os.write(1, b"open\n")
try: s.connect(to)
except BlockingIOError as e: print(errno.errorcode[e.errno])
`,
		"asyncio": `
import asyncio
async def main():
    gaps = []
    async def beat():
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.01)
            gaps.append(time.monotonic() - last); last = time.monotonic()
    b = asyncio.create_task(beat())
    c = [asyncio.create_task(asyncio.open_connection(*to)) for _ in range(5)]
    await asyncio.sleep(0.1)
    os.write(1, b"open\n")
    for r, w in [await x for x in c]:
        w.write(b"hello"); print(await r.readexactly(5), w.get_extra_info("peername") == to); w.close()
    b.cancel()
    print(len(gaps) > 10)
asyncio.run(main())
`,
		"signal": `
import signal, threading
s = socket.socket()
signal.signal(signal.SIGALRM, lambda *a: None); signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
threading.Timer(0.3, os.write, (1, b"open\n")).start()
s.connect(to); s.sendall(b"hello"); print(s.recv(5))
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bare := slowRun(t, program, "")
			assert.Equal(t, bare, slowRun(t, program, providers.Walled))
			assert.Equal(t, ends[name], bare[len(bare)-1])
		})
	}
}

// ends is what the programs print at their end.
var ends = map[string]string{"poll": "b'hello'", "epoll": "False", "timeout": "EALREADY", "asyncio": "True", "signal": "b'hello'"}

// slowRun runs the program against a slow listener, in a boundary or without.
func slowRun(t *testing.T, program string, network providers.Network) (lines []string) {
	t.Helper()
	to, open := slow(t)
	c := python(t, "import errno, os, select, socket, sys, time\nto = (sys.argv[1].split(':')[0], int(sys.argv[1].split(':')[1]))\n"+program)
	c.Child.Argv = append(c.Child.Argv, to)
	c.Boundary.Filter.Inet, c.Network, c.Judge = true, network, allow("connect tcp "+to)
	if network == "" {
		c.Boundary = nil
	}
	c.Note = func(text string) { t.Errorf("the broker said: %s", text) }
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	c.Child.Stdout = w
	p, err := providers.Start(c)
	w.Close()
	require.NoError(t, err)
	for out := bufio.NewScanner(r); out.Scan(); {
		if out.Text() == "open" {
			open()
			continue
		}
		lines = append(lines, out.Text())
	}
	_, err = p.Wait()
	require.NoError(t, err)
	return lines
}

// A server inside is reached from outside at the port of a rule, and from inside as well; at others by nobody.
func TestWalledServe(t *testing.T) {
	if !onHost(t) {
		return
	}
	port := freePort(t)
	program := `
import socket, sys, select, time
port = int(sys.argv[1])
own = socket.socket(); own.bind(("127.0.0.1", 0)); own.listen()
k = socket.create_connection(own.getsockname()); print(own.accept()[1] == k.getsockname())
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
e = select.epoll(); e.register(s, select.EPOLLIN)
s.bind(("0.0.0.0", port)); d = s.dup(); s.listen(5)
print(s.getsockname(), s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), d.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
for address in ("0.0.0.0", port + 1), ("10.77.0.1", 80):
    try: x = socket.socket(); x.bind(address); x.listen(); print("listens")
    except OSError as x: print(x.errno)
i = socket.create_connection(("127.0.0.1", port)); c, _ = s.accept(); c.sendall(b"in"); print(i.recv(2))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("0.0.0.0", port))
print("ready", flush=True)
print(e.poll(10) == [(s.fileno(), select.EPOLLIN)])
c, peer = d.accept(); print(peer[0]); c.sendall(c.recv(100)); c.close()
data, peer = u.recvfrom(100); print(data, peer[0]); u.sendto(data, peer)
try: s.connect(("10.77.0.1", 1))
except OSError as x: print(x.errno)
s.close(); d.close()
end = time.monotonic() + 5  # a process that the supervisor is just making has copies of its sockets until its exec
while time.monotonic() < end:
    try: socket.create_connection(("127.0.0.1", port)).close()
    except OSError as x: print(x.errno); break
`
	at := fmt.Sprintf("0.0.0.0:%d", port)
	r := allow("bind tcp "+at, "listen tcp "+at, "bind udp "+at)
	c := python(t, program)
	c.Child.Argv = append(c.Child.Argv, fmt.Sprint(port))
	c.Boundary.Filter.Inet, c.Network, c.Judge, c.Serves = true, providers.Walled, r, true
	c.Note = func(text string) { t.Errorf("the broker said: %s", text) }
	out, w, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	c.Child.Stdout = w
	p, err := providers.Start(c)
	w.Close()
	require.NoError(t, err)
	var lines []string
	for scan := bufio.NewScanner(out); scan.Scan(); lines = append(lines, scan.Text()) {
		if scan.Text() != "ready" {
			continue
		}
		for _, network := range []string{"tcp", "udp"} {
			conn, err := net.Dial(network, net.JoinHostPort(outside4, fmt.Sprint(port)))
			require.NoError(t, err)
			_, err = conn.Write([]byte("hello"))
			require.NoError(t, err)
			reply := make([]byte, 5)
			_, err = io.ReadFull(conn, reply)
			require.NoError(t, err)
			assert.Equal(t, "hello", string(reply))
			conn.Close()
		}
	}
	_, err = p.Wait()
	require.NoError(t, err)
	assert.Equal(t, []string{"True", fmt.Sprintf("('0.0.0.0', %d) 1 1", port), "13", "13", "b'in'", "ready", "True", outside4,
		"b'hello' " + outside4, "106", "111"}, lines)
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Datagrams go where a rule allows it, connected or not, and answers bear the address they come from.
func TestWalledDatagrams(t *testing.T) {
	if !onHost(t) {
		return
	}
	l, err := net.ListenPacket("udp4", outside4+":0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := l.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = l.WriteTo(buf[:n], from)
		}
	}()
	to := l.LocalAddr().String()
	program := `
import ctypes, os, socket, sys
to = (sys.argv[1].split(":")[0], int(sys.argv[1].split(":")[1]))
def ask(s, data, address=None):
    s.settimeout(2)
    try:
        s.sendto(data, address) if address else s.send(data)
        data, sender = s.recvfrom(65536)
        return len(data), sender == (address or to)
    except OSError as e:
        return type(e).__name__
def udp(): return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s = udp(); s.connect(to); print(ask(s, b"x" * 5), s.getpeername() == to)
s = udp(); print(ask(s, b"x" * 5, to), ask(s, b"x" * 20000, to), ask(s, b"", to))
s.settimeout(2); s.sendmsg([b"a", b"b"], [], 0, to); print(s.recv(10))
s = udp(); s.connect((to[0], 9)); print(ask(s, b"x"))       # allowed, nobody there
s = udp(); s.connect((to[0], 10)); print(ask(s, b"x"))      # refused
s = udp(); s.settimeout(0.2); s.sendto(b"x", (to[0], 11))   # refused
try: print(s.recv(1))
except TimeoutError: print("nothing")
s6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s6.settimeout(2); s6.sendto(b"v6", ("::ffff:" + to[0], to[1])); print(s6.recvfrom(9)[0])
a, b = udp(), udp(); a.bind(("127.0.0.1", 0)); b.sendto(b"own", a.getsockname()); print(a.recv(9))
`
	out, denied := walledPython(t, allow("sendto udp "+to, "sendto udp "+outside4+":9"), program, to)
	assert.Equal(t, strings.Join([]string{"(5, True) True", "(5, True) (20000, True) (0, True)", "b'ab'", "ConnectionRefusedError",
		"ConnectionRefusedError", "nothing", "b'v6'", "b'own'"}, "\n"), out)
	assert.Equal(t, []string{"sendto udp " + outside4 + ":10", "sendto udp " + outside4 + ":11"}, denied)
}

// What a connection costs: bare, on the sandbox's own socket, and exchanged.
func TestWalledConnectCost(t *testing.T) {
	if os.Getenv("PYSANDBOXES_TEST_COST") == "" {
		t.Skip("measures; set PYSANDBOXES_TEST_COST=1")
	}
	if !onHost(t) {
		return
	}
	to := echo(t, "tcp4", outside4+":0")
	program := `
import socket, sys, time
to = (sys.argv[1].split(":")[0], int(sys.argv[1].split(":")[1]))
def once(n, block):
    began = time.perf_counter()
    for _ in range(n):
        s = socket.socket(); s.setblocking(block)
        s.connect_ex(to); s.close()
    return (time.perf_counter() - began) / n * 1e6
once(200, True)
rounds = sorted(once(200, True) for _ in range(9)); print(f"blocking {rounds[4]:.1f} us")
rounds = sorted(once(200, False) for _ in range(9)); print(f"not blocking {rounds[4]:.1f} us")
`
	for range 2 {
		for _, network := range []providers.Network{"", providers.Unwalled, providers.Walled} {
			c := python(t, program)
			c.Child.Argv = append(c.Child.Argv, to)
			c.Boundary.Filter.Inet, c.Network, c.Judge = true, network, allow("connect tcp "+to)
			if network == "" {
				c.Boundary = nil
			} else if network == providers.Unwalled {
				c.Boundary.Filter.Ask = seccomp.AskConnect
			}
			t.Logf("%q: %s", network, strings.ReplaceAll(says(t, c), "\n", ", "))
		}
	}
}
