package supervisor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/wire"
	"github.com/pysandboxes/pysandboxes/providers/initproc"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// The test binary plays every part, told apart by the name it is started under: python-sb, init, and the interpreter, which
// answers the probe and else does what its -c says. What the real guard does is tested with the real guard, in tests/.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case plan.Argv0:
		initproc.Main()
	case "python-sb":
		Main()
	case "shell":
		shell(os.Args[1:])
	case "python3.11":
		python(os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// installation is a virtual environment with fakes in it, and a project with a profile.
type installation struct {
	t       *testing.T
	root    string
	command string
	project string
	env     []string
}

func install(t *testing.T, profile string) *installation {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	libraries, _ := filepath.Glob("/lib/*-linux-gnu/libm.so.6")
	if len(libraries) == 0 {
		t.Skip("no libm.so.6 at hand to stand for the preload object")
	}
	library, err := os.ReadFile(libraries[0])
	require.NoError(t, err)
	for path, content := range map[string]string{
		"env/pyvenv.cfg": "home = /x\n", "env/package/_guard.so": "", "env/package/_preload.so": string(library),
		"project/.py-sandboxes": "os-sandbox=subprocess\nenv=" + quickEnd + "\n" + profile,
	} {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o755))
	}
	bin := filepath.Join(root, "env/bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	for _, name := range []string{"python-sb", "python3.11"} {
		require.NoError(t, os.Symlink(self, filepath.Join(bin, name)))
	}
	return &installation{t: t, root: root, command: filepath.Join(bin, "python-sb"), project: filepath.Join(root, "project"),
		env: []string{"HOME=" + root, "PATH=/usr/bin:/bin", quickEnd}}
}

func (in *installation) cmd(args ...string) *exec.Cmd {
	c := exec.Command(in.command, args...)
	c.Dir, c.Env = in.project, in.env
	return c
}

// run gives what a command printed and its exit code, -1 for a signal.
func (in *installation) run(args ...string) (stdout, stderr string, code int) {
	in.t.Helper()
	c := in.cmd(args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		require.NoError(in.t, err)
	}
	// What the subprocess provider says at each start is tested where it is made.
	kept := strings.Builder{}
	for line := range strings.Lines(errs.String()) {
		if !strings.Contains(line, "has no kernel boundary") {
			kept.WriteString(line)
		}
	}
	return out.String(), kept.String(), c.ProcessState.ExitCode()
}

// quickEnd keeps a program that was built with -race from resting a second at its end.
const quickEnd = "GORACE=atexit_sleep_ms=0"

// shell is a shell with one job: it runs it in the foreground, and when it is stopped goes on with it there.
func shell(job []string) {
	signal.Ignore(syscall.SIGTTOU)
	c := exec.Command(job[0], job[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	must(c.Start())
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil)
		must(err)
		if !status.Stopped() {
			must(unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, unix.Getpgrp()))
			fmt.Println("shell: exit", status.ExitStatus())
			os.Exit(0)
		}
		must(unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, unix.Getpgrp()))
		fmt.Println("shell: stopped")
		must(unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, c.Process.Pid))
		fmt.Println("shell: fg")
		must(syscall.Kill(-c.Process.Pid, syscall.SIGCONT))
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "fake python:", err)
		os.Exit(99)
	}
}

// python is the fake interpreter.
func python(args []string) {
	if len(args) > 2 && args[0] == "-I" && args[1] == "-S" {
		probe()
		return
	}
	if len(args) > 0 && args[0] == "-V" {
		fmt.Println("Python 3.11.99")
		return
	}
	ask := hello()
	command := ""
	for i, arg := range args {
		if arg == "-c" {
			command = args[i+1]
		}
	}
	word, rest, _ := strings.Cut(command, " ")
	switch word {
	case "exit":
		code, err := strconv.Atoi(rest)
		must(err)
		os.Exit(code)
	case "signal":
		n, err := strconv.Atoi(rest)
		must(err)
		sig := syscall.Signal(n)
		dieBy(sig)
	case "leave": // ends and leaves a program behind, in a session of its own, which holds the output open
		c := exec.Command("/bin/sh", "-c", rest)
		c.Stdout, c.Stderr, c.SysProcAttr = os.Stdout, os.Stderr, &syscall.SysProcAttr{Setsid: true}
		must(c.Run())
		os.Exit(7)
	case "cat":
		_, err := io.Copy(os.Stdout, os.Stdin)
		must(err)
	case "read":
		ask(wire.Question{Op: wire.OpFile, Path: rest, Event: "open"})
	case "wait": // prints the signals that it gets, up to the one named
		signals := make(chan os.Signal, 8)
		signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT, syscall.SIGWINCH)
		fmt.Println("ready", os.Getpid(), unix.Getpgrp())
		for {
			sig := <-signals
			fmt.Println(unix.SignalName(sig.(syscall.Signal)))
			if unix.SignalName(sig.(syscall.Signal)) == rest {
				os.Exit(3)
			}
		}
	case "stop": // stops itself as Ctrl-Z does, says so when it goes on
		fmt.Println("ready", os.Getpid(), unix.Getpgrp())
		must(unix.Kill(os.Getpid(), unix.SIGSTOP))
		_, _ = io.ReadFull(os.Stdin, make([]byte, 1))
		fmt.Println("again")
	default:
		fmt.Printf("%q\n", args)
	}
}

func probe() {
	env := filepath.Dir(filepath.Dir(os.Args[0]))
	answer := map[string]any{
		"executable": os.Args[0], "version": "3.11", "full_version": "3.11.99", "prefixes": []string{env}, "path": []string{env + "/site"},
		"ext_suffix": ".so", "suffixes": []string{".py"}, "package": env + "/package",
	}
	must(json.NewEncoder(os.Stdout).Encode(answer))
}

// hello does what the guard does, and gives a function that asks and prints the answer.
func hello() func(wire.Question) {
	fields := strings.Split(os.Getenv("PYSANDBOXES_BOOT"), ":")
	announce, err := strconv.Atoi(fields[1])
	must(err)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must(err)
	must(unix.Sendmsg(announce, []byte("A"), unix.UnixRights(fds[1]), nil, 0))
	must(unix.Close(fds[1]))
	ask := func(q wire.Question) wire.Answer {
		q.Seq = 1
		data, err := q.Encode()
		must(err)
		_, err = unix.Write(fds[0], data)
		must(err)
		buf := make([]byte, wire.MaxMessage)
		n, err := unix.Read(fds[0], buf)
		must(err)
		a, err := wire.DecodeAnswer(buf[:n])
		must(err)
		return a
	}
	ask(wire.Question{Op: wire.OpHello, Pid: os.Getpid(), Version: wire.Version})
	return func(q wire.Question) {
		if a := ask(q); a.Allow {
			fmt.Println("allowed")
		} else {
			fmt.Println(a.Message)
		}
	}
}
