package learn

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/audit"
)

// programRun is the comment of a rule for a program that is started.
const programRun = "program that is run"

// isExec tells an observation of a program that was started from one of a file that was opened.
func isExec(e entry) bool { return !e.Write && operation(e.Op) == "exec" }

// programs are the single files that starting a program needs: itself, and what its first line names.
func (g *generaliser) programs(e entry) []*need {
	out := []*need{{entry: e, path: resolved(e.Subject), file: true, notes: []string{programRun}}}
	for _, path := range g.interpreters(e.Subject) {
		out = append(out, &need{entry: e, path: resolved(path), file: true, notes: []string{"runs " + filepath.Base(e.Subject)}})
	}
	return out
}

// ungranted says that native code starts programs where no function that does is called: a rule for functions is for Python's, and
// what no call of Python's asked for no run can name.
func (g *generaliser) ungranted(byFamily map[string][]entry) []Learned {
	if g.o.Policy != nil && g.o.Policy.GrantsExec() {
		return nil
	}
	for _, e := range byFamily[FamilyCall] {
		if call, ok := audit.Lookup(e.Subject); ok && call.Category == audit.ProcessExec {
			return nil
		}
	}
	for _, e := range byFamily[FamilyFile] {
		if e.Native && isExec(e) {
			return []Learned{leftOut(FamilyCall, e, "native code starts "+e.Subject+", which no function of Python's was called for: "+
				"python-api=ALLOW:process-exec lets it, and whatever else starts programs")}
		}
	}
	return nil
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// maxFirstLine is as much of a script's first line as the kernel reads (BINPRM_BUF_SIZE).
const maxFirstLine = 256

// interpreters reads the first line of a script: `#!/bin/sh`, or `#!/usr/bin/env NAME` with the NAME found on PATH.
func (g *generaliser) interpreters(script string) []string {
	f, err := os.Open(script)
	if err != nil {
		return nil
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, maxFirstLine)).ReadString('\n')
	rest, found := strings.CutPrefix(line, "#!")
	words := strings.Fields(rest)
	if !found || len(words) == 0 || !filepath.IsAbs(words[0]) {
		return nil
	}
	out := words[:1]
	if filepath.Base(words[0]) == "env" {
		for _, name := range words[1:] {
			if strings.HasPrefix(name, "-") || strings.Contains(name, "=") {
				continue // env's own options and variables
			}
			if path := onPath(name, g.o.Env["PATH"]); path != "" {
				out = append(out, path)
			}
			break
		}
	}
	return out
}

// onPath finds a program as env(1) does.
func onPath(name, path string) string {
	if strings.Contains(name, "/") {
		return ""
	}
	for _, folder := range filepath.SplitList(path) {
		at := filepath.Join(folder, name)
		if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && filepath.IsAbs(at) {
			return at
		}
	}
	return ""
}
