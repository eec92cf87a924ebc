package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// fileRules hold what may be read and written, by canonical path. A question walks from the path to the root: one look
// into the map a folder, however many rules there are.
type fileRules struct {
	entries   map[string]fileEntry
	exposures []Exposure
	ignores   []Ignore
	hidden    globs
	protected map[string]bool
	guarded   []guardedPath  // the same, with the lines that name them
	routes    []route        // the exposures that go over links
	links     map[string]int // the links that they go over, by the line: what a link is may be read where a rule names it
}

// fileEntry is what is allowed at a path and beneath it.
type fileEntry struct {
	runtime  bool // readable without a rule; ignore rules do not reach it
	device   bool // writable without a rule (/dev/null)
	exact    bool // this path only
	above    bool // a folder above something readable: its metadata may be read
	ro, rw   int  // the rules that expose it
	explicit bool // a rule names it
}

// devices are files that every program may use; writing to the first goes nowhere.
var devices = []struct {
	path  string
	write bool
}{{"/dev/null", true}, {"/dev/zero", false}, {"/dev/urandom", false}}

// Devices are the devices that need no rule.
func Devices() []string {
	var out []string
	for _, d := range devices {
		out = append(out, d.path)
	}
	return out
}

// metadataOps ask what a path is, not what it holds. realpath asks them of each folder on the way to a file, so they
// are allowed for the folders above what is readable. The shims say the bare names, the events the dotted ones.
var metadataOps = map[string]bool{"stat": true, "lstat": true, "access": true, "readlink": true,
	"os.stat": true, "os.lstat": true, "os.access": true, "os.readlink": true, "os.chdir": true}

// moving are the operations that give a folder another name, and with it all that lies beneath.
var moving = map[string]bool{"os.rename": true, "os.replace": true}

func (c *compiler) addFile(r *profile.Rule) error {
	n := c.keep(r)
	if r.Key == "ignore" {
		glob, err := c.tilde(r, r.Value)
		if err != nil {
			return err
		}
		if err := c.files.hidden.add(glob, c.base(r), n); err != nil {
			return r.Fail("this glob cannot be used: "+err.Error(), "Write a basename (*.key) or a path (./data/**/*.key); * ? [a-z] and ** are known.")
		}
		c.files.ignores = append(c.files.ignores, Ignore{r.Value, c.files.hidden.fixed(n), r.Pos})
		return nil
	}
	if len(r.Items) > 2 {
		return r.Fail("a source and a destination at most", `Write a line for each path; a path with a comma goes in quotes.`)
	}
	if r.Items[0] == "" {
		return r.Fail("the path is empty", "The form is "+r.Key+"=SOURCE[,DEST].")
	}
	source, err := c.tilde(r, r.Items[0])
	if err != nil {
		return err
	}
	if !filepath.IsAbs(source) {
		source = c.base(r) + "/" + source
	}
	at, err := c.canonical(source)
	if err != nil {
		return r.Fail("the path cannot be resolved: "+err.Error(), "")
	}
	e := Exposure{Source: at.path, Write: r.Key == "expose-rw", File: at.file, Exists: at.exists, Pos: r.Pos}
	e.Make = e.Write && !e.Exists && strings.HasSuffix(source, "/")
	if !e.Exists && !e.Make {
		c.warn(r, fmt.Sprintf("%s does not exist", at.path))
	}
	if len(r.Items) == 2 {
		dest := r.Items[1]
		if !clean(dest) {
			return r.Fail("the destination is not a plain absolute path", "Write /where/the/program/sees/it, without . or .. or a slash at the end.")
		}
		if dest != at.path {
			e.Dest = dest
		}
	}
	c.files.exposures = append(c.files.exposures, e)
	if at.path != filepath.Clean(source) && !OfAsker(source) {
		links := linksTo(source)
		c.files.routes = append(c.files.routes, route{links, at.path, r.Pos, r.Key, r.Items[0]})
		for _, link := range links {
			if c.files.links == nil {
				c.files.links = map[string]int{}
			}
			c.files.links[link] = n
		}
	}
	shown := e.Source
	if e.Dest != "" {
		shown = e.Dest
	}
	c.files.put(shown, func(f *fileEntry) {
		f.exact, f.explicit = e.File, true
		if e.Write && f.rw == 0 {
			f.rw = n
		} else if !e.Write && f.ro == 0 {
			f.ro = n
		}
	})
	return nil
}

// tilde expands `~`.
func (c *compiler) tilde(r *profile.Rule, path string) (string, error) {
	switch {
	case path == "~" || strings.HasPrefix(path, "~/"):
		if c.ctx.Home == "" {
			return "", r.Fail("~ cannot be expanded: the home folder is not known", "Write the whole path.")
		}
		return c.ctx.Home + path[1:], nil
	case strings.HasPrefix(path, "~"):
		return "", r.Fail("the home folder of another user is not expanded", "Write the whole path, or ./"+path+" for a file of that name.")
	}
	return path, nil
}

// put changes the entry of a path.
func (f *fileRules) put(path string, change func(*fileEntry)) {
	if f.entries == nil {
		f.entries = map[string]fileEntry{}
	}
	e := f.entries[path]
	change(&e)
	f.entries[path] = e
}

func (c *compiler) finishFiles() error {
	c.warnUseless()
	rt := c.ctx.Runtime
	for _, path := range slices.Concat(rt.Read, rt.Stdlib, rt.Site, rt.Executables, rt.Libs) {
		if clean(path) { // canonical already: hundreds of look-ups would show in each start
			c.files.put(path, func(f *fileEntry) { f.runtime = true })
		}
	}
	for _, path := range append(slices.Clone(c.ctx.Target), c.ctx.Package) {
		if path == "" {
			continue
		}
		at, err := canonical(path)
		if err != nil {
			return fmt.Errorf("the program cannot be resolved: %w", err)
		}
		c.files.put(at.path, func(f *fileEntry) { f.runtime, f.exact = true, at.file })
	}
	for _, d := range devices {
		c.files.put(d.path, func(f *fileEntry) { f.runtime, f.exact, f.device = true, true, d.write })
	}
	paths := make([]string, 0, len(c.files.entries))
	for p := range c.files.entries {
		paths = append(paths, p)
	}
	for _, p := range paths {
		for p = parent(p); p != "" && !c.files.entries[p].above; p = parent(p) {
			c.files.put(p, func(f *fileEntry) { f.above = true })
		}
	}
	return c.protect()
}

// warnUseless tells of an expose-ro beneath an expose-rw: the wider rule holds there.
func (c *compiler) warnUseless() {
	writable := map[string]*Exposure{}
	for i := range c.files.exposures {
		if e := &c.files.exposures[i]; e.Write && writable[e.Source] == nil {
			writable[e.Source] = e
		}
	}
	for _, e := range c.files.exposures {
		for at := e.Source; at != "" && !e.Write; at = parent(at) {
			if w := writable[at]; w != nil {
				c.warnings = append(c.warnings, profile.Warning{Pos: e.Pos, Text: fmt.Sprintf(
					"expose-ro has no effect on %s: expose-rw at %s makes %s writable; ignore= would hide it", e.Source, w.Pos, w.Source)})
				break
			}
		}
	}
}

// File decides on a canonical absolute path, of any bytes.
func (p *Policy) File(path string, a Access, op string) Decision {
	if !clean(path) {
		d := p.refuse("file", op, path, phrase(path, a), 0)
		d.Note = "the path is not canonical, so no rule can decide on it."
		return d
	}
	found := p.files.find(path)
	write := a&Write != 0
	switch {
	case found.runtime && (!write || found.device && op == "open"): // a device is written to, never changed or removed
		return p.allow("file", op, path, 0)
	case !found.runtime || found.ro > 0 || found.rw > 0:
		if n := p.files.hidden.match(path); n > 0 {
			return p.refuse("file", op, path, phrase(path, a), n)
		}
	}
	if write && moving[op] {
		if n, hidden := p.files.hidden.moves(path); n > 0 {
			d := p.refuse("file", op, path, phrase(path, a), n)
			text, _ := profile.Quote(hidden)
			d.Note = "Under another name, " + text + " would be hidden no more."
			return d
		}
	}
	if write && p.files.protected[path] {
		d := p.refuse("file", op, path, phrase(path, a), 0)
		d.Note = "the profile and what it includes are never writable."
		return d
	}
	switch {
	case write && found.rw > 0:
		return p.allow("file", op, path, found.rw)
	case !write && found.ro > 0:
		return p.allow("file", op, path, found.ro)
	case !write && found.rw > 0:
		return p.allow("file", op, path, found.rw)
	case !write && metadataOps[op] && p.files.entries[path].above:
		return p.allow("file", op, path, 0)
	case !write && metadataOps[op] && p.files.links[path] > 0:
		return p.allow("file", op, path, p.files.links[path])
	}
	key := "expose-ro="
	if write {
		key = "expose-rw="
	}
	d := p.refuse("file", op, path, phrase(path, a), 0)
	if text, ok := p.spell(path); ok {
		d.Add = []string{key + text}
	}
	if write && (found.ro > 0 || found.runtime) {
		d.Note = "It is exposed read only."
	}
	if rest, ok := numbered(path); ok {
		p.adviseProcess(&d, rest, key)
	} else if write {
		p.adviseName(&d, path, op)
	}
	return d
}

// Hidden tells that an ignore rule hides the name in a folder (a canonical path), so that no list shows it: reading it is
// refused by that rule, and not for want of another.
func (p *Policy) Hidden(folder, name string) bool {
	path := strings.TrimSuffix(folder, "/") + "/" + name
	if !clean(path) || strings.Contains(name, "/") {
		return true // nothing that a folder could hold
	}
	return !p.files.find(path).runtime && p.files.hidden.match(path) > 0
}

// find unites the entries at a path and above it.
func (f *fileRules) find(path string) fileEntry {
	var out fileEntry
	for at := path; at != ""; at = parent(at) {
		e, ok := f.entries[at]
		if !ok || e.exact && len(at) != len(path) {
			continue
		}
		out.runtime = out.runtime || e.runtime
		out.device = out.device || e.device
		if out.ro == 0 {
			out.ro = e.ro
		}
		if out.rw == 0 {
			out.rw = e.rw
		}
	}
	return out
}

// phrase says what was refused.
func phrase(path string, a Access) string {
	text, ok := profile.Quote(path)
	if !ok {
		text = fmt.Sprintf("%q", path)
	}
	if a&Write != 0 {
		return "writing " + text
	}
	return "reading " + text
}

// spell writes a path as a rule would: relative to the profile where it lies beneath its folder.
func (p *Policy) spell(path string) (string, bool) {
	if p.dir != "" && p.dir != "/" && beneath(path, p.dir) {
		path = "." + path[len(p.dir):]
	}
	return profile.Quote(path)
}

// Exposures returns the expose rules in the order of the profile.
func (p *Policy) Exposures() []Exposure { return slices.Clone(p.files.exposures) }

// Ignores returns the ignore rules in the order of the profile.
func (p *Policy) Ignores() []Ignore { return slices.Clone(p.files.ignores) }

// Runtime returns what it was compiled with.
func (p *Policy) Runtime() Runtime { return p.ctx.Runtime }

// Target returns the single files that are readable without a rule.
func (p *Policy) Target() []string { return slices.Clone(p.ctx.Target) }
