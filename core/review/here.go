package review

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/audit"
	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/policy"
)

// Bounds of what is told of one grant: a report is read by a person, and a folder may hold a disk.
const (
	mostEntries = 20_000 // of a folder and what is beneath it
	mostNames   = 12
)

// Here says what grants open on this machine, now: the files beneath a folder, the variables that a pattern meets, where
// a module lies, the functions of a category. It reads names and sizes, never contents or values, and looks nothing up in
// the network.
type Here struct {
	subject      Subject
	set          map[string]bool // variables that the child would have
	distribution func(module string) string
}

// NewHere reads what all grants are held against.
func NewHere(s Subject) *Here {
	h := &Here{subject: s, set: map[string]bool{}, distribution: learn.Distributions(s.Policy.Runtime().Site)}
	for _, v := range s.Policy.Environ() {
		name, _, _ := strings.Cut(v, "=")
		h.set[name] = true
	}
	return h
}

// Opens lists what a grant opens, a sentence each; nothing where the rule says it all, or takes away.
func (h *Here) Opens(g *Grant) []string {
	switch {
	case g.Deny:
		return nil
	case g.exposure != nil:
		return h.files(g.exposure)
	case g.net != nil:
		return networks(g.net)
	case g.Rule.Key == "env":
		return h.variables(g)
	case g.Rule.Key == "python-import":
		return h.module(g.target)
	case g.Rule.Key == "python-api":
		return functions(g.target)
	}
	return nil
}

func (h *Here) variables(g *Grant) []string {
	var names []string
	for _, v := range g.Rule.Env {
		if h.set[v.Name] {
			names = append(names, v.Name)
		}
	}
	if len(names) == 0 {
		return []string{"not set here"}
	}
	slices.Sort(names)
	if strings.Contains(g.Rule.Items[0], "*") {
		return []string{"set here: " + some(names)}
	}
	return []string{"set here"}
}

func networks(n *policy.NetRule) []string {
	var names []string
	for _, p := range n.Networks() {
		names = append(names, p.String())
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"the networks " + strings.Join(names, ", ")}
}

func functions(target string) []string {
	var names []string
	for _, c := range audit.Calls {
		if target == "*" || string(c.Category) == target {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{count(len(names), "function") + ": " + some(names)}
}

// module says where a module lies, by its folder alone: nothing is imported.
func (h *Here) module(target string) []string {
	if target == "*" {
		return nil
	}
	runtime := h.subject.Policy.Runtime()
	top, _, _ := strings.Cut(target, ".")
	relative := strings.ReplaceAll(target, ".", "/")
	for _, dir := range slices.Concat(runtime.Site, []string{filepath.Dir(h.subject.Profile.Path)}) {
		path, native, found := moduleAt(dir, relative)
		if !found {
			continue
		}
		out := []string{path}
		if from := h.distribution(top); from != "" {
			out = []string{"from " + from + ": " + path}
		}
		if native > 0 {
			out = append(out, "with "+count(native, "native library")+", which only the OS layer holds")
		}
		return out
	}
	return nil
}

// moduleAt looks for a module beneath a folder of sys.path and counts the native libraries that come with it.
func moduleAt(dir, relative string) (path string, native int, found bool) {
	base := filepath.Join(dir, relative)
	if info, err := os.Stat(base); err == nil && info.IsDir() {
		left := mostEntries
		_ = filepath.WalkDir(base, func(_ string, d fs.DirEntry, err error) error {
			if left--; left < 0 {
				return fs.SkipAll
			}
			if err == nil && isLibrary(d.Name()) {
				native++
			}
			return nil
		})
		return base, native, true
	}
	if info, err := os.Stat(base + ".py"); err == nil && info.Mode().IsRegular() {
		return base + ".py", 0, true
	}
	entries, _ := os.ReadDir(filepath.Dir(base)) // names of extension modules hold the platform's tag
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(base)+".") && isLibrary(e.Name()) {
			return filepath.Join(filepath.Dir(base), e.Name()), 1, true
		}
	}
	return "", 0, false
}

func isLibrary(name string) bool {
	return strings.HasSuffix(name, ".so") || strings.Contains(name, ".so.")
}

// files says what an exposure is and, of a folder, how much lies beneath it and which names there look like secrets. What
// an ignore rule hides is not counted among these.
func (h *Here) files(e *policy.Exposure) []string {
	info, err := os.Stat(e.Source)
	switch {
	case os.IsNotExist(err):
		return []string{"nothing is there now"}
	case err != nil:
		return []string{"cannot be looked at: " + reason(err)}
	case info.Mode()&fs.ModeSocket != 0:
		return []string{"a socket: whoever serves it acts outside the sandbox"}
	case info.Mode()&fs.ModeDevice != 0:
		return []string{"a device"}
	case info.Mode()&fs.ModeNamedPipe != 0:
		return []string{"a named pipe"}
	case !info.IsDir():
		return []string{"a file of " + size(info.Size())}
	}
	return h.folder(e.Source)
}

// tree is what a walk of a folder has found.
type tree struct {
	files, folders, sockets, left int
	size                          int64
	secrets                       []string
	more                          bool // not all was looked at
}

func (h *Here) folder(source string) []string {
	t := tree{left: mostEntries}
	_ = filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if path == source {
			return nil
		}
		if t.left--; t.left < 0 {
			t.more = true
			return fs.SkipAll
		}
		if err != nil {
			return nil // a folder that only others may read
		}
		h.count(&t, source, path, d)
		return nil
	})
	out := []string{fmt.Sprintf("%s%s in %s, %s", atLeast(t.more), count(t.files, "file"), count(t.folders+1, "folder"), size(t.size))}
	if len(t.secrets) > 0 {
		out = append(out, "names that look like secrets: "+some(t.secrets))
	}
	if t.sockets > 0 {
		out = append(out, count(t.sockets, "socket")+": whoever serves one acts outside the sandbox")
	}
	return out
}

func (h *Here) count(t *tree, source, path string, d fs.DirEntry) {
	switch {
	case d.IsDir():
		t.folders++
	case d.Type()&fs.ModeSocket != 0:
		t.sockets++
	default:
		t.files++
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			t.size += info.Size()
		}
	}
	if !d.IsDir() && learn.SecretPath(path) && h.subject.Policy.File(path, policy.Read, "open").Allow {
		t.secrets = append(t.secrets, strings.TrimPrefix(path, source+"/"))
	}
}

func atLeast(more bool) string {
	if more {
		return "at least "
	}
	return ""
}

// some is a list that a person still reads.
func some(names []string) string {
	if len(names) > mostNames {
		return strings.Join(names[:mostNames], ", ") + " and " + number(int64(len(names)-mostNames)) + " more"
	}
	return strings.Join(names, ", ")
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	if strings.HasSuffix(word, "y") {
		return number(int64(n)) + " " + strings.TrimSuffix(word, "y") + "ies"
	}
	return number(int64(n)) + " " + word + "s"
}

// size is a number of bytes, rounded.
func size(n int64) string {
	for _, u := range []struct {
		each int64
		name string
	}{{1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "KB"}} {
		if n >= u.each {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.each), u.name)
		}
	}
	return count(int(n), "byte")
}

// reason is an error without the path, which stands beside it.
func reason(err error) string {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err.Error()
	}
	return err.Error()
}
