package learn

import (
	"cmp"
	"slices"
	"strings"
)

// generaliser turns the observations of one run into rules. Each family has its file: env.go, files.go, net.go,
// imports.go, calls.go.
type generaliser struct {
	o     Options
	lines []Learned
	back  reader
}

func newGeneraliser(o Options) *generaliser {
	return &generaliser{o: o, back: reader{env: o.Env, home: o.Home, base: profileDir(o)}}
}

// rule makes a learned line, if the profile's own parser reads it back as nothing but want; else a comment.
func (g *generaliser) rule(e entry, line string, risk Risk, comment string, want expectation) Learned {
	if err := g.back.check(line, want); err != nil {
		return leftOut(e.Family, e, "no rule says exactly this: "+subject(e.Observation))
	}
	if e.Native {
		comment = join(comment, "seen in native code")
	}
	return Learned{Family: e.Family, Line: line, Comment: visible(comment), Count: e.count, Site: visible(e.Site), Risk: risk}
}

// leftOut is a comment in place of a rule. Everything in it is escaped.
func leftOut(family string, e entry, why string) Learned {
	return Learned{Family: family, Comment: "not learned: " + visible(why), Count: e.count, Site: visible(e.Site)}
}

// subject names an observation in a comment; the caller escapes it.
func subject(o Observation) string {
	if o.Family == FamilyNet {
		return join(o.Op+" "+o.Proto, o.Host)
	}
	return join(o.Op, o.Subject)
}

func join(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return a + "; " + b
}

// fold joins entries that lead to the same name: counts add up, the first site stays.
func fold(entries []entry, name func(entry) string) []entry {
	at := map[string]int{}
	var out []entry
	for _, e := range entries {
		n := name(e)
		i, ok := at[n]
		if !ok {
			at[n] = len(out)
			e.Subject = n
			out = append(out, e)
			continue
		}
		out[i].count += e.count
		out[i].Native = out[i].Native && e.Native
		if out[i].Site == "" {
			out[i].Site = e.Site
		}
	}
	return out
}

// byRisk sorts rules for a reader: the riskiest first, then by their text; comments last.
func byRisk(lines []Learned) []Learned {
	slices.SortStableFunc(lines, func(a, b Learned) int {
		if c := cmp.Compare(rank(a), rank(b)); c != 0 {
			return c
		}
		return strings.Compare(a.Line, b.Line)
	})
	return lines
}

func rank(l Learned) int {
	if l.Line == "" {
		return int(High) + 1
	}
	return int(High - l.Risk)
}
