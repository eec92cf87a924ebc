package providers_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

func start(t *testing.T, c providers.Command) *providers.Process {
	t.Helper()
	p, err := providers.Start(c)
	require.NoError(t, err)
	t.Cleanup(func() { p.Kill(); p.Wait() })
	return p
}

// waiting starts a command whose last operation is wait, and returns when it waits.
func waiting(t *testing.T, c providers.Command) (*providers.Process, []string) {
	t.Helper()
	in, keep, err := os.Pipe()
	require.NoError(t, err)
	out, w, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { keep.Close(); out.Close() })
	c.Child.Stdin, c.Child.Stdout = in, w
	p := start(t, c)
	in.Close()
	w.Close()
	var lines []string
	for s := bufio.NewScanner(out); s.Scan(); {
		if s.Text() == "waiting" {
			return p, lines
		}
		lines = append(lines, s.Text())
	}
	t.Fatal("the probe ended early")
	return nil, nil
}

// commands are the same program with and without a boundary.
func commands(t *testing.T, ops ...string) map[string]providers.Command {
	all := map[string]providers.Command{"subprocess": command(ops...)}
	if p, _, err := providers.Choose("landlock"); err == nil && p.Probe().Usable {
		all["landlock"] = confined(ops...)
	}
	return all
}

func TestStatus(t *testing.T) {
	everyone(t)
	for name, c := range commands(t, "exit=7") {
		s, err := start(t, c).Wait()
		require.NoError(t, err)
		assert.Equal(t, providers.Status{Code: 7}, s, name)
	}
	for name, c := range commands(t, "die=9") {
		p := start(t, c)
		s, err := p.Wait()
		require.NoError(t, err)
		assert.Equal(t, providers.Status{Signal: syscall.SIGKILL}, s, name)
		assert.ErrorIs(t, p.Signal(syscall.SIGTERM), os.ErrProcessDone)
		assert.ErrorIs(t, p.Kill(), os.ErrProcessDone)
	}
}

func TestSignalAndKill(t *testing.T) {
	for name, c := range commands(t, "wait") {
		p, _ := waiting(t, c)
		require.NoError(t, p.Signal(syscall.SIGTERM))
		s, _ := p.Wait()
		assert.Equal(t, providers.Status{Signal: syscall.SIGTERM}, s, name)

		p, _ = waiting(t, c)
		require.NoError(t, p.Kill())
		s, _ = p.Wait()
		assert.Equal(t, providers.Status{Signal: syscall.SIGKILL}, s, name)
	}
}

func TestKillTakesTheTree(t *testing.T) {
	for name, c := range commands(t, "child="+probe, "wait") {
		if c.Boundary != nil {
			c.Boundary.Filter.Exec, c.Boundary.Filter.Fork = true, true
		}
		p, lines := waiting(t, c)
		_, number, _ := strings.Cut(lines[0], "\t")
		pid, err := strconv.Atoi(number)
		require.NoError(t, err, name)
		fd, err := unix.PidfdOpen(pid, 0)
		require.NoError(t, err)
		require.NoError(t, p.Kill())
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000)
		assert.NoError(t, err)
		assert.Equal(t, 1, n, "the child's child ended under %s", name)
		unix.Close(fd)
	}
}

func TestOnlyNamedDescriptorsReachTheProgram(t *testing.T) {
	everyone(t)
	leak, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // inheritable, as an application's may be
	require.NoError(t, err)
	defer unix.Close(leak)
	for name, c := range commands(t, "fds") {
		got, _ := outcome(t, c)
		assert.Equal(t, "0,1,2", got["fds"], name)

		a, b, err := os.Pipe()
		require.NoError(t, err)
		c.Child.Boot, c.Child.Announce = a, b
		got, _ = outcome(t, c)
		assert.Equal(t, "0,1,2,5,6", got["fds"], name)
		a.Close()
		b.Close()
	}
}

func TestEnvironmentAndGuard(t *testing.T) {
	for name, c := range commands(t, "env") {
		c.Child.Env = []string{"A=1", "LD_PRELOAD=/o:p", "PYSANDBOXES_BOOT=forged"}
		c.Child.Guard, c.Child.Preload = filepath.Dir(probe)+"/g:1%.so", "/lib/none.so"
		got, _ := outcome(t, c)
		assert.Equal(t, "A=1 LD_PRELOAD=/lib/none.so:/o:p PYSANDBOXES_BOOT=5:6:-1:"+filepath.Dir(probe)+"/g%3A1%25.so:/o%3Ap", got["env"], name)

		c.Child.Preload = "/a b/p.so"
		_, err := providers.Start(c)
		assert.ErrorContains(t, err, "without them", name)
	}
}

func TestFolderAndSession(t *testing.T) {
	for name, c := range commands(t, "cwd", "session") {
		c.Child.Dir, c.Child.Setsid = "/usr", true
		got, _ := outcome(t, c)
		assert.Equal(t, "true", got["session"], name)
		if c.Boundary == nil {
			assert.Equal(t, "/usr", got["cwd"], name)
		}
		c.Child.Dir, c.Child.Setsid = "", false
		got, _ = outcome(t, c)
		assert.Equal(t, "false", got["session"], name)
	}
}

func TestLimits(t *testing.T) {
	everyone(t)
	for name, c := range commands(t, "files", "cpu", "data", "core") {
		c.Limits.Limits = plan.Limits{OpenFiles: 33, CPUSeconds: 5, Data: 1 << 30}
		got, _ := outcome(t, c)
		assert.Equal(t, map[string]string{"files": "33/33", "cpu": "5/6", "data": "1073741824/1073741824", "core": "1/1"}, got, name)
	}
}

func TestCPULimitEndsTheProgram(t *testing.T) {
	for name, c := range commands(t, "spin") {
		c.Limits.CPUSeconds = 1
		s, err := start(t, c).Wait()
		require.NoError(t, err)
		assert.Contains(t, []syscall.Signal{syscall.SIGXCPU, syscall.SIGKILL}, s.Signal, name)
	}
}

// Failures leave nothing behind: no process, no zombie, no descriptor.
func TestFailedStarts(t *testing.T) {
	everyone(t)
	kernelBoundary(t)
	script := filepath.Join(t.TempDir(), "init")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\nexit 4\n"), 0o755))
	for _, c := range []struct {
		name string
		cmd  func() providers.Command
		want string
	}{
		{"no such program", func() providers.Command {
			c := confined()
			c.Child.Path = "/no/such/python"
			return c
		}, "run /no/such/python"},
		{"no such program, no boundary", func() providers.Command {
			c := command()
			c.Child.Path = "/no/such/python"
			return c
		}, "run /no/such/python"},
		{"a program that may not be run", func() providers.Command {
			c := confined()
			c.Child.Path = "/bin/true"
			return c
		}, "run /bin/true: permission denied"},
		{"no such init", func() providers.Command {
			c := command()
			c.Child.InitPath = "/no/such/init"
			return c
		}, "start /no/such/init"},
		{"an init that is none", func() providers.Command {
			c := command()
			c.Child.InitPath = script
			return c
		}, "exit status 4"},
		{"no such folder", func() providers.Command {
			c := command()
			c.Child.Dir = "/no/such/folder"
			return c
		}, "the working directory"},
		{"an exposure that is gone", func() providers.Command {
			c := confined()
			c.Boundary.Rules = append(c.Boundary.Rules, plan.Rule{Path: "/no/such/path", Access: plan.Read})
			return c
		}, "expose /no/such/path"},
		{"a boundary that does not hold", func() providers.Command {
			c := confined()
			c.Boundary.Rules = append(c.Boundary.Rules, plan.Rule{Path: "/", Access: plan.Read})
			return c
		}, "the boundary does not hold: opening / gave success"},
		{"nothing to run", func() providers.Command {
			c := confined()
			c.Child.Argv = nil
			return c
		}, "without a program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := c.cmd()
			providers.Start(cmd) // warms up what the process keeps for good
			before := openDescriptors(t)
			for range 3 {
				_, err := providers.Start(cmd)
				require.ErrorContains(t, err, c.want)
			}
			assert.Equal(t, before, openDescriptors(t))
			_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			assert.ErrorIs(t, err, unix.ECHILD, "no child is left")
		})
	}
}

func openDescriptors(t *testing.T) []string {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && !strings.HasPrefix(target, "/proc/") {
			all = append(all, e.Name()+" "+target)
		}
	}
	return all
}

func TestManyAtOnce(t *testing.T) {
	kernelBoundary(t)
	before := len(openDescriptors(t))
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			c := confined(fmt.Sprintf("exit=%d", i))
			p, err := providers.Start(c)
			if !assert.NoError(t, err) {
				return
			}
			s, err := p.Wait()
			assert.NoError(t, err)
			assert.Equal(t, i, s.Code)
		})
	}
	wg.Wait()
	assert.Eventually(t, func() bool { return len(openDescriptors(t)) <= before+2 }, 5*time.Second, time.Millisecond,
		"descriptors (the runtime's poller may be new); a broker ends just after its sandbox")
}

// The supervisor is a process of its own here, which is killed.
func TestSandboxDiesWithItsSupervisor(t *testing.T) {
	everyone(t)
	if os.Getenv("PYSANDBOXES_TEST_SUPERVISE") != "" {
		c := command("wait")
		if os.Getenv("PYSANDBOXES_TEST_SUPERVISE") == "landlock" {
			c = confined("wait")
		}
		in, _, err := os.Pipe()
		require.NoError(t, err)
		c.Child.Stdin = in
		p := start(t, c)
		fmt.Printf("pid %d\n", p.Pid())
		p.Wait()
		return
	}
	for name := range commands(t) {
		self, err := os.Executable()
		require.NoError(t, err)
		s := exec.Command(self, "-test.run", "^TestSandboxDiesWithItsSupervisor$")
		s.Env = []string{probeVariable + "=" + probe, "PYSANDBOXES_TEST_SUPERVISE=" + name}
		out, err := s.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, s.Start())
		pid := 0
		for sc := bufio.NewScanner(out); pid == 0 && sc.Scan(); {
			fmt.Sscanf(sc.Text(), "pid %d", &pid)
		}
		require.NotZero(t, pid, name)
		fd, err := unix.PidfdOpen(pid, 0)
		require.NoError(t, err)
		require.NoError(t, s.Process.Kill())
		io.Copy(io.Discard, out)
		s.Wait()
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int((10 * time.Second).Milliseconds()))
		assert.NoError(t, err)
		assert.Equal(t, 1, n, "%s: the sandbox ended", name)
		unix.Close(fd)
	}
}

// An application that waits for any child can be first; the status is then the kernel's record, or an error.
func TestStatusCollectedByTheApplication(t *testing.T) {
	p, _ := waiting(t, command("wait"))
	stolen := make(chan error)
	go func() {
		var ws unix.WaitStatus
		_, err := unix.Wait4(p.Pid(), &ws, 0, nil)
		stolen <- err
	}()
	require.NoError(t, p.Signal(syscall.SIGTERM))
	<-stolen
	s, err := p.Wait()
	if err != nil {
		assert.ErrorContains(t, err, "collected by other code")
	} else {
		assert.Equal(t, syscall.SIGTERM, s.Signal)
	}
}

func TestInitByHandSaysWhatItIs(t *testing.T) {
	c := exec.Command(probe)
	c.Args = []string{plan.Argv0}
	out, err := c.CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), "not by hand")
}
