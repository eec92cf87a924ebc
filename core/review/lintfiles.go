package review

import (
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/policy"
)

func (l *linter) files() {
	at := map[string][]*Grant{}
	exposes := l.keys("expose-ro", "expose-rw")
	for _, g := range exposes {
		at[shown(g)] = append(at[shown(g)], g)
	}
	for _, g := range exposes {
		path := shown(g)
		if by := l.exposedBy(at, g, path); by != nil {
			l.duplicate(g, by)
		}
		if d := l.Policy.File(path, policy.Read, "open"); !d.Allow && strings.HasPrefix(d.RuleText, "ignore=") {
			l.add(g, Error, KindShadowed, "has no effect: "+d.RuleText+" at "+d.Rule.String()+" hides all of it", "Take out the one that is not meant.")
			l.findings[len(l.findings)-1].Other = d.Rule
		}
		if !g.exposure.Write && slices.ContainsFunc(l.Policy.Runtime().Read, func(dir string) bool { return under(path, dir) }) {
			l.add(g, Note, KindDuplicate, "is readable without a rule: it is part of the interpreter's runtime", "")
		}
		switch {
		case g.Risk == learn.High && g.Why == "looks like a secret":
			l.add(g, Warning, KindSecret, g.Why, "Expose what the program needs beside it.")
		case g.Risk == learn.High:
			l.wide(g, "Expose the folder beneath it that the program needs.")
		}
	}
	l.ignores(exposes)
}

// shown is where the program sees an exposure.
func shown(g *Grant) string {
	if g.exposure.Dest != "" {
		return g.exposure.Dest
	}
	return g.exposure.Source
}

// exposedBy returns a grant that already opens what g opens. A read-only one beneath a writable one is the compiler's
// to warn of.
func (l *linter) exposedBy(at map[string][]*Grant, g *Grant, path string) *Grant {
	for dir := path; ; dir = parent(dir) {
		for _, other := range at[dir] {
			if other == g || dir != path && other.exposure.File || other.exposure.Write != g.exposure.Write {
				continue
			}
			if dir != path || before(other, g) {
				return other
			}
		}
		if dir == "/" {
			return nil
		}
	}
}

// before tells which of two grants stands first in the profile.
func before(a, b *Grant) bool { return a.at < b.at }

func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

func under(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

func (l *linter) ignores(exposes []*Grant) {
	seen := map[string]*Grant{}
	for _, g := range l.keys("ignore") {
		if first, ok := seen[g.Value]; ok {
			l.duplicate(g, first)
			continue
		}
		seen[g.Value] = g
		if !slices.ContainsFunc(exposes, func(e *Grant) bool { return hides(g, e) }) {
			l.add(g, Warning, KindNever, "hides nothing: no expose rule shows what it could match", "Expose what it is in, or take it out.")
		}
	}
}
