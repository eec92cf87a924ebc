package policy

import (
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/audit"
)

// Snapshot returns what the guard may allow by itself. It never says more than the policy: what it leaves out is asked.
func (p *Policy) Snapshot() Snapshot {
	return Snapshot{
		Files:       p.fileEntries(),
		Ignore:      !p.files.hidden.empty(),
		Imports:     p.importNames(),
		ImportsDeny: p.importDenials(),
		Calls:       p.callNames(),
		Eval:        p.evalMode(),
	}
}

func (p *Policy) fileEntries() []FileEntry {
	var out []FileEntry
	for path, e := range p.files.entries {
		exact := 0
		if e.exact {
			exact = FlagExact
		}
		if e.runtime {
			bits := int(Read)
			if e.device {
				bits |= int(Write)
			}
			out = append(out, FileEntry{path, bits, exact | FlagRuntime})
		}
		if e.rw > 0 && !p.holdsProtected(path) {
			out = append(out, FileEntry{path, int(Read | Write), exact})
		} else if e.ro > 0 || e.rw > 0 {
			out = append(out, FileEntry{path, int(Read), exact})
		}
	}
	slices.SortFunc(out, func(a, b FileEntry) int {
		if c := strings.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return b.Flags - a.Flags
	})
	return out
}

// holdsProtected tells a writable folder that holds the profile: each write in it is asked.
func (p *Policy) holdsProtected(path string) bool {
	return slices.ContainsFunc(p.files.guarded, func(g guardedPath) bool { return beneath(g.path, path) })
}

func (p *Policy) importNames() []string {
	var out []string
	if p.imports.none > 0 {
		return nil
	}
	if p.imports.all > 0 {
		out = append(out, "*")
	}
	for name := range p.imports.allow {
		out = append(out, name)
	}
	for name := range p.imports.free {
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (p *Policy) importDenials() []string {
	var out []string
	for name := range p.imports.deny {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (p *Policy) callNames() []string {
	var out []string
	for i := range audit.Calls {
		if v := p.calls.decide(&audit.Calls[i]); v.allow && v.line > 0 {
			out = append(out, audit.Calls[i].Name)
		}
	}
	slices.Sort(out)
	return out
}

// evalMode tells what becomes of strings. A line that refuses eval, exec or compile by name holds besides eval-* rules.
func (p *Policy) evalMode() string {
	mode := "allow"
	for kind := range evalCalls {
		if d := p.Eval(kind); !d.Allow && (d.RuleText != "" || len(p.evals) == 0) {
			return "refuse"
		} else if !d.Allow {
			mode = "guard"
		}
	}
	return mode
}
