package interpreter

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// NotFoundError says where an interpreter was looked for.
type NotFoundError struct {
	Command string
	Looked  []string // in order, each once
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no Python interpreter belongs to %s; looked for:\n    %s\n"+
		"Install it into an environment (uv tool install python-sb, pip install python-sb) and run it from there, or use: python -m pysandboxes.python_sb",
		e.Command, strings.Join(e.Looked, "\n    "))
}

// script is the console script that is installed together with python-sb and whose first line names their interpreter.
const script = "pysandboxes"

// versioned reports whether a name is python3.N, such as python3.11 but not python3.11-config.
func versioned(name string) bool {
	minor, found := strings.CutPrefix(name, "python3.")
	return found && minor != "" && strings.Trim(minor, "0123456789") == ""
}

// Find gives the interpreter that belongs to the command at self. The links of the command are followed one at a time
// (pipx and uv link a command from the environment into a folder of the user's), which gives the folders to look in.
// What is surest wins, over all of these folders:
//
//  1. an interpreter in a virtual environment's own folder
//  2. the first line of the sibling script `pysandboxes` (--user, /usr/local/bin, conda), which names its interpreter
//  3. any interpreter beside the command, the command's real place first
//
// The environment's variables have no say. The result keeps its links: a virtual environment is known by them.
func Find(self string) (string, error) {
	folders := foldersOf(self)
	missing := &NotFoundError{Command: self}
	for _, folder := range folders {
		if regular(filepath.Join(filepath.Dir(folder), "pyvenv.cfg")) {
			if exe := beside(folder, missing); exe != "" {
				return exe, nil
			}
		}
	}
	for _, folder := range folders {
		if exe := fromScript(filepath.Join(folder, script), missing); exe != "" {
			return exe, nil
		}
	}
	for i := len(folders) - 1; i >= 0; i-- {
		if exe := beside(folders[i], missing); exe != "" {
			return exe, nil
		}
	}
	missing.Looked = unique(missing.Looked)
	return "", missing
}

// maxLinks is the kernel's own bound on links in one path.
const maxLinks = 40

// foldersOf lists the folder of the command and of each file that it links to, in order, each once.
func foldersOf(self string) []string {
	path, err := filepath.Abs(self)
	if err != nil {
		return nil
	}
	var folders []string
	for range maxLinks {
		folders = append(folders, filepath.Dir(path))
		next, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = filepath.Clean(next)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		folders = append(folders, filepath.Dir(real))
	}
	return unique(folders)
}

// beside gives the interpreter in a folder: the only python3.N, else python3, else python.
func beside(folder string, missing *NotFoundError) string {
	names := []string{"python3", "python"}
	if entries, err := os.ReadDir(folder); err == nil {
		var numbered []string
		for _, entry := range entries {
			if versioned(entry.Name()) {
				numbered = append(numbered, entry.Name())
			}
		}
		if sort.Strings(numbered); len(numbered) == 1 {
			names = append(numbered, names...)
		} else {
			names = append(names, numbered...)
		}
	}
	for _, name := range names {
		path := filepath.Join(folder, name)
		if executable(path) {
			return path
		}
	}
	missing.Looked = append(missing.Looked, filepath.Join(folder, "python3.N, python3, python"))
	return ""
}

// fromScript reads the interpreter out of a console script's first lines: `#!/env/bin/python`, or the form for long and
// for relocatable paths, `#!/bin/sh` followed by `”'exec' …/python "$0" "$@"`.
func fromScript(path string, missing *NotFoundError) string {
	missing.Looked = append(missing.Looked, path+" (its first line)")
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 4096), 4096)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "#!") {
		return ""
	}
	exe := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "#!"))
	if exe == "/bin/sh" && lines.Scan() {
		quoted, found := strings.CutPrefix(lines.Text(), "'''exec' ")
		if !found {
			return ""
		}
		exe = strings.Trim(strings.TrimSuffix(strings.TrimSpace(quoted), ` "$0" "$@"`), `"' `)
	}
	if strings.HasPrefix(exe, "/usr/bin/env") || !filepath.IsAbs(exe) || !executable(exe) {
		return ""
	}
	return exe
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// unique drops repeats and empty strings and keeps the order.
func unique(list []string) []string {
	seen := make(map[string]bool, len(list))
	out := list[:0:0]
	for _, s := range list {
		if s != "" && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
