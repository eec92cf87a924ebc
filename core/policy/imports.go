package policy

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// importRules hold module names. A name stands for its submodules too.
type importRules struct {
	allow map[string]int
	deny  map[string]int
	way   map[string]int // packages above a granted submodule: importable, their other submodules not
	all   int            // the rule with `*`
	none  int            // the rule with DENY:*
	free  map[string]bool
}

// freeImports need no rule: they give no right.
var freeImports = []string{
	"__future__",  // compiler directives
	"__main__",    // the program itself
	"pysandboxes", // ours; inside a sandbox it holds no control
}

func (c *compiler) addImport(r *profile.Rule) error {
	n := c.keep(r)
	m := &c.imports
	if m.allow == nil {
		m.allow, m.deny, m.way = map[string]int{}, map[string]int{}, map[string]int{}
	}
	for _, it := range r.Items {
		action, name := action(it)
		switch {
		case it == "":
			continue
		case action == "" && strings.Contains(it, ":"):
			return r.Fail("unknown action in "+it, "Write NAME, * or DENY:NAME.")
		case name == "*" && action == "DENY":
			m.none = first(m.none, n)
		case name == "*":
			m.all = first(m.all, n)
		case strings.HasSuffix(name, ".*"):
			return r.Fail(it+" has a star too many", "A name grants its submodules: write "+strings.TrimSuffix(it, ".*")+".")
		case !moduleName(name):
			return r.Fail("not the name of a module: "+it, "Write dotted names between commas: python-import=json, xml.etree.")
		case action == "DENY":
			m.deny[name] = first(m.deny[name], n)
		default:
			m.allow[name] = first(m.allow[name], n)
		}
	}
	return nil
}

// action divides `ACTION:name`; action is "" where there is none. Actions are known in any case.
func action(item string) (action, name string) {
	word, rest, found := strings.Cut(item, ":")
	if found {
		if up := strings.ToUpper(strings.TrimSpace(word)); up == "ALLOW" || up == "DENY" {
			return up, strings.TrimSpace(rest)
		}
	}
	return "", item
}

// first keeps the rule that was there before.
func first(old, n int) int {
	if old > 0 {
		return old
	}
	return n
}

// moduleName tells what can be the name of a module. Names that Python's grammar cannot spell (a dash) can be imported
// by importlib, so they can be granted.
func moduleName(name string) bool {
	for p := range strings.SplitSeq(name, ".") {
		if p == "" || strings.ContainsFunc(p, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '_' && r != '-'
		}) {
			return false
		}
	}
	return true
}

func (c *compiler) finishImports() error {
	m := &c.imports
	for name, n := range m.allow {
		for up := above(name); up != ""; up = above(up) {
			m.way[up] = first(m.way[up], n)
		}
	}
	m.free = map[string]bool{}
	for _, name := range slices.Concat(freeImports, c.ctx.TargetModules) {
		m.free[name] = true
	}
	return nil
}

// above returns the package of a dotted name, "" at the top.
func above(name string) string {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return ""
	}
	return name[:i]
}

// Import decides on a module by its full name. hint is a file that would be the module but may not be read.
func (p *Policy) Import(name string, hint string) Decision {
	m := &p.imports
	for at := name; at != ""; at = above(at) {
		if n := m.deny[at]; n > 0 {
			return p.refuse("import", "import", name, "importing "+safe(name), n)
		}
	}
	if m.none > 0 {
		return p.refuse("import", "import", name, "importing "+safe(name), m.none)
	}
	n, allowed := p.imported(name)
	if allowed && hint == "" {
		return p.allow("import", "import", name, n)
	}
	d := p.refuse("import", "import", name, "importing "+safe(name), 0)
	switch {
	case allowed:
		d.Note = phrase(hint, Read)[len("reading "):] + " would be it, but it is not exposed."
	case moduleName(name):
		d.Add = p.suggest(name)
	default:
		d.Note = "this is not the name of a module."
	}
	if hint != "" && clean(hint) {
		d.Also, d.Add = d.Add[:min(1, len(d.Add))], nil
		own := ownPath(hint)
		for _, path := range []string{own, filepath.Dir(own)} {
			if text, ok := p.spell(path); ok {
				d.Add = append(d.Add, "expose-ro="+text)
			}
		}
	}
	return d
}

// imported returns the rule that grants a name.
func (p *Policy) imported(name string) (int, bool) {
	m := &p.imports
	for at := name; at != ""; at = above(at) {
		if n := m.allow[at]; n > 0 {
			return n, true
		}
		if m.free[at] {
			return 0, true
		}
	}
	if n := m.way[name]; n > 0 {
		return n, true
	}
	return m.all, m.all > 0
}

// suggest returns the lines for a module: itself, then the package above.
func (p *Policy) suggest(name string) []string {
	out := []string{"python-import=" + name}
	if top, _, found := strings.Cut(name, "."); found {
		out = append(out, "python-import="+top)
	}
	return out
}

// ownPath is what has to be exposed for the module in file and for no other: the file, or the folder of a package.
func ownPath(file string) string {
	if strings.HasPrefix(filepath.Base(file), "__init__.") {
		return filepath.Dir(file)
	}
	return file
}

// safe is a name for a message: on one line, whatever it holds.
func safe(name string) string {
	if q, ok := profile.Quote(name); ok {
		return q
	}
	return "a name with a NUL byte"
}
