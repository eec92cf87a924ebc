package supervisor

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/daemon"
	"github.com/pysandboxes/pysandboxes/core/interpreter"
	"github.com/pysandboxes/pysandboxes/core/wire"
)

const usage = `python-sb: python under a policy

usage: python-sb [options] [python options] [-m module | -c command | file | -] [arguments]

Everything that the profile does not allow is refused: files, network, environment,
imports, sensitive calls. The profile is .py-sandboxes in the current folder.

options, before the module, command or file
  --learn[=FILE]                allow everything, record it, write it to the profile
                                (to FILE). Only on code that you trust.
  --pysandboxes-config=FILE     use this profile
  --KEY=VALUE                   a rule beside the profile's, for instance
                                --python-import=json --expose-ro=./data --os-sandbox=landlock
  --help                        this text (python's own: -h)
  --version                     the version of python-sb and of its Python (python's own: -V)

All options of python are taken as python takes them. The exit code, or the signal,
is the program's; 2 stands for a command line or a profile that cannot be used,
125 for a sandbox that cannot be set up.

environment: PYSANDBOXES_LEARN=never forbids learning; PYSANDBOXES_DEBUG=1 logs more.

  python-sb --learn app.py      watch a run and write down what it needs
  python-sb app.py              run it with that and nothing else
  pysandboxes explain           which rule decides what
`

func help(w io.Writer) int {
	fmt.Fprint(w, usage)
	return 0
}

// version prints our version and the interpreter's. Without an interpreter it still answers.
func version(w io.Writer, exe string, env map[string]string) int {
	python := "no Python found"
	if exe != "" {
		if v := pythonVersion(exe, env); v != "" {
			python = "Python " + v
		}
	}
	fmt.Fprintf(w, "python-sb %s (%s)\n", wire.Version, python)
	return 0
}

// pythonVersion takes the cached answer of the probe, else asks the interpreter for its version only.
func pythonVersion(exe string, env map[string]string) string {
	if in := interpreter.Cached(exe, env); in != nil {
		return in.FullVersion
	}
	out, err := exec.Command(exe, "-V").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimPrefix(string(out), "Python "))
}

// banner is what a person reads above the first prompt.
func banner(plan *daemon.Plan) string {
	if plan.Learning() {
		return fmt.Sprintf("python-sb %s: everything is allowed in this session and recorded for %s\n", wire.Version, plan.LearnPath())
	}
	path := plan.ProfilePath()
	if rel, err := filepath.Abs(path); err == nil {
		path = rel
	}
	return fmt.Sprintf("python-sb %s: imports, files, network and calls are limited by %s (held by: %s)\n", wire.Version, path, plan.Provider())
}
