package review

import (
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/audit"
	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// loose is a value of a scalar that opens something.
type loose struct {
	key, value string // value "" is any
	risk       learn.Risk
	why        string
}

// looseValues is the table of them; the first row that fits holds.
var looseValues = []loose{
	{"py-sandbox", "false", learn.High, "no import, call or network rule is held"},
	{"os-sandbox", "none", learn.High, "no rule is held at all"},
	{"os-sandbox", "subprocess", learn.High, "native code is held by nothing"},
	{"remote-result-mode", "objects", learn.High, "results may run code in the application when they are read"},
	{"remote-result-guard", "false", learn.High, "a result may name functions that run programs"},
	{"ignore-best-effort", "true", learn.Medium, "native code reads what ignore rules hide"},
	{"learn", "false", learn.Low, ""},
	{"learn", "", learn.High, "each run learns: everything is allowed and recorded"},
	{"bwrap.share-net", "", learn.High, "the host's network is open to native code"},
	{"eval-namespace", "caller", learn.High, "evaluated strings see every name of their caller"},
}

func scalarGrant(r *profile.Rule) Grant {
	g := Grant{Rule: r, Value: r.Value}
	for _, l := range looseValues {
		if l.key == baseKey(r.Key) && (l.value == "" || strings.EqualFold(l.value, r.Value)) {
			g.Risk, g.Why = l.risk, l.why
			break
		}
	}
	return g
}

func baseKey(key string) string {
	base, _, _ := strings.Cut(key, ":")
	return base
}

// canonicalCall is the registry's name of a function; categories and `*` stay.
func canonicalCall(target string) string {
	if c, ok := audit.Lookup(target); ok {
		return c.Name
	}
	return target
}

// gradeCall grades a function or a category.
func gradeCall(target string) (learn.Risk, string) {
	if cat := audit.Category(target); slices.Contains(audit.Categories, cat) {
		return learn.GradeCategory(cat)
	}
	c, _ := audit.Lookup(target)
	return learn.GradeCategory(c.Category)
}

// categoryOf is the category of a function, "" for what is none.
func categoryOf(target string) string {
	c, ok := audit.Lookup(target)
	if !ok {
		return ""
	}
	return string(c.Category)
}

func isCategory(target string) bool {
	return slices.Contains(audit.Categories, audit.Category(target))
}
