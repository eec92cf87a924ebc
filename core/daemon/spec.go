package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/pysandboxes/pysandboxes/core/interpreter"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/transport"
	"github.com/pysandboxes/pysandboxes/core/wire"
)

// DefaultStartTimeout is how long a child may take from its exec to the guard's hello, and on to READY.
const DefaultStartTimeout = 30 * time.Second

// Spec says which sandbox is wanted.
type Spec struct {
	ProfilePath string   // "" where none was found
	Searched    []string // where it was looked for, the default place last
	Overrides   []profile.Override
	Env         map[string]string // the host environment, what ${} reads
	Interpreter *interpreter.Interpreter
	PythonArgs  []string // python's arguments after argv[0]
	Cwd, Home   string

	Mode          string // wire.ModeComplete or wire.ModePartial
	Learn         LearnMode
	Prompt        bool     // an interactive session, whose own doings are not learned
	Extra         []byte   // what the application's Python gives its child, opaque
	Target        []string // single files that are readable: the script
	TargetModules []string // module names that are the program itself

	Stdio     [3]*os.File       // nil: /dev/null
	Native    *transport.Native // with calls: in place of Stdio's last two
	WithCalls bool              // the child has a channel for calls
	Setsid    bool              // a session of its own; partial mode always has one
	InitPath  string            // the python-sb binary, which plays init

	StartTimeout time.Duration // 0: DefaultStartTimeout
	Logger       *slog.Logger  // nil: nothing is logged
}

// LearnMode says whether this run learns.
type LearnMode struct {
	On        bool   // asked for by --learn or learn=
	File      string // where to; "" is the profile itself
	For       string // on whose behalf, for the comments; "" says nothing
	IfMissing bool   // a profile that is missing in its default place starts a learning run (stderr is a terminal)
}

// complete checks a spec and fills in the defaults.
func (s Spec) complete() (Spec, error) {
	switch {
	case s.Mode != wire.ModeComplete && s.Mode != wire.ModePartial:
		return s, fmt.Errorf("sandbox: mode %q is neither %q nor %q", s.Mode, wire.ModeComplete, wire.ModePartial)
	case s.Interpreter == nil:
		return s, errors.New("sandbox: no interpreter")
	case s.InitPath == "":
		return s, errors.New("sandbox: the path of the python-sb binary is unknown\nInstall the package python-sb into the same environment")
	}
	if s.Cwd == "" {
		cwd, err := os.Getwd()
		if err != nil {
			return s, fmt.Errorf("sandbox: the working directory: %w", err)
		}
		s.Cwd = cwd
	}
	if s.Home == "" {
		s.Home = s.Env["HOME"]
	}
	if s.StartTimeout <= 0 {
		s.StartTimeout = DefaultStartTimeout
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelError + 1}))
	}
	for i, path := range s.Target {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Cwd, path)
		}
		s.Target[i] = path
	}
	if s.Mode == wire.ModePartial {
		s.Setsid = true
	}
	return s, nil
}
