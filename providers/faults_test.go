package providers_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers"
)

// What goes wrong around a connection goes wrong as it does bare, whichever way network rules are held.

var networksOfRules = []providers.Network{providers.Unwalled, providers.Walled}

// faulty is the program to is given to, in a boundary or without ("").
func faulty(t *testing.T, network providers.Network, program string, to ...string) providers.Command {
	t.Helper()
	head := "import errno, os, resource, select, signal, socket, sys, threading, time\n" +
		"to = [(a.rsplit(':', 1)[0], int(a.rsplit(':', 1)[1])) for a in sys.argv[1:]]\n"
	c := python(t, head+program)
	c.Child.Argv = append(c.Child.Argv, to...)
	rules := allow()
	for _, address := range to {
		rules.allowed["connect tcp "+address] = true
	}
	c.Boundary.Filter.Inet, c.Boundary.Filter.Fork, c.Network, c.Judge = true, true, network, rules
	if network == "" {
		c.Boundary = nil
	}
	c.Note = func(text string) { t.Errorf("the broker said: %s", text) }
	return c
}

// asBare runs a program bare and in both networks, and gives what it prints everywhere.
func asBare(t *testing.T, program string, to ...string) string {
	t.Helper()
	bare := says(t, faulty(t, "", program, to...))
	for _, network := range networksOfRules {
		assert.Equal(t, bare, says(t, faulty(t, network, program, to...)), network)
	}
	return bare
}

// hole is the address of a listener that takes nobody: whoever connects there waits.
func hole(t *testing.T) string {
	t.Helper()
	address, _ := slow(t)
	return address
}

// A program that may have no further descriptor, or not even those that it has, connects what it has.
func TestNoDescriptorLeftInTheProgram(t *testing.T) {
	if !onHost(t) {
		return
	}
	program := `
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
s = [socket.socket() for _ in range(4)]
e = select.epoll(); e.register(s[1], select.EPOLLOUT)
def told(s):
    s.connect(to[0]); s.sendall(b"hello"); return s.recv(5)
resource.setrlimit(resource.RLIMIT_NOFILE, (e.fileno() + 1, hard))
try: os.dup(0)
except OSError as x: print(x.errno)
print(told(s[0]), told(s[1]), [f == s[1].fileno() for f, _ in e.poll(5)])
resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
print(told(s[2]))
resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
print(told(s[3]), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
`
	bare := asBare(t, program, echo(t, "tcp4", outside4+":0"))
	assert.Equal(t, "24\nb'hello' b'hello' [True]\nb'hello'\nb'hello' 0", bare)
}

// A supervisor that has none left refuses, with an error that is no network's, and goes on when it has again.
func TestNoDescriptorLeftInTheSupervisor(t *testing.T) {
	if !onHost(t) {
		return
	}
	program := `
for line in sys.stdin:
    with socket.socket() as s:
        try: s.connect(to[0]); s.sendall(b"hello"); print(s.recv(5), flush=True)
        except OSError as x: print(errno.errorcode[x.errno], flush=True)
`
	to := echo(t, "tcp4", outside4+":0")
	for _, network := range networksOfRules {
		c := faulty(t, network, program, to)
		c.Note = nil
		in, ask, err := os.Pipe()
		require.NoError(t, err)
		out, told, err := os.Pipe()
		require.NoError(t, err)
		c.Child.Stdin, c.Child.Stdout = in, told
		p, err := providers.Start(c)
		require.NoError(t, err)
		in.Close()
		told.Close()
		answers := bufio.NewScanner(out)
		next := func() string {
			_, err := ask.WriteString("go\n")
			require.NoError(t, err)
			require.True(t, answers.Scan())
			return answers.Text()
		}
		assert.Equal(t, "b'hello'", next(), network)
		var limit unix.Rlimit
		require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: limit.Max}))
		none := next()
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
		assert.Contains(t, []string{"ENFILE", "EMFILE"}, none, network)
		assert.Equal(t, "b'hello'", next(), network)
		ask.Close()
		_, err = p.Wait()
		require.NoError(t, err)
		out.Close()
	}
}

// Processes and threads that end while their call waits leave nothing behind, and hold up nobody.
func TestCallersThatDieInACall(t *testing.T) {
	if !onHost(t) {
		return
	}
	program := `
def waits(where):
    s = socket.socket(); s.connect(where)
for how in ("process", "thread"):
    for _ in range(10):
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.set_blocking(w, True)
            if how == "thread":
                threading.Thread(target=lambda: (os.write(w, b"x"), waits(to[1])), daemon=True).start()
                os.read(r, 1); os.write(w, b"y"); time.sleep(0.02)
                os._exit(0)
            os.write(w, b"y")
            waits(to[1])
            os._exit(1)
        while os.read(r, 1) != b"y": os.write(w, b"x")
        if how == "process":
            time.sleep(0.01)
            os.kill(pid, signal.SIGKILL)
        print(how, os.waitpid(pid, 0)[1])
        os.close(r); os.close(w)
s = socket.create_connection(to[0]); s.sendall(b"hello"); print(s.recv(5))
`
	to, nobody := echo(t, "tcp4", outside4+":0"), hole(t)
	before := servingDescriptors(t)
	bare := asBare(t, program, to, nobody)
	assert.Equal(t, 10, strings.Count(bare, "process 9"))
	assert.Equal(t, 10, strings.Count(bare, "thread 0"))
	assert.Contains(t, bare, "b'hello'")
	assert.LessOrEqual(t, servingDescriptors(t), before)
}

func servingDescriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	count := 0
	for _, e := range entries { // the connections of our own listeners end when they notice
		link, _ := os.Readlink("/proc/self/fd/" + e.Name())
		for _, kind := range []string{"pidfd", "seccomp", "eventfd", "eventpoll"} {
			if strings.Contains(link, kind) {
				count++
			}
		}
	}
	return count
}

// Two hundred at once, half of which never come about: the others do, and those that do not hold up nobody.
func TestTwoHundredConnections(t *testing.T) {
	if !onHost(t) {
		return
	}
	program := `
def begun(where):
    s = socket.socket(); s.setblocking(False)
    return s, s.connect_ex(where)
all = [begun(to[i % 2]) for i in range(200)]
print({errno.errorcode[e] for _, e in all})
p = select.poll()
for s, _ in all: p.register(s, select.POLLOUT)
done = set()
while len(done) < 100:
    for fd, events in p.poll(10000):
        p.unregister(fd); done.add(fd)
good = [s for s, _ in all if s.fileno() in done]
print(len(good), {s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) for s in good}, {s.getpeername() == to[0] for s in good})
for s in good: s.setblocking(True); s.sendall(b"hello")
print({s.recv(5) for s in good})
waiting = [threading.Thread(target=lambda: socket.create_connection(to[1]), daemon=True) for _ in range(20)]
for w in waiting: w.start()
s = socket.create_connection(to[0]); s.sendall(b"last"); print(s.recv(5), flush=True)
os._exit(0)
`
	bare := asBare(t, program, echo(t, "tcp4", outside4+":0"), hole(t))
	assert.Equal(t, "{'EINPROGRESS'}\n100 {0} {True}\n{b'hello'}\nb'last'", bare)
}

// Who waits for a socket before it is connected learns of it, however it waits.
func TestWaitersThatWereThereBefore(t *testing.T) {
	if !onHost(t) {
		return
	}
	ways := map[string]string{
		"select": "lambda s: select.select([], [s], [], 5)[1] == [s]",
		"poll":   "lambda s, p=select.poll(): (p.register(s, select.POLLOUT | select.POLLIN), p.poll(5000))[1] == [(s.fileno(), select.POLLOUT)]",
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			program := fmt.Sprintf(`
ready = %s
s = socket.socket(); s.setblocking(False)
print(errno.errorcode[s.connect_ex(to[0])], ready(s), s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
s.setblocking(True); s.sendall(b"hello"); print(s.recv(5))
e = select.epoll(); s = socket.socket(); e.register(s, select.EPOLLOUT | select.EPOLLONESHOT)
print([x == (s.fileno(), select.EPOLLOUT | select.EPOLLHUP) for x in e.poll(5)], e.poll(0))
s.connect(to[0]); e.modify(s, select.EPOLLIN)
print(e.poll(0), s.sendall(b"hello"), e.poll(5) == [(s.fileno(), select.EPOLLIN)], s.recv(5))
`, way)
			assert.Contains(t, asBare(t, program, echo(t, "tcp4", outside4+":0")), "True 0\nb'hello'")
		})
	}
}

// A client's own port is seen by its server where a rule lets the sandbox be reached there, and is in use as it is bare.
func TestAClientsOwnPort(t *testing.T) {
	if !onHost(t) {
		return
	}
	l, err := net.Listen("tcp4", outside4+":0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprintf(c, "%d", c.RemoteAddr().(*net.TCPAddr).Port)
			c.Close()
		}
	}()
	to, port := l.Addr().String(), freePort(t)
	program := fmt.Sprintf(`
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("0.0.0.0", %d)); s.connect(to[0]); print(s.recv(9).decode(), s.getsockname()[1])
print(int(socket.create_connection(to[0]).recv(9)) == %d)
`, port, port)
	for _, network := range networksOfRules {
		c := faulty(t, network, program, to)
		c.Serves = true
		c.Judge.(*rules).allowed[fmt.Sprintf("bind tcp 0.0.0.0:%d", port)] = true
		assert.Equal(t, fmt.Sprintf("%d %d\nFalse", port, port), says(t, c), network)
	}
}
