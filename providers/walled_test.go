package providers_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/broker"
	"github.com/pysandboxes/pysandboxes/providers"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

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

// A server inside is reached from outside at the port of a rule, and from inside as well; at others by nobody.
func TestWalledServe(t *testing.T) {
	if !onHost(t) {
		return
	}
	port := freePort(t)
	program := `
import socket, sys, select
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
try: socket.create_connection(("127.0.0.1", port)).close(); print("somebody listens")
except OSError as x: print(x.errno)
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
