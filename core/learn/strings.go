package learn

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// Operations of FamilyEval besides the kinds of strings: Event is the key of a rule, Subject an item of it.
const (
	// OpEvalRule is a rule that a guarded string needed.
	OpEvalRule = "eval-rule"
	// OpEvalGiven is the same for a function that the call site handed in among its names.
	OpEvalGiven = "eval-given"
)

// evalKey is a key that learning writes: a list of names, or a bound.
var evalKey = regexp.MustCompile(`^eval-(syntax|call|attribute|import|magic|timeout|max-[a-z]+(?:-[a-z]+)?)(?::([A-Za-z_][A-Za-z0-9_-]*))?$`)

// wide grades what opens more than a value of the string's own.
var wide = map[string]string{
	"getattr": "reads attributes by names that are made at run time; each is still checked",
	"vars":    "shows all that an object holds", "dir": "names all that an object holds",
	"__class__": "opens the hierarchy of types, and with it every class that is loaded", "__subclasses__": "names every class that is loaded",
	"__globals__": "holds everything that a module knows", "__dict__": "shows all that an object holds, past every other rule",
}

// strings learns what guarded strings needed: a line for each item, so that each has its call site. Groups of syntax stand for themselves
// where every class of theirs was seen. Bounds are learned where no line has them yet.
func (g *generaliser) strings(entries []entry) []Learned {
	var profiles map[string]policy.EvalProfile
	if g.o.Policy != nil {
		profiles = g.o.Policy.EvalProfiles()
	}
	seen := map[string][]string{}
	for _, e := range entries {
		seen[e.Event] = append(seen[e.Event], e.Subject)
	}
	most := map[string]string{} // by key: a bound has one line
	for _, e := range entries {
		if now, ok := most[e.Event]; isBound(e.Event) && (!ok || amount(e.Subject) > amount(now)) {
			most[e.Event] = e.Subject
		}
	}
	for i := range entries {
		if most, ok := most[entries[i].Event]; ok {
			entries[i].Subject = most
		}
		if group := policy.EvalGroupOf(entries[i].Subject, seen[entries[i].Event]); strings.HasPrefix(entries[i].Event, "eval-syntax") && group != "" {
			entries[i].Subject = group
		}
	}
	var out []Learned
	for _, e := range fold(entries, func(e entry) string { return e.Event + "=" + e.Subject }) {
		key, item, _ := strings.Cut(e.Subject, "=")
		parts := evalKey.FindStringSubmatch(key)
		if parts == nil || strings.ContainsAny(item, "*-") { // names of objects are anything: no pattern, no group
			out = append(out, leftOut(FamilyEval, e, "what a guarded string needed: "+e.Subject))
			continue
		}
		kind, name := parts[1], parts[2]
		now, bounded := "", false
		if g.o.Policy != nil {
			now, bounded = g.o.Policy.EvalBound(name, kind)
		}
		switch {
		case profiles[name].Allows(kind, item):
			continue
		case e.Op == OpEvalGiven:
			out = append(out, leftOut(FamilyEval, e, "a guarded string called "+item+", which its call site hands in among its names; to let it: "+e.Subject))
			continue
		case bounded:
			out = append(out, leftOut(FamilyEval, e, "a guarded string went past "+key+"="+now+"; to let it, change that to "+item))
			continue
		}
		risk, why := stringRisk(kind, item)
		items := []string{item}
		if isBound(key) {
			items = nil // no list
		}
		out = append(out, g.rule(e, key+"="+quote("", item), risk, why, expectation{key: key, items: items, allows: func(p *policy.Policy) bool {
			made := p.EvalProfiles()
			_, is := p.EvalBound(name, kind)
			return len(made) == 1 && (is || made[name].Allows(kind, item) || kind == "syntax")
		}}))
	}
	return byRisk(out)
}

func isBound(key string) bool {
	return strings.HasPrefix(key, "eval-max-") || key == "eval-timeout" || strings.HasPrefix(key, "eval-timeout:")
}

// amount is the number that a bound begins with; the guard gives all of a key in one unit.
func amount(bound string) int {
	n, _ := strconv.Atoi(strings.TrimRight(bound, "MBs"))
	return n
}

func stringRisk(kind, item string) (Risk, string) {
	switch {
	case wide[item] != "":
		return High, wide[item]
	case kind == "magic" && item != "__init__" && item != "__name__":
		return Medium, "a dunder name, which others call or which leads to types"
	case kind == "import":
		return Medium, "a module's functions come with it"
	case isBound("eval-" + kind):
		return Low, "as much as was needed, and room for as much again"
	}
	return Low, ""
}
