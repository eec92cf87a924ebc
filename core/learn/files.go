package learn

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// listing are the operations that read the names in a folder: the rule has to be for that folder.
var listing = map[string]bool{"listdir": true, "scandir": true, "walk": true, "fwalk": true, "chdir": true, "fchdir": true}

// looking are the operations that ask about a path without its content.
var looking = map[string]bool{"stat": true, "lstat": true, "access": true, "readlink": true, "statvfs": true, "getxattr": true, "listxattr": true}

// naming are the operations that change the folder that a name stands in, even where the name is a folder's.
var naming = map[string]bool{"mkdir": true, "rmdir": true, "remove": true, "unlink": true, "rename": true, "replace": true,
	"link": true, "symlink": true, "mkfifo": true, "mknod": true, "bind": true}

var processFolder = lazy(`^/proc/[0-9]+(/|$)`)

// need is what the program needs of one folder, or of one file where the folder must not be opened.
type need struct {
	entry
	path   string
	file   bool // exactly this path
	write  bool
	listed bool
	names  bool // names were made or removed in it
	made   bool // a folder that the program made itself
	looked bool // a folder that was merely looked at
	beside bool // a file beside the profile, whose folder holds the whole project, or of the process itself
	files  map[string]*need
	risk   Risk
	notes  []string
}

// files learns the folder that holds what was touched: read only unless a write was seen. Where the folder must not
// be opened as a whole, the files are listed one by one.
func (g *generaliser) files(entries []entry) []Learned {
	p := newPlaces(g.o)
	folders := map[string]*need{}
	var run []*need
	var out []Learned
	for _, e := range entries {
		why, wanted := g.wanted(e)
		if why != "" {
			out = append(out, leftOut(FamilyFile, e, why))
		}
		switch {
		case wanted && isExec(e):
			run = append(run, g.programs(e)...)
		case wanted:
			place(folders, e)
			if e.Subject == terminalMaker {
				place(folders, terminal(e))
			}
		}
	}
	chosen := run
	for _, path := range slices.Sorted(maps.Keys(folders)) {
		needs, comments := g.choose(p, folders[path], touchedBy(folders))
		chosen = append(chosen, needs...)
		out = append(out, comments...)
	}
	made := madeFolders(entries)
	chosen = slices.DeleteFunc(chosen, func(n *need) bool { return made[n.path] && n.file && p.wholesale(n.path) }) // what is made in it stands by itself
	for _, n := range chosen {
		if made[n.path] {
			if n.file {
				n.notes = nil // why it stands alone says less
			}
			n.made, n.file = true, false
			n.notes = append(n.notes, "the program makes this folder; with the slash it is there from the start")
		}
	}
	looked := slices.DeleteFunc(slices.Clone(chosen), func(n *need) bool { return !n.looked })
	chosen = subsume(slices.DeleteFunc(chosen, func(n *need) bool { return n.looked }))
	seen, comments := lookedAt(p, looked, chosen)
	out = append(out, comments...)
	for _, n := range subsume(append(merge(p, chosen), seen...)) {
		out = append(out, g.expose(p, n))
	}
	return byRisk(out)
}

// wanted says whether an observation needs a rule at all; why is a comment for the profile where it cannot have one.
func (g *generaliser) wanted(e entry) (why string, wanted bool) {
	path := e.Subject
	access, verb := policy.Read, "reading "
	if e.Write {
		access, verb = policy.Write, "writing "
	}
	switch {
	case e.missing, !filepath.IsAbs(path):
		// nothing is there: the sandbox answers "not found" as well
		return "", false
	case e.Write && strings.Contains(path+"/", "/__pycache__/"):
		// the interpreter does without, and writable code is a way out
		return "", false
	}
	if g.o.Policy != nil {
		d := g.o.Policy.File(path, access, e.Op)
		if d.Allow {
			return "", false
		}
		if strings.HasPrefix(strings.TrimSpace(d.RuleText), "ignore") {
			return verb + path + " is refused by " + d.Rule.String(), false
		}
	}
	if processFolder.MatchString(path) {
		rest := strings.TrimLeft(strings.TrimPrefix(path, "/proc/"), "0123456789")
		return verb + "/proc/NUMBER" + rest + ": a process number changes with every run", false
	}
	return "", true
}

// place puts an observation into the folder that a rule would name.
func place(folders map[string]*need, e entry) {
	path := filepath.Clean(e.Subject)
	op := operation(e.Op)
	if i := strings.LastIndex(path+"/", "/__pycache__/"); i >= 0 {
		path = path[:i]
		if path == "" {
			path = "/"
		}
		op = "scandir"
	}
	folder := filepath.Dir(path)
	names := e.Write && naming[op]
	whole := listing[op] || !names && isFolder(path)
	if whole {
		folder = path
	}
	n := folders[folder]
	if n == nil {
		n = &need{entry: e, path: folder, files: map[string]*need{}}
		n.count = 0
		folders[folder] = n
	}
	n.add(e)
	n.write = n.write || e.Write
	n.names = n.names || names
	n.listed = n.listed || whole && !looking[op]
	if whole {
		return
	}
	f := n.files[path]
	if f == nil {
		f = &need{entry: e, path: path, file: true}
		f.count = 0
		n.files[path] = f
	}
	f.add(e)
	f.write = f.write || e.Write
}

// add counts one more observation in.
func (n *need) add(e entry) {
	n.count += e.count
	n.Native = n.Native && e.Native
	if n.Site == "" {
		n.Site = e.Site
	}
}

func operation(op string) string { return op[strings.LastIndexByte(op, '.')+1:] }

func touchedBy(folders map[string]*need) func(string) bool {
	return func(path string) bool {
		if folders[path] != nil {
			return true
		}
		n := folders[filepath.Dir(path)]
		return n != nil && n.files[path] != nil
	}
}

// ownProcess is the folder of the process that asks.
const ownProcess = "/proc/self"

// maxBeside bounds how many files beside the profile are named one by one.
const maxBeside = 32

// choose decides between the folder and its single files.
func (g *generaliser) choose(p places, n *need, touched func(string) bool) ([]*need, []Learned) {
	if in := p.tmp; n.path != in && holds(in, n.path) && touched(in) && !exists(n.path) {
		return nil, nil // made and removed again; what is said of the temporary folder covers it
	}
	risky := unobservedRisk(n.path, touched)
	temporary := n.path == p.tmp && (n.names || n.write && vanished(n))
	reason := ""
	unwritable := false // it is the writing alone that cannot be granted for the whole folder
	switch {
	case temporary && p.protects(n.path) != "":
		reason = "the temporary folder holds " + strings.TrimPrefix(p.protects(n.path), p.tmp+"/") +
			", which no sandbox may write, so it cannot be exposed for writing; move that elsewhere, or give the program a temporary folder of its own: expose-rw=./tmp/ and env=TMPDIR=./tmp"
	case n.write && p.protects(n.path) != "":
		// a kernel rule needs a file that exists when the sandbox starts
		reason = "the folder holds " + strings.TrimPrefix(p.protects(n.path), n.path+"/") + ", which no sandbox may write, so only files that exist; better write into a folder of its own"
		unwritable = !p.wholesale(n.path) && len(risky) == 0
	case temporary:
		n.notes = append(n.notes, "the shared temporary folder: other programs' files too")
		n.risk = Medium
		return []*need{n}, nil
	case p.wholesale(n.path):
		reason = n.path + " is never exposed as a whole"
	case len(risky) > 0 && !n.listed && !n.names:
		reason = n.path + " also holds " + strings.Join(risky, ", ")
	case len(risky) > 0:
		n.risk = High
		n.notes = append(n.notes, "also opens "+strings.Join(risky, ", "))
	}
	if n.looked = len(n.files) == 0 && !n.listed && !n.names && !n.write; n.looked {
		if n.path == p.profile {
			return nil, nil // the whole project
		}
		return []*need{n}, nil
	}
	if beside := n.path == p.profile && reason == "" && !n.listed && !n.names && len(n.files) > 0; beside && len(n.files) <= maxBeside {
		var out []*need
		for _, path := range slices.Sorted(maps.Keys(n.files)) {
			f := n.files[path]
			f.beside = true
			out = append(out, f)
		}
		return out, nil
	}
	if reason == "" {
		return []*need{n}, nil
	}
	var out []*need
	for _, path := range slices.Sorted(maps.Keys(n.files)) {
		f := n.files[path]
		if f.write && !exists(path) {
			continue // made and removed again, perhaps under a name that is another each time
		}
		if !f.write && (n.path == p.profile || n.path == ownProcess) {
			f.beside = true // it is the writing that the reason is for
		} else {
			f.notes = append(f.notes, reason)
		}
		out = append(out, f)
	}
	if unwritable && n.listed {
		out = append(out, &need{entry: n.entry, path: n.path, listed: true})
		n.listed = false
	}
	if n.listed || n.names || vanished(n) {
		what := "listing "
		if n.names || !n.listed {
			what = "making and removing names in "
		}
		return out, []Learned{leftOut(FamilyFile, n.entry, what+n.path+": "+reason)}
	}
	return out, nil
}

// lookedAt says what of the folders that were merely looked at needs a rule: a sandbox sees a folder where something in it is exposed.
func lookedAt(p places, looked, chosen []*need) (needs []*need, comments []Learned) {
	for _, n := range slices.Backward(looked) { // sorted: what lies beneath comes first
		answered := func(by *need) bool { return holds(n.path, by.path) }
		switch {
		case slices.ContainsFunc(chosen, answered) || slices.ContainsFunc(needs, answered):
		case p.wholesale(n.path) || secretPath(n.path+"/") || len(unobservedRisk(n.path, func(string) bool { return false })) > 0:
			comments = append(comments, leftOut(FamilyFile, n.entry, "looking at "+n.path+", in which nothing was used: the rule for it would open what it holds"))
		default:
			if len(entriesOf(n.path)) > 0 {
				n.notes, n.risk = append(n.notes, "the folder itself was looked at; the rule opens what it holds"), Medium
			}
			needs = append(needs, n)
		}
	}
	return needs, comments
}

// vanished tells that something which was written in a folder is not there any more.
func vanished(n *need) bool {
	for path, f := range n.files {
		if f.write && !exists(path) {
			return true
		}
	}
	return false
}

// madeFolders are the folders that the program made itself and left.
func madeFolders(entries []entry) map[string]bool {
	out := map[string]bool{}
	for _, e := range entries {
		if path := filepath.Clean(e.Subject); e.Write && operation(e.Op) == "mkdir" && isFolder(path) {
			out[path] = true
		}
	}
	return out
}

// subsume drops what a wider or equal need covers already; of two that are equal the first stays.
func subsume(needs []*need) []*need {
	var out []*need
	for i, n := range needs {
		covered := false
		for j, by := range needs {
			if covered = n.coveredBy(by) && (j < i || !by.coveredBy(n)); covered {
				by.count += n.count
				break
			}
		}
		if !covered {
			out = append(out, n)
		}
	}
	return out
}

// coveredBy tells that a rule for another need answers this one as well. Equal needs cover each other.
func (n *need) coveredBy(by *need) bool {
	switch {
	case by == n || n.write && !by.write:
		return false
	case by.path == n.path:
		return by.file == n.file || n.file
	}
	return !by.file && holds(by.path, n.path)
}

// merge joins folders into their parent where every entry of the parent is one of them: nothing unobserved is opened.
func merge(p places, needs []*need) []*need {
	for again := true; again; {
		again = false
		for _, write := range []bool{false, true} {
			children := map[string][]*need{}
			for _, n := range needs {
				if !n.file && n.write == write {
					parent := filepath.Dir(n.path)
					children[parent] = append(children[parent], n)
				}
			}
			for _, parent := range slices.Sorted(maps.Keys(children)) {
				kids := children[parent]
				if len(kids) < 2 || p.wholesale(parent) || write && p.protects(parent) != "" || !covers(parent, kids) {
					continue
				}
				joined := &need{entry: kids[0].entry, path: parent, write: write}
				joined.count = 0
				for _, k := range kids {
					joined.count += k.count
					joined.risk = max(joined.risk, k.risk)
					joined.Native = joined.Native && k.Native
					joined.notes = append(joined.notes, k.notes...)
				}
				needs = append(slices.DeleteFunc(needs, func(n *need) bool { return slices.Contains(kids, n) }), joined)
				again = true
			}
		}
	}
	slices.SortStableFunc(needs, func(a, b *need) int { return strings.Compare(a.path, b.path) })
	return needs
}

func covers(parent string, kids []*need) bool {
	names := entriesOf(parent)
	return len(names) == len(kids) && !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(kids, func(k *need) bool { return k.path == filepath.Join(parent, name) })
	})
}

// expose writes a need as a rule, in the most portable form that reads back as the path.
func (g *generaliser) expose(p places, n *need) Learned {
	key := "expose-ro"
	risk := max(n.risk, Low)
	if n.write {
		key, risk = "expose-rw", max(risk, Medium)
	}
	switch {
	case n.write && (codeFolder.MatchString(n.path) || n.file && startFile.MatchString(n.path)):
		risk, n.notes = High, append(n.notes, "what is written here may be run later")
	case n.file && secretFile.MatchString(filepath.Base(n.path)):
		risk, n.notes = High, append(n.notes, "looks like a secret")
	case secretPath(n.path):
		risk, n.notes = High, append(n.notes, "lies in a folder of secrets")
	case n.file && !n.beside:
		risk = max(risk, Medium)
	case n.path == terminals:
		risk, n.notes = High, append(n.notes, "terminals, of other programs too")
	case n.path == sharedMemory:
		n.notes = append(n.notes, "shared memory and semaphores, of other programs too")
	}
	e := n.entry
	e.Family, e.Subject = FamilyFile, n.path
	comment := strings.Join(slices.Compact(n.notes), "; ")
	var learned Learned
	path := n.path
	if n.write && n.made {
		path += "/" // python-sb makes it where it is missing
	}
	for _, text := range p.forms(path) {
		learned = g.rule(e, key+"="+text, risk, comment, expectation{key: key, allows: exposes(n.path, n.write)})
		if learned.Line != "" {
			break
		}
	}
	return learned
}

// A terminal is made by opening one file, and given out by a call that names none, with another number each time.
const (
	terminalMaker = "/dev/ptmx"
	terminals     = "/dev/pts"
)

// terminal is the need for what opening the maker gives.
func terminal(e entry) entry {
	e.Subject, e.Op, e.Write = terminals, "open", true
	return e
}

// sharedMemory is where shm_open and sem_open make their names.
const sharedMemory = "/dev/shm"

func secretPath(path string) bool {
	return slices.ContainsFunc(strings.Split(filepath.Dir(path), "/"), func(part string) bool {
		return part == ".ssh" || part == ".gnupg" || part == ".aws" || part == ".kube" || part == ".azure" || part == ".docker" || part == ".password-store"
	})
}

// forms are the ways to write a path, the most portable first: from the profile's folder, from the virtual environment, from
// home, from the temporary folder, absolute.
func (p places) forms(path string) []string {
	var out []string
	for _, f := range []struct{ folder, prefix string }{{p.profile, "."}, {p.venv, p.venvForm()}, {p.home, "~"}, {p.tmp, "${TMPDIR:-/tmp}"}} {
		if f.folder != "" && holds(f.folder, path) {
			rest := strings.TrimPrefix(path, f.folder)
			if rest == "" && f.prefix == "." {
				rest = "/"
			}
			out = append(out, quote(f.prefix, rest))
		}
	}
	return append(out, quote("", path))
}
