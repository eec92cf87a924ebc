package interpreter

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// Interpreter is a Python and what it needs to run.
type Interpreter struct {
	Executable  string   // as it is to be started: its links say which virtual environment it is
	Version     string   // "3.11"
	FullVersion string   // "3.11.7"
	Path        []string // sys.path of a normal start, without the script's own folder
	Prefixes    []string // sys.prefix, exec_prefix, base_prefix, base_exec_prefix
	UserSite    []string // the part of Path that depends on HOME
	Suffixes    []string // of modules: .py, .pyc, .cpython-…so
	Runtime     policy.Runtime

	Package string // folder of the pysandboxes package, "" where it is not installed
	Guard   string // the guard for this version, in Package
	Preload string // the preload object, in Package
}

// RuntimeFor gives the runtime set; with net also what looking names up by the C library reads.
func (in *Interpreter) RuntimeFor(net bool) policy.Runtime {
	rt := in.Runtime
	if net {
		rt.Read = tidy(append(existing(netFiles), rt.Read...))
	}
	return rt
}

// Module gives the files that `-m name` runs or imports on the way, without importing any: the module's own file or its
// package's __main__, and the __init__ of each package above it. The folders are searched in order, as sys.path is.
func (in *Interpreter) Module(name string, folders []string) []string {
	parts := strings.Split(name, ".")
	for _, part := range parts {
		if part == "" || strings.ContainsAny(part, "/\x00") {
			return nil
		}
	}
	var files []string
	search := folders
	for _, part := range parts {
		next := ""
		for _, folder := range search {
			dir := filepath.Join(folder, part)
			if file := in.source(filepath.Join(dir, "__init__")); file != "" {
				files, next = append(files, file), dir
				break
			}
			if file := in.source(dir); file != "" {
				return append(files, file) // further parts would be beneath what is no package
			}
			if next == "" && folderExists(dir) {
				next = dir // a namespace package, unless a later folder has a regular one
			}
		}
		if next == "" {
			return files
		}
		search = []string{next}
	}
	if file := in.source(filepath.Join(search[0], "__main__")); file != "" {
		files = append(files, file)
	}
	return files
}

// source finds the file of a module by the suffixes that this interpreter imports.
func (in *Interpreter) source(stem string) string {
	for _, suffix := range in.Suffixes {
		if path := stem + suffix; regular(path) {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				return real
			}
			return path
		}
	}
	return ""
}

// CheckInstalled says what is missing where the package or its native parts are not installed for this interpreter.
func (in *Interpreter) CheckInstalled(version string) error {
	switch {
	case in.Package == "":
		return fmt.Errorf("the package pysandboxes is not installed for %s (Python %s)\nInstall it there: %s -m pip install pysandboxes==%s",
			in.Executable, in.FullVersion, in.Executable, version)
	case in.Guard == "":
		return fmt.Errorf("%s holds no guard for Python %s of this platform\nInstall the wheel that was built for it: %s -m pip install --force-reinstall pysandboxes==%s",
			in.Package, in.Version, in.Executable, version)
	case in.Preload == "":
		return fmt.Errorf("%s holds no _preload.so\nInstall the package again: %s -m pip install --force-reinstall pysandboxes==%s",
			in.Package, in.Executable, version)
	}
	return nil
}
