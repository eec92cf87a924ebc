package review

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/audit"
	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// Effect says what a change does to what the program may do.
type Effect int

// The effects, the one that needs a reader's eye last.
const (
	Same     Effect = iota // other words for the same
	Narrower               // less is allowed
	Changed                // neither can be told to be more; to be read as Wider
	Wider                  // more is allowed
)

// String is the word that reports show.
func (e Effect) String() string { return [...]string{"same", "narrower", "changed", "wider"}[e] }

// Change is a rule that stands in one of two profiles only, or a scalar with two values.
type Change struct {
	Effect   Effect
	Key      string
	Old, New string           // the lines, "" where there is none
	OldPos   profile.Position // zero where there is none, or where a default held
	NewPos   profile.Position
	Risk     learn.Risk // of what becomes allowed
	Why      string
}

// Opens tells whether the changes allow anything that was not allowed before.
func Opens(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Effect >= Changed })
}

// Diff compares two profiles by their rules: what was taken out, what came in, and whether more or less is allowed by
// it. Rules that only moved, or that another rule covers, are the same.
func Diff(before, after Subject) []Change {
	old, new := Grants(before), Grants(after)
	oldSet, newSet := texts(old), texts(new)
	var out []Change
	for i := range old {
		if g := &old[i]; !scalar(g.Rule.Key) && !newSet[g.Text()] {
			c := Change{Effect: Narrower, Key: g.Rule.Key, Old: g.Shown(), OldPos: g.Rule.Pos}
			if g.Deny {
				c.Effect, c.Risk, c.Why = Wider, learn.Medium, "what it refused may be allowed now"
			}
			switch {
			case covered(after, new, g):
				c.Effect, c.Risk, c.Why = Same, learn.Low, "another rule says it"
			case g.Deny && !meets(new, g):
				c.Effect, c.Risk, c.Why = Same, learn.Low, "nothing else allows what it refused"
			}
			out = append(out, c)
			newSet[g.Text()] = true // once
		}
	}
	for i := range new {
		if g := &new[i]; !scalar(g.Rule.Key) && !oldSet[g.Text()] {
			c := Change{Effect: Wider, Key: g.Rule.Key, New: g.Shown(), NewPos: g.Rule.Pos, Risk: g.Risk, Why: g.Why}
			if g.Deny {
				c.Effect, c.Risk, c.Why = Narrower, learn.Low, ""
			}
			switch {
			case covered(before, old, g):
				c.Effect, c.Risk, c.Why = Same, learn.Low, "another rule said it"
			case g.Deny && !meets(old, g):
				c.Effect, c.Risk, c.Why = Same, learn.Low, "nothing else allowed what it refuses"
			}
			out = append(out, c)
			oldSet[g.Text()] = true
		}
	}
	out = append(out, scalars(before, after)...)
	slices.SortStableFunc(out, func(a, b Change) int {
		return cmp.Or(cmp.Compare(b.Effect, a.Effect), cmp.Compare(b.Risk, a.Risk))
	})
	return out
}

func texts(grants []Grant) map[string]bool {
	out := map[string]bool{}
	for i := range grants {
		out[grants[i].Text()] = true
	}
	return out
}

// covered tells that a profile says all of a grant without it. Where that cannot be told it is not.
func covered(s Subject, grants []Grant, g *Grant) bool {
	switch {
	case g.net != nil:
		return slices.ContainsFunc(grants, func(o Grant) bool { return o.net != nil && o.Deny == g.Deny && o.net.Covers(*g.net) })
	case g.Rule.Key == "unenv":
		return slices.ContainsFunc(grants, func(o Grant) bool { return o.Rule.Key == "unenv" && nameCovers(o.Value, g.Value) })
	case g.exposure != nil:
		access := policy.Read
		if g.exposure.Write {
			access = policy.Write
		}
		by := s.Policy.File(shown(g), access, "open")
		return by.Allow && !by.Rule.IsZero() && (g.exposure.File || !exactly(grants, shown(g)))
	case g.Rule.Key == "python-api":
		return callsCovered(s, g)
	case g.Rule.Key == "python-import":
		return coversName(grants, "python-import", g)
	}
	return false
}

// callsCovered asks the policy about each function of a target: there are as many as the registry has.
func callsCovered(s Subject, g *Grant) bool {
	if g.target == "*" {
		return false // it speaks of functions that the registry does not know yet
	}
	if g.Deny && g.target == execCall && s.Policy.Eval("eval").Allow {
		return false // it refuses strings given to eval() too
	}
	return !slices.ContainsFunc(audit.Calls, func(c audit.Call) bool {
		spoken := c.Name == g.target || string(c.Category) == g.target
		return spoken && s.Policy.Call([]string{c.Name}, "").Allow == g.Deny
	})
}

// exactly tells that a path is exposed as a single file, so that what lies beneath it is not.
func exactly(grants []Grant, path string) bool {
	return slices.ContainsFunc(grants, func(o Grant) bool { return o.exposure != nil && o.exposure.File && shown(&o) == path })
}

func coversName(grants []Grant, key string, g *Grant) bool {
	return slices.ContainsFunc(grants, func(o Grant) bool {
		if o.Rule.Key != key || o.Deny != g.Deny {
			return false
		}
		for at := g.target; at != ""; at = package_(at) {
			if o.target == at {
				return true
			}
		}
		return o.target == "*"
	})
}

// scalars compares the scalars in force, defaults included.
func scalars(before, after Subject) []Change {
	keys := map[string]bool{}
	for _, s := range []Subject{before, after} {
		for i := range s.Profile.Rules {
			if key := s.Profile.Rules[i].Key; scalar(key) && key != "port" {
				keys[key] = true
			}
		}
	}
	var out []Change
	for key := range keys {
		old, oldSet := before.Profile.Scalar(key)
		new, newSet := after.Profile.Scalar(key)
		a, b := old.Value, new.Value
		if !oldSet {
			a = defaults[key]
		}
		if !newSet {
			b = defaults[key]
		}
		if a == b {
			continue
		}
		c := Change{Effect: order(key, a, b), Key: key, OldPos: old.Pos, NewPos: new.Pos}
		if oldSet {
			c.Old = key + "=" + old.Value
		}
		if newSet {
			c.New = key + "=" + new.Value
			g := scalarGrant(&new)
			c.Risk, c.Why = g.Risk, g.Why
		}
		if c.Effect <= Narrower {
			c.Risk, c.Why = learn.Low, ""
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// defaults are the scalars that hold where no line sets them.
var defaults = map[string]string{"py-sandbox": "true", "os-sandbox": "auto", "remote-result-mode": "data-only", "remote-result-guard": "true",
	"ignore-best-effort": "false", "limit-result": "256MB"}

// loosening lists the values of a key from the strictest to the loosest; values of one rank cannot be compared.
var loosening = map[string][][]string{
	"py-sandbox":          {{"true"}, {"false"}},
	"os-sandbox":          {{"auto", "landlock", "unshare", "bwrap", "firejail", "qemu"}, {"subprocess"}, {"none"}},
	"remote-result-mode":  {{"primitives"}, {"data-only"}, {"objects"}},
	"remote-result-guard": {{"true"}, {"false"}},
	"ignore-best-effort":  {{"false"}, {"true"}},
	"eval-namespace":      {{"closed"}, {"adaptive"}, {"caller"}},
}

// order tells whether b allows more than a. "" is a limit that is not set.
func order(key, a, b string) Effect {
	if ranks, ok := loosening[baseKey(key)]; ok {
		x, y := rank(ranks, a), rank(ranks, b)
		switch {
		case x < 0 || y < 0 || x == y:
			return Changed
		case x < y:
			return Wider
		}
		return Narrower
	}
	if key == "learn" {
		switch {
		case b == "false":
			return Narrower
		case a == "false" || b != "":
			return Wider
		}
		return Narrower
	}
	x, okX := quantity(key, a)
	y, okY := quantity(key, b)
	switch {
	case !okX && !okY:
		return Changed
	case a == "" && okY:
		return Narrower
	case b == "" && okX:
		return Wider
	case x == y:
		return Same
	case x < y:
		return Wider
	}
	return Narrower
}

func rank(ranks [][]string, value string) int {
	return slices.IndexFunc(ranks, func(r []string) bool { return slices.Contains(r, strings.ToLower(value)) })
}

// quantity reads a limit of any kind.
func quantity(key, value string) (int64, bool) {
	if f := profile.FamilyOf(key); f != profile.FamilyLimits && f != profile.FamilyStrings {
		return 0, false
	}
	switch profile.KindOf(key) {
	case profile.Size:
		return profile.ParseSize(value)
	case profile.Count:
		return profile.ParseCount(value)
	case profile.Duration:
		d, ok := profile.ParseDuration(value)
		return int64(d), ok
	}
	return 0, false
}
