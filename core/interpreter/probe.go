package interpreter

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed probe.py
var probeScript string

const (
	probeTimeout = 30 * time.Second
	minMinor     = 11 // Python 3.11 is the oldest that the guard is built for
)

// answer is what probe.py prints.
type answer struct {
	Executable     string   `json:"executable"`
	BaseExecutable string   `json:"base_executable"`
	Version        string   `json:"version"`
	FullVersion    string   `json:"full_version"`
	Prefixes       []string `json:"prefixes"`
	Path           []string `json:"path"`
	Stdlib         []string `json:"stdlib"`
	Site           []string `json:"site"`
	UserSite       []string `json:"user_site"`
	Watch          []string `json:"watch"` // folders and files that say what sys.path is, existing or not
	PthCode        []string `json:"pth_code"`
	ExtSuffix      string   `json:"ext_suffix"`
	Suffixes       []string `json:"suffixes"`
	CA             []string `json:"ca"`
	TZPath         []string `json:"tzpath"`
	Libs           []string `json:"libs"`
	Unlisted       string   `json:"unlisted"` // why Libs could not be listed
	Package        string   `json:"package"`
}

// Probe asks the interpreter exe what it needs, or takes a cached answer that still holds. Of env, the host's environment,
// HOME, PYTHONUSERBASE, LD_LIBRARY_PATH and the XDG folders count; nil takes the process's own.
func Probe(exe string, env map[string]string) (*Interpreter, error) {
	if env == nil {
		env = environ()
	}
	if !filepath.IsAbs(exe) {
		return nil, fmt.Errorf("interpreter %q: an absolute path is needed", exe)
	}
	store := cacheFor(exe, env)
	if in := store.load(); in != nil {
		return in, nil
	}
	found, err := ask(exe, env)
	if err != nil {
		return nil, err
	}
	in, err := found.interpreter(exe)
	if err != nil {
		return nil, err
	}
	store.save(in, found.sources(exe))
	return in, nil
}

// ask runs the probe. Warnings are off; what the interpreter writes to its stderr is kept for the error.
func ask(exe string, env map[string]string) (*answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-I", "-S", "-W", "ignore", "-c", probeScript)
	cmd.Env = []string{"TERM=dumb"}
	for _, name := range []string{"HOME", "PYTHONUSERBASE", "LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE"} {
		if value, set := env[name]; set {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	cmd.Dir = "/"
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("asking %s what it needs took longer than %s\nTry it by hand: %s -I -S -c pass", exe, probeTimeout, exe)
	}
	// Where SIGCHLD is ignored, as some parents hand it on, the kernel collects the end of a child itself. The answer tells.
	if err != nil && !errors.Is(err, syscall.ECHILD) {
		return nil, fmt.Errorf("asking %s what it needs failed: %w%s", exe, err, quoted(stderr.String()))
	}
	var a answer
	if err := json.Unmarshal(stdout.Bytes(), &a); err != nil {
		return nil, fmt.Errorf("%s did not answer as a CPython does: %w%s", exe, err, quoted(stderr.String()))
	}
	if a.Unlisted != "" {
		return nil, fmt.Errorf("%s cannot tell which shared libraries it needs: %s\nA sandbox needs /proc to be mounted", exe, a.Unlisted)
	}
	return &a, nil
}

func quoted(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > 2000 {
		text = text[len(text)-2000:]
	}
	if text == "" {
		return ""
	}
	return "\n    " + strings.ReplaceAll(text, "\n", "\n    ")
}

func (a *answer) interpreter(exe string) (*Interpreter, error) {
	minor, err := strconv.Atoi(strings.TrimPrefix(a.Version, "3."))
	if err != nil || !strings.HasPrefix(a.Version, "3.") {
		return nil, fmt.Errorf("%s says it is Python %q", exe, a.Version)
	}
	if minor < minMinor {
		return nil, fmt.Errorf("%s is Python %s; 3.%d or newer is needed", exe, a.FullVersion, minMinor)
	}
	in := &Interpreter{
		Executable: exe, Version: a.Version, FullVersion: a.FullVersion, Path: a.Path,
		Prefixes: unique(a.Prefixes), UserSite: a.UserSite, Suffixes: a.Suffixes, Package: a.Package,
	}
	if in.Package != "" {
		in.Guard = file(in.Package, "_guard"+a.ExtSuffix)
		in.Preload = file(in.Package, "_preload.so")
	}
	in.Runtime = a.runtime(exe)
	return in, nil
}

func file(folder, name string) string {
	if path := filepath.Join(folder, name); regular(path) {
		return path
	}
	return ""
}

// sources lists every file and folder whose change makes the answer stale.
func (a *answer) sources(exe string) []string {
	paths := []string{exe, a.BaseExecutable, "/etc/ld.so.cache"}
	for _, folder := range []string{filepath.Dir(exe), filepath.Dir(filepath.Dir(exe))} {
		paths = append(paths, filepath.Join(folder, "pyvenv.cfg"))
	}
	paths = append(paths, a.Watch...)
	if a.Package != "" {
		paths = append(paths, a.Package)
	}
	return unique(paths)
}

func environ() map[string]string {
	env := make(map[string]string)
	for _, entry := range os.Environ() {
		if name, value, found := strings.Cut(entry, "="); found {
			env[name] = value
		}
	}
	return env
}

// errStale says why a cached answer was not taken; it never leaves the package.
var errStale = errors.New("stale")

// Cached is Probe without asking: nil where no cached answer holds.
func Cached(exe string, env map[string]string) *Interpreter { return cacheFor(exe, env).load() }
