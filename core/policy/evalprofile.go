package policy

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pysandboxes/pysandboxes/core/nearest"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// EvalSet is a list of a guarded profile: what it allows and what it denies, where DENY wins. An item may hold one `*`.
type EvalSet struct {
	Allow []string `json:"allow"`
	Deny  []string `json:"deny"`
}

// EvalProfile is what one profile of `eval-*` rules allows a string to do: the plain one, or the one of `eval-…:NAME`.
// It is a table without pointers into the policy, so that a process can hold strings to it without asking anybody.
type EvalProfile struct {
	Syntax        EvalSet `json:"syntax"` // classes of ast; groups are expanded
	Call          EvalSet `json:"call"`
	Attribute     EvalSet `json:"attribute"` // names, and groups such as str-methods
	Import        EvalSet `json:"import"`
	Magic         EvalSet `json:"magic"`
	Namespace     string  `json:"namespace"` // adaptive, closed, caller
	Timeout       float64 `json:"timeout"`   // seconds
	MaxIterations int64   `json:"max_iterations"`
	MaxCallDepth  int64   `json:"max_call_depth"`
	MaxDepth      int64   `json:"max_depth"`
	MaxNodes      int64   `json:"max_nodes"`
	MaxAlloc      int64   `json:"max_alloc"` // bytes
	MaxLeaked     int64   `json:"max_leaked_threads"`
}

// EvalBound gives what a line says of a bound ("timeout", "max-alloc" …) of a guarded profile; a second line would be a mistake.
func (p *Policy) EvalBound(name, bound string) (value string, ok bool) {
	value, ok = p.evalBounds[evalBound{name, bound}]
	return value, ok
}

type evalBound struct{ profile, key string }

// Allows tells that a list ("syntax", "call" …) has a line for a name, as it stands.
func (e EvalProfile) Allows(list, name string) bool {
	sets := map[string]EvalSet{"syntax": e.Syntax, "call": e.Call, "attribute": e.Attribute, "import": e.Import, "magic": e.Magic}
	return slices.Contains(sets[list].Allow, name)
}

// The bounds of a guarded string where no line says otherwise.
const (
	evalTimeout    = 5 * time.Second
	evalIterations = 1_000_000
	evalCallDepth  = 20
	evalDepth      = 20
	evalSize       = 5_000
	evalAlloc      = 10 << 20
	evalLeaked     = 4
)

func newEvalProfile() *EvalProfile {
	return &EvalProfile{Namespace: "adaptive", Timeout: evalTimeout.Seconds(), MaxIterations: evalIterations, MaxCallDepth: evalCallDepth,
		MaxDepth: evalDepth, MaxNodes: evalSize, MaxAlloc: evalAlloc, MaxLeaked: evalLeaked}
}

// NewEvalProfile stands among the profiles of a learning run for any that has no line yet; no line can give a profile that name.
const NewEvalProfile = "*"

// EvalDefaults is a guarded profile without a line: it allows nothing, and has the bounds that all start from.
func EvalDefaults() EvalProfile {
	p := &Policy{evals: map[string]*EvalProfile{"": newEvalProfile()}}
	return p.EvalProfiles()[""]
}

// EvalProfiles gives the guarded profiles by name, the plain one under "". A name is there where any line gives it a key.
func (p *Policy) EvalProfiles() map[string]EvalProfile {
	out := make(map[string]EvalProfile, len(p.evals))
	for name, e := range p.evals {
		c := *e
		for _, set := range c.sets() {
			slices.Sort(set.Allow)
			slices.Sort(set.Deny)
			set.Allow, set.Deny = append([]string{}, slices.Compact(set.Allow)...), append([]string{}, slices.Compact(set.Deny)...)
		}
		out[name] = c
	}
	return out
}

// EvalProfilesOf reads the `eval-*` lines of a profile alone: no name is looked up, no path resolved.
func EvalProfilesOf(p *profile.Profile) (map[string]EvalProfile, error) {
	c := &compiler{Policy: &Policy{path: p.Path}, profile: p}
	for i := range p.Rules {
		if guardedStrings(p.Rules[i].Key) {
			if err := c.addEval(&p.Rules[i]); err != nil {
				return nil, err
			}
		}
	}
	return c.EvalProfiles(), nil
}

// EvalNames gives the names of the guarded profiles in order.
func (p *Policy) EvalNames() []string { return slices.Sorted(maps.Keys(p.evals)) }

func (e *EvalProfile) sets() []*EvalSet {
	return []*EvalSet{&e.Syntax, &e.Call, &e.Attribute, &e.Import, &e.Magic}
}

// addEval takes one `eval-*` line.
func (c *compiler) addEval(r *profile.Rule) error {
	key, name, _ := strings.Cut(strings.TrimPrefix(r.Key, "eval-"), ":")
	if c.evals == nil {
		c.evals = map[string]*EvalProfile{}
	}
	e := c.evals[name]
	if e == nil {
		e = newEvalProfile()
		c.evals[name] = e
	}
	list := map[string]struct {
		to   *EvalSet
		read func(*profile.Rule, string) ([]string, error)
	}{
		"syntax":    {&e.Syntax, evalSyntaxItem},
		"call":      {&e.Call, evalNameItem},
		"attribute": {&e.Attribute, evalAttributeItem},
		"import":    {&e.Import, evalModuleItem},
		"magic":     {&e.Magic, evalMagicItem},
	}
	if l, ok := list[key]; ok {
		for _, it := range r.Items {
			if it == "" {
				continue
			}
			verb, word := action(it)
			words, err := l.read(r, word)
			if err != nil {
				return err
			}
			if verb == "DENY" {
				l.to.Deny = append(l.to.Deny, words...)
			} else {
				l.to.Allow = append(l.to.Allow, words...)
			}
		}
		return nil
	}
	best, _ := c.profile.Scalar(r.Key) // a line of the command line is stronger than one of the file
	e.bound(key, best.Value)
	if c.evalBounds == nil {
		c.evalBounds = map[evalBound]string{}
	}
	c.evalBounds[evalBound{name, key}] = best.Value
	return nil
}

func (e *EvalProfile) bound(key, value string) {
	counts := map[string]*int64{"max-iterations": &e.MaxIterations, "max-call-depth": &e.MaxCallDepth, "max-depth": &e.MaxDepth,
		"max-nodes": &e.MaxNodes, "max-leaked-threads": &e.MaxLeaked}
	switch key {
	case "namespace":
		e.Namespace = strings.ToLower(value)
	case "timeout":
		d, _ := profile.ParseDuration(value)
		e.Timeout = d.Seconds()
	case "max-alloc":
		e.MaxAlloc, _ = profile.ParseSize(value)
	default:
		*counts[key], _ = profile.ParseCount(value)
	}
}

func evalSyntaxItem(r *profile.Rule, word string) ([]string, error) {
	if nodes := evalNodes(word); nodes != nil {
		return nodes, nil
	}
	hint := "Write a group (" + evalGroups[0].name + ", " + evalGroups[1].name + ", …) or the name of a class of Python's ast module."
	if strings.Contains(word, "*") {
		hint = "Patterns are not for eval-syntax: name each group."
	} else if near := nearest.Word(word, evalWords()); near != "" {
		hint = "Did you mean " + near + "?"
	}
	return nil, r.Fail("no syntax is called "+word, hint)
}

// evalPattern tells a name of Python that may hold one `*`.
func evalPattern(word string) bool {
	if strings.Count(word, "*") > 1 {
		return false
	}
	plain := strings.ReplaceAll(word, "*", "a")
	return moduleName(plain) && !strings.ContainsAny(plain, ".-")
}

func dunder(word string) bool { return strings.HasPrefix(word, "__") }

func evalNameItem(r *profile.Rule, word string) ([]string, error) {
	if !evalPattern(word) {
		return nil, r.Fail("not a name: "+word, "Write names between commas; one * may stand in each: eval-call=len, sum, to_*.")
	}
	return []string{word}, nil
}

func evalAttributeItem(r *profile.Rule, word string) ([]string, error) {
	if slices.Contains(evalMethodGroups, word) {
		return []string{word}, nil
	}
	if dunder(word) {
		return nil, r.Fail(word+" is a dunder name", "Write eval-magic="+word+", after you have read what it opens.")
	}
	if near := nearest.Word(word, evalMethodGroups); strings.Contains(word, "-") && near != "" {
		return nil, r.Fail("no group of attributes is called "+word, "Did you mean "+near+"?")
	}
	return evalNameItem(r, word)
}

func evalModuleItem(r *profile.Rule, word string) ([]string, error) {
	if strings.Count(word, "*") > 1 || !moduleName(strings.ReplaceAll(word, "*", "a")) {
		return nil, r.Fail("not the name of a module: "+word, "Write dotted names between commas: eval-import=math, datetime.")
	}
	return []string{word}, nil
}

func evalMagicItem(r *profile.Rule, word string) ([]string, error) {
	if !evalPattern(word) || !dunder(word) {
		return nil, r.Fail("not a dunder name: "+word, "Write eval-magic=__len__; other attributes go into eval-attribute.")
	}
	return []string{word}, nil
}
