package learn

import (
	"github.com/pysandboxes/pysandboxes/core/audit"
	"github.com/pysandboxes/pysandboxes/core/policy"
)

// callRisks says what a granted function of a category opens, in the order of the registry.
var callRisks = map[audit.Category]struct {
	risk Risk
	why  string
}{
	audit.ProcessExec:     {High, "starts a program, which the Python layer does not see: look hard"},
	audit.ProcessControl:  {Medium, "signals or changes other processes"},
	audit.Privileges:      {High, "changes what this process may do"},
	audit.Threads:         {Low, ""},
	audit.Native:          {High, "runs native code, which the Python layer does not see: look hard"},
	audit.Introspection:   {Medium, "reaches into other frames or objects"},
	audit.DynamicCode:     {High, "runs code made from a string"},
	audit.Deserialization: {High, "objects that are read may run code"},
}

// calls learns functions, never a category: who needs one function does not need its neighbours.
func (g *generaliser) calls(entries []entry) []Learned { return g.functions(FamilyCall, entries) }

func (g *generaliser) functions(family string, entries []entry) []Learned {
	var out []Learned
	for _, e := range fold(entries, func(e entry) string { return e.Subject }) {
		name := e.Subject
		if g.o.Policy != nil {
			d := g.o.Policy.Call([]string{name}, e.Event)
			if d.Allow {
				continue
			}
			if d.RuleText != "" {
				out = append(out, leftOut(family, e, name+" is refused by "+d.Rule.String()))
				continue
			}
		}
		category := audit.Category(e.Category)
		if call, ok := audit.Lookup(name); ok {
			category = call.Category
		}
		grade, ok := callRisks[category]
		if !ok {
			grade.risk, grade.why = High, "not in the registry of sensitive calls"
		}
		out = append(out, g.rule(e, "python-api=ALLOW:"+quote("", name), grade.risk, join(string(category), grade.why), expectation{
			key: "python-api", items: []string{"ALLOW:" + name},
			allows: func(p *policy.Policy) bool { return p.Call([]string{name}, "").Allow },
		}))
	}
	return byRisk(out)
}

// eval learns strings given to eval, exec or compile: the builtin that took the string, as a function.
func (g *generaliser) eval(entries []entry) []Learned {
	var plain, guarded []entry
	for _, e := range entries {
		if e.Op == OpEvalRule || e.Op == OpEvalGiven {
			guarded = append(guarded, e)
		} else {
			plain = append(plain, e)
		}
	}
	out := g.strings(guarded)
	for _, e := range fold(plain, evalKind) {
		kind := e.Subject
		if g.o.Policy != nil && g.o.Policy.Eval(kind).Allow {
			continue
		}
		grade := callRisks[audit.DynamicCode]
		name := "builtins." + kind
		out = append(out, g.rule(e, "python-api=ALLOW:"+quote("", name), grade.risk, join(string(audit.DynamicCode), grade.why), expectation{
			key: "python-api", items: []string{"ALLOW:" + name},
			allows: func(p *policy.Policy) bool { return p.Eval(kind).Allow },
		}))
	}
	return byRisk(out)
}

func evalKind(e entry) string {
	if e.Subject != "" {
		return e.Subject
	}
	return e.Op
}

// results learns the mode of results: only that an object came back which `data-only` refuses.
func (g *generaliser) results(entries []entry) []Learned {
	if g.o.Policy != nil && g.o.Policy.Switches().ResultMode == "objects" {
		return nil
	}
	e := fold(entries, func(entry) string { return "objects" })[0]
	types := fold(entries, func(e entry) string { return e.Subject })
	return []Learned{g.rule(e, "remote-result-mode=objects", High,
		"results of type "+types[0].Subject+": objects from the sandbox may run code in the application when they are read",
		expectation{key: "remote-result-mode", allows: func(p *policy.Policy) bool { return p.Switches().ResultMode == "objects" }})}
}
