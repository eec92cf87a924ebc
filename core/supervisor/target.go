package supervisor

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/interpreter"
)

// scope is what of the program itself is readable and importable without a rule.
type scope struct {
	files   []string // canonical
	modules []string
}

// scopeOf finds the files of a target without running anything. A target that is not there is python's to complain about.
func scopeOf(a *Arguments, in *interpreter.Interpreter, cwd string) scope {
	switch a.Kind {
	case TargetFile:
		path := a.Target
		if !filepath.IsAbs(path) {
			path = filepath.Join(cwd, path)
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return scope{}
		}
		if info, err := os.Stat(real); err == nil && info.IsDir() {
			return scope{files: existingFiles(filepath.Join(real, "__main__.py"), filepath.Join(real, "__main__.pyc"))}
		}
		files := []string{real}
		if path != real {
			files = append(files, filepath.Clean(path)) // as written, for the guard that does not resolve links
		}
		return scope{files: files}
	case TargetModule:
		folders := in.Path
		if !a.Isolated {
			folders = append([]string{cwd}, folders...)
		}
		s := scope{files: in.Module(a.Target, folders)}
		for i, c := range a.Target {
			if c == '.' {
				s.modules = append(s.modules, a.Target[:i])
			}
		}
		s.modules = append(s.modules, strings.Clone(a.Target))
		return s
	}
	return scope{}
}

func existingFiles(paths ...string) []string {
	var files []string
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, path)
		}
	}
	return files
}
