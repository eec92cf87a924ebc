package daemon

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/interpreter"
	"github.com/pysandboxes/pysandboxes/core/wire"
	"github.com/pysandboxes/pysandboxes/providers"
)

// world is one test's machine: a folder with a profile, a home, and the pipes of the child.
type world struct {
	t       *testing.T
	spec    Spec
	dir     string
	stdin   *os.File // our end
	out     chan string
	started *Child
}

func newWorld(t *testing.T, profileText string, scenario ...string) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	preload := anyLibrary(t)
	path := filepath.Join(dir, ".py-sandboxes")
	require.NoError(t, os.WriteFile(path, []byte(profileText), 0o644))

	outRead, outWrite, err := os.Pipe()
	require.NoError(t, err)
	inRead, inWrite, err := os.Pipe()
	require.NoError(t, err)
	w := &world{t: t, dir: dir, stdin: inWrite, out: make(chan string, 1)}
	w.spec = Spec{
		ProfilePath: path, Searched: []string{path},
		Env:         map[string]string{"HOME": dir + "/home", "GIVEN_BY_HOST": "yes"},
		Interpreter: &interpreter.Interpreter{Executable: self, Version: "3.11", Package: "/nowhere", Guard: "/nowhere/_guard.so", Preload: preload},
		PythonArgs:  append([]string{"fake"}, scenario...), Cwd: dir, Mode: wire.ModeComplete,
		Stdio: [3]*os.File{inRead, outWrite, outWrite}, InitPath: self, StartTimeout: 20 * time.Second,
	}
	go func() {
		data, _ := io.ReadAll(outRead)
		w.out <- string(data)
	}()
	t.Cleanup(func() {
		if w.started != nil {
			assert.NoError(t, w.started.Stop(false, 0))
		}
		for _, f := range []*os.File{inRead, inWrite, outWrite, outRead} {
			f.Close()
		}
	})
	return w
}

// anyLibrary is a shared library that does no harm when it is preloaded; the guard's own is not built here.
func anyLibrary(t *testing.T) string {
	for _, pattern := range []string{"/lib/*-linux-gnu/libm.so.6", "/lib64/libm.so.6", "/usr/lib/libm.so.6"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	t.Skip("no libm.so.6 at hand")
	return ""
}

func (w *world) start() *Child {
	w.t.Helper()
	c, err := Start(context.Background(), w.spec)
	require.NoError(w.t, err)
	w.started = c
	return c
}

// output ends the child's output and gives it.
func (w *world) output() string {
	w.t.Helper()
	w.spec.Stdio[1].Close()
	select {
	case text := <-w.out:
		return text
	case <-time.After(20 * time.Second):
		w.t.Fatal("the child's output does not end")
		return ""
	}
}

// finish waits for the child and gives what it printed and how it ended.
func (w *world) finish() (string, int, syscall.Signal) {
	w.t.Helper()
	status, err := w.started.Wait()
	require.NoError(w.t, err)
	return w.output(), status.Code, status.Signal
}

// The second line keeps a child that was built with -race from resting a second at its end.
const subprocess = "os-sandbox=subprocess\nenv=GORACE=atexit_sleep_ms=0\n"

func TestAChildGetsAnswersFromThePolicy(t *testing.T) {
	w := newWorld(t, subprocess+"expose-ro=./data\n", "asks", "DATA", "/etc/passwd")
	data := filepath.Join(w.dir, "data")
	require.NoError(t, os.Mkdir(data, 0o755))
	w.spec.PythonArgs[2] = data + "/x"
	c := w.start()
	assert.Equal(t, "subprocess", c.Provider())
	assert.Contains(t, strings.Join(c.Notices(), "\n"), "no kernel boundary")
	out, code, _ := w.finish()
	assert.Equal(t, 7, code, "the exit code is the program's")
	lines := strings.Split(out, "\n")
	require.GreaterOrEqual(t, len(lines), 7)
	assert.Equal(t, "file allow=true exc=0 errno=0 ", lines[0])
	assert.Contains(t, lines[1], "allow=false exc=1 errno=2 ")
	assert.True(t, strings.HasSuffix(lines[1], "expose-ro=/etc/passwd"), lines[1])
	assert.Contains(t, lines[2], "allow=false exc=2 errno=13 ", "what may be read but not written is there")
	assert.Contains(t, lines[3], "import allow=false exc=4 ")
	assert.True(t, strings.HasSuffix(lines[3], "python-import=json"), lines[3])
	assert.Contains(t, lines[4], "call allow=false exc=5 errno=1 ")
	assert.Contains(t, lines[5], "net allow=false exc=3 errno=111 ")
	assert.Contains(t, lines[6], "eval allow=false exc=6 ")

	denials := c.Denials()
	require.Len(t, denials, 6)
	assert.Equal(t, "/etc/passwd", denials[0].Subject)
	assert.Equal(t, "python", denials[0].Layer)
	assert.Equal(t, 1, denials[0].Count)
	assert.Contains(t, denials[0].Add, "expose-ro=/etc/passwd")
}

func TestTheKernelsBoundaryStands(t *testing.T) {
	w := newWorld(t, "", "asks", "/etc/passwd")
	// The fake child is this test's binary: it needs no more than the loader's folders.
	w.spec.Interpreter.Runtime.Read = []string{"/usr/lib", "/lib", "/lib64", "/etc/ld.so.cache", "/sys/kernel/mm"}
	w.spec.Interpreter.Guard, w.spec.Interpreter.Package = filepath.Join(w.dir, "_guard.so"), w.dir
	plan, err := Prepare(w.spec)
	if err != nil && strings.Contains(err.Error(), "no provider with a kernel boundary") {
		t.Skip(err)
	}
	require.NoError(t, err)
	assert.Equal(t, "landlock", plan.Provider())
	c, err := plan.Start(context.Background())
	require.NoError(t, err)
	w.started = c
	out, code, _ := w.finish()
	assert.Equal(t, 7, code, out)
	assert.Contains(t, out, "expose-ro=/etc/passwd")
}

func TestTheEnvironmentIsTheProfiles(t *testing.T) {
	t.Setenv("HIDDEN", "secret")
	w := newWorld(t, subprocess+"env=GIVEN=${GIVEN_BY_HOST}\n", "environment")
	w.start()
	out, _, _ := w.finish()
	assert.Equal(t, "yes true\n", out)
}

func TestTheUsersOwnPackagesAreFoundWithoutAHome(t *testing.T) {
	for line, want := range map[string]string{"": "/u/.local", "env=HOME=/h\n": "", "env=PYTHONUSERBASE=/b\n": "/b"} {
		w := newWorld(t, subprocess+line, "waits")
		w.spec.Interpreter.UserSite = []string{"/u/.local/lib/python3.11/site-packages"}
		p, err := Prepare(w.spec)
		require.NoError(t, err)
		got := ""
		for _, entry := range p.environ() {
			if value, found := strings.CutPrefix(entry, "PYTHONUSERBASE="); found {
				got = value
			}
		}
		assert.Equal(t, want, got, line)
	}
}

func TestEveryProcessHasItsOwnSocket(t *testing.T) {
	w := newWorld(t, subprocess, "two processes")
	w.start()
	out, code, _ := w.finish()
	assert.Equal(t, 0, code)
	for _, path := range []string{"/a", "/b", "/c"} {
		assert.Contains(t, out, "expose-ro="+path+"\n")
	}
}

func TestAStartThatFailsSaysWhy(t *testing.T) {
	for scenario, says := range map[string]string{
		"other version": "is version 9.9",
		"ends early":    "ended with exit code 3 before its guard spoke",
		"dies early":    "was killed by signal 9 (SIGKILL) before its guard spoke",
		"guard fails":   "its guard refused to run",
		"no scenario":   "ended with exit code 99 before",
	} {
		t.Run(scenario, func(t *testing.T) {
			w := newWorld(t, subprocess, scenario)
			_, err := Start(context.Background(), w.spec)
			assert.ErrorContains(t, err, says)
			w.output()
		})
	}
	t.Run("silent", func(t *testing.T) {
		w := newWorld(t, subprocess, "silent")
		w.spec.StartTimeout = 300 * time.Millisecond
		_, err := Start(context.Background(), w.spec)
		assert.ErrorContains(t, err, "did not speak within 300ms")
		w.output() // ends, so the child is gone
	})
	t.Run("given up", func(t *testing.T) {
		w := newWorld(t, subprocess, "silent")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := Start(ctx, w.spec)
		assert.ErrorContains(t, err, "given up")
		assert.ErrorIs(t, err, context.Canceled)
		w.output()
	})
	t.Run("never ready for calls", func(t *testing.T) {
		w := newWorld(t, subprocess, "never ready")
		w.spec.WithCalls, w.spec.StartTimeout = true, 500*time.Millisecond
		_, err := Start(context.Background(), w.spec)
		assert.ErrorContains(t, err, "did not get ready for calls")
		w.output()
	})
}

func TestAChildThatBreaksTheProtocolGetsNoMoreAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		scenario []string
		wants    []string
	}{
		"question before hello": {[]string{"question before hello"}, []string{"closed", "expose-ro=/a"}},
		"hello twice":           {[]string{"hello twice"}, []string{"closed"}},
		"garbage":               {[]string{"garbage", "\xc1\xc1"}, []string{"after garbage: EOF", "expose-ro=/a"}},
		"a huge message":        {[]string{"garbage", strings.Repeat("x", wire.MaxMessage+10)}, []string{"after garbage: EOF", "expose-ro=/a"}},
		"strange announcements": {[]string{"strange announcements"}, []string{"expose-ro=/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, subprocess, tc.scenario...)
			w.start()
			out, code, _ := w.finish()
			assert.Equal(t, 0, code, out)
			for _, want := range tc.wants {
				assert.Contains(t, out, want)
			}
		})
	}
}

func TestLearningLosesNothingWhenTheChildIsKilled(t *testing.T) {
	w := newWorld(t, "", "learns and dies", "DATA")
	data := filepath.Join(w.dir, "data", "x.txt")
	require.NoError(t, os.Mkdir(filepath.Dir(data), 0o755))
	require.NoError(t, os.WriteFile(data, nil, 0o644))
	w.spec.PythonArgs[2] = data
	w.spec.Learn.On = true
	w.spec.Env["API_URL"] = "x"
	plan, err := Prepare(w.spec)
	require.NoError(t, err)
	assert.Equal(t, "subprocess", plan.Provider(), "learning has no kernel boundary")
	assert.Contains(t, strings.Join(plan.Notices(), "\n"), "Never do this with code that you do not trust")
	c, err := plan.Start(context.Background())
	require.NoError(t, err)
	w.started = c
	_, _, sig := w.finish()
	assert.Equal(t, syscall.SIGKILL, sig)
	report, err := plan.Learned()
	require.NoError(t, err)
	assert.True(t, report.Changed)
	text, err := os.ReadFile(w.spec.ProfilePath)
	require.NoError(t, err)
	for _, line := range []string{"env=API_URL=${API_URL}", "expose-ro=./data", "python-import=json", "python-api=ALLOW:os.system"} {
		assert.Contains(t, string(text), line)
	}
	again, err := plan.Learned()
	require.NoError(t, err)
	assert.False(t, again.Changed, "nothing new, nothing touched")
}

func TestStopAsksBeforeItKills(t *testing.T) {
	for name, tc := range map[string]struct {
		scenario string
		graceful bool
		want     syscall.Signal
	}{
		"gracefully":            {"waits", true, syscall.SIGTERM},
		"a child that does not": {"ignores SIGTERM", true, syscall.SIGKILL},
		"at once":               {"waits", false, syscall.SIGKILL},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, subprocess, tc.scenario)
			c := w.start()
			require.NoError(t, c.Stop(tc.graceful, 5*time.Second))
			status, err := c.Wait()
			require.NoError(t, err)
			assert.Equal(t, tc.want, status.Signal)
			assert.EqualError(t, c.Ended(), "the sandbox was stopped")
			require.NoError(t, c.Stop(tc.graceful, time.Second), "twice is no error")
		})
	}
}

func TestAChildThatReadsNoAnswerHoldsNothingUp(t *testing.T) {
	w := newWorld(t, subprocess, "reads no answer")
	c := w.start()
	began := time.Now()
	require.NoError(t, c.Stop(false, 0))
	assert.Less(t, time.Since(began), 2*sendTime+time.Second)
}

func TestAnUnaskedEndIsWorded(t *testing.T) {
	w := newWorld(t, subprocess, "waits")
	c := w.start()
	assert.NoError(t, c.Ended(), "it runs")
	require.NoError(t, c.Signal(syscall.SIGKILL))
	_, err := c.Wait()
	require.NoError(t, err)
	assert.ErrorContains(t, c.Ended(), "was killed by signal 9 (SIGKILL): by another process, or by the kernel because memory ran out")
	for status, says := range map[providers.Status]string{
		{Code: 3}:                 "ended with exit code 3",
		{Signal: syscall.SIGSEGV}: "was killed by signal 11 (SIGSEGV): a fault in native code",
		{Signal: syscall.SIGXCPU}: "was killed by signal 24 (SIGXCPU): the processor time that this process passes on was used up (ulimit -t)",
		{Signal: syscall.SIGTERM}: "was killed by signal 15 (SIGTERM)",
	} {
		assert.EqualError(t, &EndedError{Pid: 7, Status: status}, "the sandbox (process 7) "+says)
	}
}

func TestNoDescriptorStaysOpen(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(entries)
	}
	run := func(scenario string) {
		w := newWorld(t, subprocess, scenario)
		if c, err := Start(context.Background(), w.spec); err == nil {
			_, _ = c.Wait()
			require.NoError(t, c.Stop(true, time.Second))
		}
		w.output()
		for _, f := range []*os.File{w.spec.Stdio[0], w.stdin} {
			f.Close()
		}
	}
	run("two processes") // what is opened once and kept: the poller
	before := count()
	for range 3 {
		run("two processes")
		run("ends early")
	}
	assert.LessOrEqual(t, count(), before+6, "but for the read ends of the output, which close with the test")
}

func TestBootDataIsSealed(t *testing.T) {
	f, err := sealed("test", []byte("data"))
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte("x"), 0)
	assert.ErrorIs(t, err, syscall.EPERM)
	assert.ErrorIs(t, f.Truncate(0), syscall.EPERM)
	var got [4]byte
	_, err = f.ReadAt(got[:], 0)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(got[:], []byte("data")))
}
