package learn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStringsLearnWhatTheyNeeded(t *testing.T) {
	needs := func(key, item string) Observation {
		return Observation{Family: FamilyEval, Op: OpEvalRule, Event: key, Subject: item}
	}
	given := func(key, item string) Observation {
		return Observation{Family: FamilyEval, Op: OpEvalGiven, Event: key, Subject: item}
	}
	for name, c := range map[string]struct {
		see   []Observation
		want  []string
		notes []string
	}{
		"names":              {[]Observation{needs("eval-call:a", "len"), needs("eval-call:a", "len"), needs("eval-attribute", "upper")}, []string{"eval-attribute=upper", "eval-call:a=len"}, nil},
		"part of a group":    {[]Observation{needs("eval-syntax", "BinOp")}, []string{"eval-syntax=BinOp"}, nil},
		"a group":            {[]Observation{needs("eval-syntax", "BinOp"), needs("eval-syntax", "UnaryOp"), needs("eval-syntax:a", "UnaryOp")}, []string{"eval-syntax:a=UnaryOp", "eval-syntax=arith"}, nil},
		"a group's namesake": {[]Observation{needs("eval-syntax", "ListComp"), needs("eval-syntax", "comprehension")}, []string{"eval-syntax=comprehension"}, nil},
		"bounds":             {[]Observation{needs("eval-max-alloc", "9MB"), needs("eval-max-alloc", "12MB"), needs("eval-timeout:a", "20s"), needs("eval-timeout:a", "4s")}, []string{"eval-max-alloc=12MB", "eval-timeout:a=20s"}, nil},
		"from the caller":    {[]Observation{given("eval-call:a", "tax")}, nil, []string{"eval-call:a=tax"}},
		"no key of ours":     {[]Observation{needs("expose-rw", "/"), needs("eval-call:a b", "len"), needs("eval-namespace", "caller"), needs("eval-max-leaked-threads-x", "1")}, nil, []string{"expose-rw", "a b", "namespace", "threads-x"}},
		"no name":            {[]Observation{needs("eval-call", "a, b"), needs("eval-call", "DENY:len"), needs("eval-call", "*"), needs("eval-syntax", "all\nenv=X"), needs("eval-magic", "len"), needs("eval-import", "a b"), needs("eval-attribute", "str-methods"), needs("eval-attribute", "*x")}, nil, []string{"a, b", "DENY:len", "call=*", "env=X", "magic=len", "a b", "str-methods", "*x"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			rules, notes := lines(p.learn(p.options(), c.see...))
			assert.ElementsMatch(t, c.want, rules)
			assert.Len(t, notes, len(c.notes), "%q", notes)
			for _, n := range c.notes {
				assert.Contains(t, strings.Join(notes, "\n"), n)
			}
		})
	}
}
