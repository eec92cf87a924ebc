package providers_test

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers"
)

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
func TestSlowConnect(t *testing.T) {
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
			for _, network := range networksOfRules {
				assert.Equal(t, bare, slowRun(t, program, network), network)
			}
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
