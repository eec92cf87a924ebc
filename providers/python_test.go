package providers_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/providers"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// python is a real interpreter in a boundary of its runtime, without the Python layer: what the kernel's part alone
// does to programs. It is the one on PATH; the test is skipped where there is none.
func python(t *testing.T, program string) providers.Command {
	t.Helper()
	kernelBoundary(t)
	found, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on PATH")
	}
	out, err := exec.Command(found, "-c",
		"import sys, os, json; print(json.dumps([os.path.realpath(sys.executable), sys.base_prefix]))").Output()
	require.NoError(t, err)
	var facts []string
	require.NoError(t, json.Unmarshal(out, &facts))
	c := providers.Command{Provider: "landlock", Child: providers.Child{
		Argv: []string{facts[0], "-I", "-c", program}, InitPath: probe, Stderr: os.Stderr,
	}}
	c.Boundary = &plan.Boundary{Outside: "/"}
	expose(&c, plan.Read|plan.Execute, facts...)
	expose(&c, plan.Read|plan.Execute, "/lib", "/lib64", "/usr/lib", "/etc/ld.so.cache")
	expose(&c, plan.Read|plan.Write, "/dev/null")
	return c
}

// expose grants the canonical paths; missing ones are skipped.
func expose(c *providers.Command, a plan.Access, paths ...string) {
	for _, p := range paths {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			c.Boundary.Rules = append(c.Boundary.Rules, plan.Rule{Path: real, Access: a, Optional: true})
		}
	}
}

// says runs the program and returns what it printed.
func says(t *testing.T, c providers.Command) string {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	c.Child.Stdout = w
	p, err := providers.Start(c)
	w.Close()
	require.NoError(t, err)
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	s, err := p.Wait()
	require.NoError(t, err)
	assert.Zero(t, s)
	return strings.TrimSpace(string(out))
}

// Threads, event loops and executors wake themselves over socket pairs: a filter that stops those hangs them.
func TestPythonConcurrencyNeedsNoGrant(t *testing.T) {
	c := python(t, `
import asyncio, concurrent.futures, threading, time
async def main():
    a = await asyncio.to_thread(sum, [1, 2])
    loop = asyncio.get_running_loop()
    f = loop.create_future()
    threading.Thread(target=lambda: loop.call_soon_threadsafe(f.set_result, 3)).start()
    return a + await f
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(asyncio.run(main()) + sum(pool.map(int, "123")))
`)
	assert.Equal(t, "12", says(t, c))
}

func TestNativeCodeIsHeld(t *testing.T) {
	program := `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def errno(result):
    return os.strerror(ctypes.get_errno()) if result < 0 else "done"
print(errno(libc.open(b"/etc/passwd", 0)))
print(errno(libc.socket(2, 1, 0)))
print(errno(libc.execv(b"/bin/sh", None)))
print(errno(libc.fork()))
print(libc.system(b"exit 7") >> 8)
`
	c := python(t, program)
	assert.Equal(t, "Permission denied\nPermission denied\nPermission denied\nOperation not permitted\n127", says(t, c))
}

func TestPythonProcessesWithAGrant(t *testing.T) {
	tmp := t.TempDir()
	module := filepath.Join(tmp, "work.py")
	require.NoError(t, os.WriteFile(module, []byte(`
import multiprocessing, os, subprocess, sys
def double(n):
    try:
        open("/etc/passwd")
    except PermissionError:
        return 2 * n
def main():
    for how in "fork", "spawn", "forkserver":
        with multiprocessing.get_context(how).Pool(2) as pool:
            print(how, pool.map(double, [1, 2, 3]))
    print(subprocess.run([sys.executable, "-c", "print('child')"], capture_output=True, text=True).stdout.strip())
    pid = os.fork()
    if not pid:
        os._exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    print(os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn("/bin/sh", ["sh", "-c", "exit 6"], {}), 0)[1]))
if __name__ == "__main__":
    main()
`), 0o644))
	c := python(t, "")
	c.Child.Argv = []string{c.Child.Argv[0], module}
	c.Child.Env = []string{"TMPDIR=" + tmp}
	c.Boundary.Filter.Exec, c.Boundary.Filter.Fork, c.Boundary.Filter.UnixDatagram, c.Boundary.Filter.Metadata = true, true, true, true
	c.Files = writableIn("")
	expose(&c, plan.Read|plan.Write, tmp, "/dev/shm")
	expose(&c, plan.Read|plan.Execute, "/bin/sh")
	assert.Equal(t, "fork [2, 4, 6]\nspawn [2, 4, 6]\nforkserver [2, 4, 6]\nchild\n5\n6", says(t, c))
}

// What a program does without thinking, and what must not change under the filter.
func TestPythonOrdinaryThings(t *testing.T) {
	tmp := t.TempDir()
	c := python(t, `
import faulthandler, logging, os, shutil, signal, tempfile, time, resource, socket, zoneinfo
with tempfile.TemporaryDirectory() as d:
    p = os.path.join(d, "a")
    open(p, "w").write("x")
    shutil.copy2(p, p + "2")
    os.rename(p, p + "3")
    os.mkdir(p)
    os.rename(p + "3", os.path.join(p, "moved"))
    os.utime(p)
os.nice(1)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
os.sched_setaffinity(0, os.sched_getaffinity(0))
signal.signal(signal.SIGUSR1, lambda *a: print("signal"))
os.kill(os.getpid(), signal.SIGUSR1)
signal.setitimer(signal.ITIMER_REAL, 0.001)
try:
    signal.signal(signal.SIGALRM, lambda *a: 1 / 0)
    time.sleep(10)
except ZeroDivisionError:
    print("timer")
a, b = socket.socketpair()
s = socket.socket()
s.bind(("127.0.0.1", 0)); s.listen()
k = socket.create_connection(s.getsockname())
print(s.accept()[1] == k.getsockname(), socket.getaddrinfo("127.0.0.1", 80)[0][4])
print(os.get_terminal_size.__name__, os.cpu_count() > 0)
`)
	c.Child.Env = []string{"TMPDIR=" + tmp}
	c.Boundary.Filter.Inet, c.Boundary.Filter.Metadata, c.Boundary.Filter.UnixDatagram, c.Judge = true, true, true, anywhere{}
	c.Files = writableIn("")
	expose(&c, plan.Read|plan.Write, tmp)
	assert.Equal(t, "signal\ntimer\nTrue ('127.0.0.1', 80)\nget_terminal_size True", says(t, c))
}
