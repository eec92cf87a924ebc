package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/daemon"
	"github.com/pysandboxes/pysandboxes/core/interpreter"
	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/wire"
	"github.com/pysandboxes/pysandboxes/providers"
)

// Exit codes of our own. Everything else is the program's.
const (
	exitUsage = 2   // a command line or a profile that cannot be used; python's own code for the former
	exitStart = 125 // the sandbox did not start
)

// Main runs python-sb and never returns.
func Main() {
	os.Exit(run(os.Args, os.Stderr))
}

// fail prints an error in its three parts and gives the exit code.
func fail(stderr io.Writer, code int, err error) int {
	fmt.Fprintf(stderr, "python-sb: %s\n", err)
	return code
}

func run(argv []string, stderr io.Writer) int {
	args, err := Parse(argv[1:])
	if err != nil {
		return fail(stderr, exitUsage, err)
	}
	if args.Help {
		return help(os.Stdout)
	}
	env := environment()
	self, err := command(argv[0])
	if err != nil {
		return fail(stderr, exitStart, err)
	}
	exe, err := find(self)
	if err != nil && !args.Version {
		return fail(stderr, exitStart, err)
	}
	if args.Version {
		return version(os.Stdout, exe, env)
	}
	if args.Direct != nil {
		return direct(stderr, exe, args.Direct)
	}
	in, err := interpreter.Probe(exe, env)
	if err != nil {
		return fail(stderr, exitStart, err)
	}
	spec, err := specOf(args, in, env)
	if err != nil {
		return fail(stderr, exitUsage, err)
	}
	prompt := prompts(args)
	if prompt && args.Kind == TargetModule {
		spec.PythonArgs = marked(spec.PythonArgs)
	}
	plan, err := daemon.Prepare(spec)
	if err == nil && prompt && args.Kind == TargetNone {
		plan, err = ipython(plan, spec)
	}
	if err != nil {
		return refused(stderr, err)
	}
	for _, notice := range plan.Notices() {
		fmt.Fprintf(stderr, "python-sb: %s\n", notice)
	}
	if prompt {
		fmt.Fprint(stderr, banner(plan))
	}
	return accompanied(plan, stderr)
}

// accompanied runs the program and ends as it ended.
func accompanied(plan *daemon.Plan, stderr io.Writer) int {
	signals := catch()
	adopted, err := providers.Adopt()
	if err != nil {
		return fail(stderr, exitStart, err)
	}
	c, err := plan.Start(context.Background())
	if err != nil {
		return fail(stderr, exitStart, err)
	}
	for _, note := range c.Notes() {
		fmt.Fprintf(stderr, "python-sb: %s\n", note)
	}
	tick, say := progress(plan, stderr)
	accompany(c, signals, adopted, tick, say)
	status, err := c.Wait()
	if left := adopted.End(); len(left) > 0 {
		fmt.Fprintf(stderr, "python-sb: processes that the program left behind could not be ended: %v\n", left)
	}
	if plan.Learning() {
		report(plan, stderr)
	}
	tell(c.NativeDenials(), stderr)
	switch {
	case err != nil:
		return fail(stderr, exitStart, err)
	case status.Signal != 0:
		var ended *daemon.EndedError
		if errors.As(c.Ended(), &ended) && ended.Limit != "" {
			fmt.Fprintf(stderr, "python-sb: the program was ended by %s\n", ended.Limit)
		}
		dieBy(status.Signal)
		return 128 + int(status.Signal)
	}
	return status.Code
}

// maxTold bounds how many refusals are told of at the end.
const maxTold = 20

// tell says what was refused to native code: that code got the kernel's plain errors, and what it printed of them names no
// rule. A refusal that Python met was told in its exception.
func tell(denials []daemon.Denied, stderr io.Writer) {
	for _, d := range denials[:min(len(denials), maxTold)] {
		times := ""
		if d.Count > 1 {
			times = fmt.Sprintf(", %d times", d.Count)
		}
		fmt.Fprintf(stderr, "python-sb: refused to native code%s: %s\n", times, d.Message)
	}
	if more := len(denials) - maxTold; more > 0 {
		fmt.Fprintf(stderr, "python-sb: and %d more\n", more)
	}
}

// errNone is os-sandbox=none for a whole program.
var errNone = errors.New("os-sandbox=none holds nothing, and python-sb runs no program without a sandbox\n" +
	"Use os-sandbox=auto, os-sandbox=subprocess for the Python layer alone, or python itself")

// refused prints why a sandbox cannot be prepared. A machine that cannot do it is told from a mistake of the user's.
func refused(stderr io.Writer, err error) int {
	var setup *daemon.SetupError
	switch {
	case errors.Is(err, daemon.ErrDirect):
		return fail(stderr, exitUsage, errNone)
	case errors.As(err, &setup):
		return fail(stderr, exitStart, err)
	}
	return fail(stderr, exitUsage, err)
}

// command gives the path by which python-sb was started.
func command(argv0 string) (string, error) {
	path := argv0
	if !strings.Contains(path, "/") {
		found, err := exec.LookPath(path)
		if err != nil {
			return os.Executable()
		}
		path = found
	}
	return filepath.Abs(path)
}

// binary is this program's file. Where /proc does not say it, it is what it was started by, links followed.
func binary() (string, error) {
	path, err := os.Executable()
	if err == nil {
		return path, nil
	}
	if path, e := command(os.Args[0]); e == nil {
		return filepath.EvalSymlinks(path)
	}
	return "", err
}

// find looks for the interpreter from the command's path, then from where the binary itself lies: `python -m
// pysandboxes.python_sb` starts the binary by a name beside the interpreter that it wants.
func find(self string) (string, error) {
	exe, err := interpreter.Find(self)
	if err == nil {
		return exe, nil
	}
	own, err2 := binary()
	if err2 != nil || own == self {
		return "", err
	}
	if exe, again := interpreter.Find(own); again == nil {
		return exe, nil
	}
	return "", err
}

// direct lets python answer what runs no program, such as -V and -h.
func direct(stderr io.Writer, exe string, options []string) int {
	err := syscall.Exec(exe, append([]string{exe}, options...), os.Environ())
	return fail(stderr, exitStart, fmt.Errorf("starting %s: %w", exe, err))
}

func specOf(args *Arguments, in *interpreter.Interpreter, env map[string]string) (daemon.Spec, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return daemon.Spec{}, fmt.Errorf("the working directory: %w", err)
	}
	path, searched, err := profile.Find(args.Config, "", cwd)
	if args.Config != "" && args.Learn && errors.Is(err, fs.ErrNotExist) {
		err = nil // a run that learns may name a profile that is not there yet
	}
	if err != nil {
		return daemon.Spec{}, err
	}
	init, err := binary()
	if err != nil {
		return daemon.Spec{}, fmt.Errorf("finding this binary: %w", err)
	}
	target := scopeOf(args, in, cwd)
	return daemon.Spec{
		ProfilePath: path, Searched: searched, Overrides: args.Rules, Env: env, Interpreter: in,
		PythonArgs: args.Python, Cwd: cwd, Mode: wire.ModeComplete,
		Learn:  daemon.LearnMode{On: args.Learn, File: args.LearnFile, IfMissing: isTerminal(2)},
		Prompt: typed(args) && isTerminal(0),
		Target: target.files, TargetModules: target.modules,
		Stdio:    [3]*os.File{os.Stdin, os.Stdout, os.Stderr},
		InitPath: init,
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: logLevel(env)})),
	}, nil
}

// logLevel is error unless the environment asks for more.
func logLevel(env map[string]string) slog.Level {
	if env["PYSANDBOXES_DEBUG"] == "1" {
		return slog.LevelDebug
	}
	return slog.LevelError
}

// report says what a learning run learned.
func report(plan *daemon.Plan, stderr io.Writer) {
	r, err := plan.Learned()
	if r.Result.Rules() > 0 {
		width := 0
		color := isTerminal(2)
		if size, err := unix.IoctlGetWinsize(2, unix.TIOCGWINSZ); err == nil {
			width = int(size.Col)
		}
		fmt.Fprint(stderr, "\n", learn.Table(r.Result, color, width))
	}
	if err != nil {
		fmt.Fprintf(stderr, "python-sb: %s\n", err)
		return
	}
	fmt.Fprintf(stderr, "python-sb: %s\n", r.Summary())
}

func environment() map[string]string {
	env := make(map[string]string)
	for _, entry := range os.Environ() {
		if name, value, found := strings.Cut(entry, "="); found && name != "" {
			if _, twice := env[name]; !twice { // getenv(3) takes the first
				env[name] = value
			}
		}
	}
	return env
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}
