package learn

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// maxObservations bounds what a recorder keeps: a program that touches a million names does not take the supervisor
// with it. What comes later is counted and said in the result.
const maxObservations = 100_000

// Options says against what is learned.
type Options struct {
	Policy      *policy.Policy // what is allowed already; nil: nothing is
	ProfilePath string         // paths are written relative to its folder
	Home, Cwd   string
	TmpDir      string            // "" takes TMPDIR of Env, else /tmp
	Env         map[string]string // the host's environment; nil: unknown
	Now         func() time.Time  // nil: time.Now
	Runtime     policy.Runtime    // where distributions are looked for
	For         string            // on whose behalf the program ran, such as the test that called it; it stands in the comments
	Prompt      bool              // an interactive session: what no line of it asked for is the prompt's own
	Resolver    policy.Resolver   // which name an address came from; nil: the host's resolver
	Journal     string            // path, without its end, of the files that keep what was seen if this process is killed; "": none
}

// Recorder collects observations. It may be used by many goroutines at once.
type Recorder struct {
	o       Options
	mu      sync.Mutex
	seen    map[Observation]*entry
	order   []*entry
	dropped int
	passed  map[string]access // what the import system touched besides the files that it read
	journal *journal          // nil: none
	former  int               // how much came from runs that were killed
}

// entry is an observation, deduplicated.
type entry struct {
	Observation
	count   int
	native  int          // how often the observer of native code saw it
	missing bool         // file: read, and nothing was there
	absent  map[int]bool // import: processes that did not find the module; false: that found it since
}

// New makes a recorder.
func New(o Options) *Recorder {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.TmpDir == "" {
		if o.TmpDir = o.Env["TMPDIR"]; o.TmpDir == "" {
			o.TmpDir = "/tmp"
		}
	}
	if o.Policy != nil && o.Runtime.Stdlib == nil && o.Runtime.Site == nil {
		o.Runtime = o.Policy.Runtime()
	}
	r := &Recorder{o: o, seen: map[Observation]*entry{}, passed: map[string]access{}}
	if o.Journal != "" {
		journal, found := openJournal(o.Journal, r)
		r.journal, r.former = journal, found
	}
	return r
}

// Former is how much of what is recorded was seen by runs that were killed before they could write it.
func (r *Recorder) Former() int { return r.former }

// Written lets go of what is kept outside of this process: it stands in the profile.
func (r *Recorder) Written() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.journal.done()
}

// Seen counts what was recorded so far, by family.
func (r *Recorder) Seen() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]int{}
	for _, e := range r.order {
		out[e.Family]++
	}
	return out
}

// Add records one observation. The first call site is kept, and native only stays if nothing else saw it.
func (r *Recorder) Add(o Observation) {
	if r.o.Prompt && promptsOwn(o) || o.Native && r.allowed(o) {
		return
	}
	key := o.key()
	r.mu.Lock()
	e, ok := r.seen[key]
	if ok {
		if e.Native && !o.Native {
			r.journal.keep(record{Observation: o})
		}
		e.counted(o)
		if e.Site == "" {
			e.Site = o.Site
		}
		probe := e.missing
		r.mu.Unlock()
		if probe && exists(o.Subject) {
			r.mu.Lock()
			e.missing = false
			r.mu.Unlock()
		}
		return
	}
	if len(r.order) >= maxObservations {
		r.dropped++
		r.mu.Unlock()
		return
	}
	e = &entry{Observation: o}
	e.counted(o)
	r.seen[key] = e
	r.order = append(r.order, e)
	if o.Native || !r.allowed(o) {
		r.journal.keep(record{Observation: o})
	}
	r.mu.Unlock()
	if o.Family == FamilyFile && !o.Write && !o.Native && !exists(o.Subject) {
		r.mu.Lock()
		e.missing = true
		r.mu.Unlock()
	}
}

// counted notes that the observation came.
func (e *entry) counted(o Observation) {
	if o.Native {
		e.native++
		return
	}
	e.count++
	e.Native = false
	if o.Family == FamilyImport {
		if e.absent == nil {
			e.absent = map[int]bool{}
		}
		e.absent[o.Process] = false
	}
}

// Passed notes what the import system touched that an import does not need: what native code does there is no other thing.
func (r *Recorder) Passed(path string, write bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := r.passed[path]
	if len(r.passed) >= maxObservations || had&accessOf(write) == accessOf(write) {
		return
	}
	r.passed[path] = had | accessOf(write)
	if o := (Observation{Family: FamilyFile, Subject: path, Write: write}); !r.allowed(o) {
		r.journal.keep(record{Observation: o, Passed: true})
	}
}

// Absent takes an import of a process back: there is no such module, and the sandbox answers so without a rule.
func (r *Recorder) Absent(name string, process int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.seen[Observation{Family: FamilyImport, Op: "import", Subject: name}]; e != nil && e.absent != nil {
		e.absent[process] = true
		r.journal.keep(record{Observation: e.Observation.of(process), Absent: true})
	}
}

// of is the same observation of another process.
func (o Observation) of(process int) Observation {
	o.Process = process
	return o
}

// gone tells a module that nobody found.
func (e *entry) gone() bool {
	for _, absent := range e.absent {
		if !absent {
			return false
		}
	}
	return len(e.absent) > 0
}

// allowed tells what native code did that needs no rule, which is most of it.
func (r *Recorder) allowed(o Observation) bool {
	return o.Family == FamilyFile && !o.Write && r.o.Policy != nil && filepath.IsAbs(o.Subject) && r.o.Policy.File(o.Subject, policy.Read, o.Op).Allow
}

// promptsOwn tells what the interactive prompt itself reads and writes (its history, the terminal's settings) from what
// the lines typed at it do: those have a call site, `<stdin>:1` at the least. The standard library's own templates run
// under the name <string>.
func promptsOwn(o Observation) bool {
	if o.Family != FamilyFile && o.Family != FamilyEnv || o.Event == ofInterpreter {
		return false
	}
	return o.Site == "" || strings.HasPrefix(o.Site, "<string>:")
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Result generalises what was recorded so far. It asks the file system what is a folder, and the resolver which name
// an address came from; both only to name a rule more narrowly or more durably.
func (r *Recorder) Result() Result {
	base := canonicalFolder(profileDir(r.o))
	r.mu.Lock()
	byFamily := map[string][]entry{}
	for _, e := range r.order {
		if e.gone() {
			continue
		}
		kept := *e
		if kept.Native {
			kept.count = kept.native
		}
		if base != "" {
			kept.Site = strings.TrimPrefix(kept.Site, base+"/") // a profile is shared; where it lies is not
		}
		byFamily[e.Family] = append(byFamily[e.Family], kept)
		if e.Family == FamilyNet && e.Op == "bind" && e.Proto == "unix" && strings.HasPrefix(e.Host, "/") {
			kept.Family, kept.Subject, kept.Write = FamilyFile, e.Host, true // the socket is a name in its folder
			byFamily[FamilyFile] = append(byFamily[FamilyFile], kept)
		}
	}
	byFamily[FamilyFile] = nativeFiles(byFamily[FamilyFile], r.passed)
	byFamily[FamilyNet] = nativeNet(byFamily[FamilyNet])
	dropped := r.dropped
	r.mu.Unlock()

	g := newGeneraliser(r.o)
	for _, f := range []struct {
		family string
		learn  func([]entry) []Learned
	}{
		{FamilyEnv, g.env},
		{FamilyFile, g.files},
		{FamilyNet, g.net},
		{FamilyImport, g.imports},
		{FamilyCall, g.calls},
		{FamilyEval, g.eval},
		{FamilyResult, g.results},
	} {
		if entries := byFamily[f.family]; len(entries) > 0 {
			g.lines = append(g.lines, f.learn(entries)...)
		}
	}
	g.lines = append(g.lines, g.ungranted(byFamily)...)
	if dropped > 0 {
		g.lines = append(g.lines, leftOut(FamilyFile, entry{count: dropped}, "more than this run records was observed; learn again with a smaller program"))
	}
	if r.o.For != "" {
		for i := range g.lines {
			g.lines[i].Site = strings.TrimSpace(g.lines[i].Site + " for " + r.o.For)
		}
	}
	return Result{Lines: g.lines, At: r.o.Now()}
}
