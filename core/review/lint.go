package review

import (
	"cmp"
	"slices"

	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// Grade says what a finding asks for.
type Grade int

// The grades of findings.
const (
	Note    Grade = iota // to know
	Warning              // to look at
	Error                // the profile does not do what it says, or gives something away: to mend
)

// String is the word that reports show.
func (g Grade) String() string {
	switch g {
	case Error:
		return "error"
	case Warning:
		return "warning"
	}
	return "note"
}

// The kinds of findings.
const (
	KindLoad      = "load"      // the loader or the compiler warned
	KindStart     = "start"     // the chosen provider would refuse to start, or cannot hold a rule
	KindShadowed  = "shadowed"  // another rule takes all of it away
	KindDuplicate = "duplicate" // another rule says it already
	KindNever     = "never"     // it can match nothing
	KindWide      = "over-wide" // it opens more than a program needs
	KindSecret    = "secret"    // it holds or opens something to steal
	KindWeak      = "weak"      // it takes a layer away
)

// Finding is one thing that a reader of the profile should know.
type Finding struct {
	Grade   Grade
	Kind    string
	Pos     profile.Position
	Line    string           // the rule
	Message string           // what is wrong
	Hint    string           // how to mend it, "" where the message says it
	Other   profile.Position // the rule that it is held against, zero where there is none
}

// linter collects findings.
type linter struct {
	Subject
	grants   []Grant
	findings []Finding
}

// Lint looks for rules that are shadowed, said twice, never matching, wider than they should be, or secret-looking.
func Lint(s Subject) []Finding {
	l := &linter{Subject: s, grants: Grants(s)}
	l.env()
	l.files()
	l.net()
	l.imports()
	l.calls()
	l.scalars()
	l.includes()
	l.unread()
	Sort(l.findings)
	return l.findings
}

// Sort puts findings into the order of the files and lines.
func Sort(f []Finding) {
	slices.SortStableFunc(f, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(b.Grade, a.Grade))
	})
}

func (l *linter) add(g *Grant, grade Grade, kind, message, hint string) {
	l.findings = append(l.findings, Finding{Grade: grade, Kind: kind, Pos: g.Rule.Pos, Line: g.Shown(), Message: message, Hint: hint})
}

// by adds a finding that another grant is the reason of.
func (l *linter) by(g, other *Grant, grade Grade, kind, message, hint string) {
	l.add(g, grade, kind, message+" ("+other.Shown()+" at "+other.Rule.Pos.String()+")", hint)
	l.findings[len(l.findings)-1].Other = other.Rule.Pos
}

// shadowed, duplicate and wide are the findings that every family has.
func (l *linter) shadowed(g, by *Grant) {
	l.by(g, by, Error, KindShadowed, "has no effect: another rule refuses all of it", "Take out the one that is not meant.")
}

func (l *linter) duplicate(g, by *Grant) {
	l.by(g, by, Warning, KindDuplicate, "is said already by another rule", "Take out one of the two.")
}

func (l *linter) wide(g *Grant, hint string) { l.add(g, Warning, KindWide, g.Why, hint) }

// keys returns the grants of some keys.
func (l *linter) keys(names ...string) []*Grant {
	var out []*Grant
	for i := range l.grants {
		if slices.Contains(names, l.grants[i].Rule.Key) {
			out = append(out, &l.grants[i])
		}
	}
	return out
}

// scalars finds layers that are taken away and scalars that a stronger origin hides.
func (l *linter) scalars() {
	for i := range l.grants {
		g := &l.grants[i]
		if !scalar(g.Rule.Key) {
			continue
		}
		if best, ok := l.Profile.Scalar(g.Rule.Key); ok && best.Pos != g.Rule.Pos {
			l.findings = append(l.findings, Finding{Grade: Note, Kind: KindShadowed, Pos: g.Rule.Pos, Line: g.Shown(), Other: best.Pos,
				Message: "has no effect: " + best.Key + "=" + best.Value + " at " + best.Pos.String() + " is stronger"})
			continue
		}
		switch {
		case g.Rule.Key == "learn" && g.Risk == learn.High:
			l.add(g, Error, KindWeak, g.Why, "Take the line out once the profile is reviewed, or lock it: learn=false.")
		case g.Risk == learn.High:
			l.add(g, Warning, KindWeak, g.Why, "")
		case g.Risk == learn.Medium:
			l.add(g, Note, KindWeak, g.Why, "")
		}
	}
}
