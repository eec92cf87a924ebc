package supervisor

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTheProgramsExitCodeIsOurs(t *testing.T) {
	in := install(t, "")
	for _, want := range []int{0, 1, 7, 255} {
		_, _, code := in.run("-c", "exit "+strconv.Itoa(want))
		assert.Equal(t, want, code)
	}
}

func TestWeDieByTheProgramsSignal(t *testing.T) {
	in := install(t, "")
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGPIPE, syscall.SIGQUIT, syscall.SIGUSR1} {
		c := in.cmd("-c", "signal "+strconv.Itoa(int(sig)))
		var text strings.Builder
		c.Stderr = &text
		_ = c.Run()
		status := c.ProcessState.Sys().(syscall.WaitStatus)
		assert.True(t, status.Signaled(), "%s: %s", sig, c.ProcessState)
		assert.Equal(t, sig, status.Signal())
		assert.NotContains(t, text.String(), "goroutine", "%s is no fault of ours", sig)
	}
	matches, err := filepath.Glob(filepath.Join(in.project, "core*"))
	require.NoError(t, err)
	assert.Empty(t, matches)
}

func TestArgumentsAndStreamsAreThePrograms(t *testing.T) {
	in := install(t, "")
	out, stderr, code := in.run("--python-import=json", "-X", "utf8", "-u", "x.py", "--learn", "-c", "", "ä b")
	assert.Equal(t, 0, code)
	assert.Equal(t, `["-X" "utf8" "-u" "x.py" "--learn" "-c" "" "ä b"]`+"\n", out)
	assert.Empty(t, stderr)

	c := in.cmd("-c", "cat")
	c.Stdin = strings.NewReader("line\n\x00\xff")
	raw, err := c.Output()
	require.NoError(t, err)
	assert.Equal(t, "line\n\x00\xff", string(raw))
}

func TestARefusalNamesTheLine(t *testing.T) {
	in := install(t, "")
	out, _, _ := in.run("-c", "read /etc/passwd")
	assert.True(t, strings.HasSuffix(out, "expose-ro=/etc/passwd\n"), out)
	out, _, _ = in.run("--expose-ro=/etc", "-c", "read /etc/passwd")
	assert.Equal(t, "allowed\n", out)
}

func TestTheScriptIsReadableItsFolderIsNot(t *testing.T) {
	in := install(t, "")
	for _, name := range []string{"a.py", "b.py"} {
		require.NoError(t, os.WriteFile(filepath.Join(in.project, name), nil, 0o644))
	}
	// The fake's -c comes after its script, where python would not look for it.
	out, _, _ := in.run("a.py", "-c", "read "+in.project+"/a.py")
	assert.Equal(t, "allowed\n", out)
	out, _, _ = in.run("a.py", "-c", "read "+in.project+"/b.py")
	assert.Contains(t, out, "b.py is refused")
}

func TestErrorsHaveAPlaceAndAWayOut(t *testing.T) {
	in := install(t, "")
	profile := filepath.Join(in.project, ".py-sandboxes")
	for name, tc := range map[string]struct {
		args []string
		code int
		says []string
	}{
		"option":          {words("--lern", "x.py"), 2, words("python-sb: unknown option --lern\nDid you mean --learn?")},
		"rule":            {words("--expose-ro", "x.py"), 2, words("the rule --expose-ro needs a value")},
		"value of a rule": {words("--os-sandbox=landlok", "x.py"), 2, words("command line", "landlock")},
		"no sandbox":      {words("--os-sandbox=none", "x.py"), 2, words("python-sb: os-sandbox=none holds nothing", "os-sandbox=subprocess for the Python layer alone")},
		"own profile":     {words("--expose-rw=.", "x.py"), 2, words("could rewrite its own rules")},
		"named profile":   {words("--pysandboxes-config=nope", "x.py"), 2, words(in.project + "/nope")},
	} {
		t.Run(name, func(t *testing.T) {
			out, stderr, code := in.run(tc.args...)
			assert.Equal(t, tc.code, code)
			assert.Empty(t, out)
			for _, text := range tc.says {
				assert.Contains(t, stderr, text)
			}
		})
	}
	guard := filepath.Join(in.root, "env/package/_guard.so")
	require.NoError(t, os.Rename(guard, guard+".away"))
	_, stderr, code := in.run("x.py")
	assert.Equal(t, 125, code)
	assert.Contains(t, stderr, "holds no guard for Python 3.11")
	require.NoError(t, os.Rename(guard+".away", guard))

	require.NoError(t, os.WriteFile(profile, []byte("\nexpose-r=./data\n"), 0o644))
	_, stderr, code = in.run("x.py")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, profile+":2:")
	assert.Contains(t, stderr, "^")
	assert.Contains(t, stderr, "expose-ro")

	require.NoError(t, os.Remove(profile))
	_, stderr, code = in.run("x.py")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, "no profile was found; looked for:\n    "+profile)
	assert.Contains(t, stderr, "python-sb --learn")
}

func TestNoInterpreterAtAll(t *testing.T) {
	in := install(t, "")
	lonely := filepath.Join(in.root, "lonely", "python-sb")
	require.NoError(t, os.MkdirAll(filepath.Dir(lonely), 0o755))
	binary, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Link(binary, lonely))
	in.command = lonely
	_, stderr, code := in.run("x.py")
	assert.Equal(t, 125, code)
	assert.Contains(t, stderr, "no Python interpreter belongs to "+lonely)
	assert.Contains(t, stderr, filepath.Dir(lonely)+"/python3.N, python3, python")
	out, _, code := in.run("--version")
	assert.Equal(t, 0, code)
	assert.Contains(t, out, "(no Python found)")
}

func TestHelpAndVersion(t *testing.T) {
	in := install(t, "")
	out, _, code := in.run("--help")
	assert.Equal(t, 0, code)
	assert.Contains(t, out, "--pysandboxes-config=FILE")
	for line := range strings.Lines(out) {
		assert.LessOrEqual(t, len(line), 95, "a help text fits a terminal")
	}
	for range 2 { // with and without a cached answer
		out, _, code = in.run("--version")
		assert.Equal(t, 0, code)
		assert.Regexp(t, `^python-sb \S+ \(Python 3\.11\.99\)\n$`, out)
		_, _, _ = in.run("-c", "exit 0")
	}
	out, _, code = in.run("-V")
	assert.Equal(t, 0, code)
	assert.Equal(t, "Python 3.11.99\n", out, "python's own option is python's to answer")
}

func TestALearningRunReportsAndWrites(t *testing.T) {
	in := install(t, "")
	_, stderr, code := in.run("--learn=found", "-c", "exit 4")
	assert.Equal(t, 4, code, "the exit code is the program's, in a learning run too")
	assert.Contains(t, stderr, "LEARNING into "+in.project+"/found")
	assert.FileExists(t, filepath.Join(in.project, "found"))
	assert.Contains(t, stderr, "check this file: "+in.project+"/found")
	_, stderr, _ = in.run("--learn=found", "-c", "exit 4")
	assert.Contains(t, stderr, "nothing new was learned; "+in.project+"/found is unchanged")
}

// session is a program in the making: what it prints, line by line.
type session struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Reader
}

func (s *session) expect(want string) string {
	s.t.Helper()
	patience := time.AfterFunc(30*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer patience.Stop()
	for {
		line, err := s.lines.ReadString('\n')
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "^C"), "^Z") // the terminal's echo of the key
		if strings.HasPrefix(line, want) {
			return line
		}
		require.NoError(s.t, err, "waiting for %q, the last line was %q", want, line)
	}
}

func TestSignalsToUsReachTheProgram(t *testing.T) {
	in := install(t, "")
	c := in.cmd("-c", "wait SIGTERM")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	s := &session{t, c, bufio.NewReader(out)}
	ready := strings.Fields(s.expect("ready"))
	assert.Equal(t, strconv.Itoa(c.Process.Pid), ready[2], "the program stays in our process group")
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGINT, syscall.SIGWINCH, syscall.SIGUSR2, syscall.SIGTERM} {
		require.NoError(t, c.Process.Signal(sig))
		s.expect(unix.SignalName(sig))
	}
	_ = c.Wait()
	assert.Equal(t, 3, c.ProcessState.ExitCode())
}

func TestTheProgramEndsWithUs(t *testing.T) {
	in := install(t, "")
	c := in.cmd("-c", "wait SIGTERM")
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	s := &session{t, c, bufio.NewReader(out)}
	s.expect("ready")
	require.NoError(t, c.Process.Kill())
	rest, err := io.ReadAll(s.lines) // ends when the last holder of the pipe is gone
	require.NoError(t, err)
	assert.Empty(t, rest)
	_ = c.Wait()
}

// terminal starts a program with a terminal of its own, in its foreground.
func terminal(t *testing.T, c *exec.Cmd) (*session, *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal to be had: %s", err)
	}
	t.Cleanup(func() { master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer tty.Close()
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, c.Start())
	return &session{t, c, bufio.NewReader(master)}, master
}

func TestCtrlCReachesTheProgramOnce(t *testing.T) {
	in := install(t, "")
	s, master := terminal(t, in.cmd("-c", "wait SIGUSR1"))
	s.expect("ready")
	_, err := master.WriteString("\x03")
	require.NoError(t, err)
	s.expect("SIGINT")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGUSR1))
	line := s.expect("SIG")
	assert.Equal(t, "SIGUSR1", line, "one key, one signal")
	_ = s.cmd.Wait()
	assert.Equal(t, 3, s.cmd.ProcessState.ExitCode())
}

func TestWeStopWithTheProgramAndGoOnWithIt(t *testing.T) {
	in := install(t, "")
	c := in.cmd("-c", "stop")
	stdin, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, c.Start())
	s := &session{t, c, bufio.NewReader(out)}
	s.expect("ready")
	var status syscall.WaitStatus
	_, err = syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil) // as a shell waits for its job
	require.NoError(t, err)
	require.True(t, status.Stopped(), "we stop too, so that the shell takes the terminal back")
	require.NoError(t, c.Process.Signal(syscall.SIGCONT))
	_, err = stdin.Write([]byte("x"))
	require.NoError(t, err)
	s.expect("again")
	_ = c.Wait()
	assert.Equal(t, 0, c.ProcessState.ExitCode())
}

func TestCtrlZ(t *testing.T) {
	in := install(t, "")
	shell := filepath.Join(in.root, "shell")
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, shell))
	c := exec.Command(shell, in.command, "-c", "cat")
	c.Dir, c.Env = in.project, in.env
	s, master := terminal(t, c)
	write := func(text string) {
		_, err := master.WriteString(text)
		require.NoError(t, err)
	}
	write("first\n")
	s.expect("first") // the echo
	s.expect("first") // the program
	write("\x1a")
	s.expect("shell: stopped")
	s.expect("shell: fg")
	write("second\n")
	s.expect("second")
	s.expect("second")
	write("\x04")
	s.expect("shell: exit 0")
	_ = s.cmd.Wait()
}

func TestBannerOnATerminal(t *testing.T) {
	in := install(t, "")
	s, _ := terminal(t, in.cmd())
	line := s.expect("python-sb 0")
	assert.Contains(t, line, "are limited by "+filepath.Join(in.project, ".py-sandboxes"))
	_ = s.cmd.Wait()

	require.NoError(t, os.Remove(filepath.Join(in.project, ".py-sandboxes")))
	in.env = append(in.env, "XDG_STATE_HOME="+filepath.Join(in.root, "other")) // no run before this one
	s, _ = terminal(t, in.cmd())
	s.expect("python-sb: LEARNING into " + filepath.Join(in.project, ".py-sandboxes"))
	s.expect("python-sb: ")
	_ = s.cmd.Wait()
	assert.FileExists(t, filepath.Join(in.project, ".py-sandboxes"))
}

func TestIPythonIsThePromptWhereItMayBe(t *testing.T) {
	in := install(t, "")
	module := filepath.Join(in.root, "env/site/IPython")
	require.NoError(t, os.MkdirAll(module, 0o755))
	for _, file := range []string{"__init__.py", "__main__.py"} {
		require.NoError(t, os.WriteFile(filepath.Join(module, file), nil, 0o644))
	}
	s, _ := terminal(t, in.cmd("-q"))
	s.expect(`["-q"]`)
	_ = s.cmd.Wait()
	s, _ = terminal(t, in.cmd("--python-import=IPython", "-q"))
	s.expect(`["-q"]`) // it could not run what is typed
	_ = s.cmd.Wait()
	mark := `"--TerminalInteractiveShell.prompts_class=pysandboxes._ipython.Prompts"`
	granted := []string{"--python-import=IPython", "--python-api=ALLOW:dynamic-code"}
	s, _ = terminal(t, in.cmd(append(granted, "-q")...))
	s.expect(`["-q" "-m" "IPython" ` + mark + `]`)
	_ = s.cmd.Wait()
	s, _ = terminal(t, in.cmd(append(granted, "-m", "IPython", "--no-banner")...))
	s.expect("python-sb 0")
	s.expect(`["-m" "IPython" ` + mark + ` "--no-banner"]`)
	_ = s.cmd.Wait()
	s, _ = terminal(t, in.cmd(append(granted, "-m", "IPython", "history", "trim")...))
	s.expect(`["-m" "IPython" "history" "trim"]`)
	_ = s.cmd.Wait()
	out, _, _ := in.run("--python-import=IPython")
	assert.Equal(t, "[]\n", out, "a program on stdin is no prompt")
}

func TestLearningMayNameANewProfile(t *testing.T) {
	in := install(t, "")
	_, stderr, code := in.run("--pysandboxes-config=new", "-c", "exit 0")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, in.project+"/new")
	_, stderr, code = in.run("--learn", "--pysandboxes-config=new", "-c", "exit 0")
	assert.Equal(t, 0, code, stderr)
	assert.FileExists(t, filepath.Join(in.project, "new"))
}

func TestIgnoredSignalsStayIgnored(t *testing.T) {
	in := install(t, "")
	c := exec.Command("/bin/sh", "-c", `trap "" HUP; exec "$0" "$@"`, in.command, "-c", "wait SIGTERM")
	c.Dir, c.Env = in.project, in.env
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	s := &session{t, c, bufio.NewReader(out)}
	s.expect("ready")
	require.NoError(t, c.Process.Signal(syscall.SIGHUP))
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, "SIGTERM", s.expect("SIG"), "nohup holds for the program too")
	_ = c.Wait()
}

func TestNothingOutlivesTheProgram(t *testing.T) {
	in := install(t, "")
	for name, left := range map[string]string{
		"one in the background":        "sleep 600 & echo $!",
		"one that heeds no signal":     "(trap '' TERM HUP INT; while :; do sleep 600; done) & echo $!",
		"one that has started another": "(sleep 600 & sleep 600) & echo $!",
		"one that is gone already":     "true & echo $!",
	} {
		t.Run(name, func(t *testing.T) {
			out, stderr, code := in.run("-c", "leave "+left) // returns when the last holder of the output is gone
			assert.Equal(t, 7, code, "the status is the program's: %s", stderr)
			assert.Empty(t, stderr)
			pid, err := strconv.Atoi(strings.TrimSpace(out))
			require.NoError(t, err)
			assert.ErrorIs(t, unix.Kill(pid, 0), unix.ESRCH)
		})
	}
}

func TestALearningRunThatCouldNotBeWrittenDoesNotStart(t *testing.T) {
	in := install(t, "")
	for _, file := range []string{"/no/such/folder/x", in.root, "/proc/x"} {
		out, stderr, code := in.run("--learn="+file, "-c", "exit 0")
		assert.Equal(t, 2, code)
		assert.Empty(t, out)
		assert.Contains(t, stderr, "python-sb: learning into "+file)
	}
}

func TestChildrenFromBeforeAreNotOurs(t *testing.T) {
	in := install(t, "")
	c := exec.Command("/bin/sh", "-c", `sleep 60 >/dev/null 2>&1 & echo $!; exec "$0" "$@"`, in.command, "-c", "exit 7")
	c.Dir, c.Env = in.project, in.env
	out, err := c.Output()
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended)
	assert.Equal(t, 7, ended.ExitCode())
	for _, line := range strings.Fields(string(out)) {
		pid, err := strconv.Atoi(line)
		require.NoError(t, err)
		assert.NoError(t, unix.Kill(pid, unix.SIGKILL), "a daemon that the shell started before it became us")
	}
}
