package policy

import (
	"slices"

	"github.com/pysandboxes/pysandboxes/core/audit"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// callRules hold functions, categories and `*`, each level apart: a function beats its category, a category beats `*`,
// and DENY wins within a level.
type callRules struct {
	allowFn, denyFn   map[string]int
	allowCat, denyCat map[audit.Category]int
	allowAll, denyAll int
	granted           map[audit.Category]int // a rule that allows some function of the category
}

func (c *compiler) addCall(r *profile.Rule) error {
	n := c.keep(r)
	m := &c.calls
	if m.allowFn == nil {
		m.allowFn, m.denyFn = map[string]int{}, map[string]int{}
		m.allowCat, m.denyCat = map[audit.Category]int{}, map[audit.Category]int{}
	}
	for _, it := range r.Items {
		act, target := action(it)
		if it == "" {
			continue
		}
		if act == "" {
			hint := "Write python-api=ALLOW:" + it + " or python-api=DENY:" + it + "."
			return r.Fail("python-api needs an action before "+it, hint)
		}
		if err := m.put(r, act == "DENY", target, n); err != nil {
			return err
		}
	}
	return nil
}

// put adds one target.
func (m *callRules) put(r *profile.Rule, deny bool, target string, n int) error {
	cat := audit.Category(target)
	call, known := audit.Lookup(target)
	switch {
	case target == "*" && deny:
		m.denyAll = first(m.denyAll, n)
	case target == "*":
		m.allowAll = first(m.allowAll, n)
	case slices.Contains(audit.Categories, cat) && deny:
		m.denyCat[cat] = first(m.denyCat[cat], n)
	case slices.Contains(audit.Categories, cat):
		m.allowCat[cat] = first(m.allowCat[cat], n)
	case known && deny:
		m.denyFn[call.Name] = first(m.denyFn[call.Name], n)
	case known:
		m.allowFn[call.Name] = first(m.allowFn[call.Name], n)
	default:
		hint := "A target is a function of the registry, a category or *."
		if near := audit.Nearest(target); near != "" {
			hint = "Did you mean " + near + "? " + hint
		}
		return r.Fail("no supported Python has the sensitive call "+target, hint)
	}
	return nil
}

// finishCalls notes which categories are open at all.
func (c *compiler) finishCalls() error {
	granted := map[audit.Category]int{}
	for i := range audit.Calls {
		if v := c.calls.decide(&audit.Calls[i]); v.allow && v.line > 0 {
			granted[audit.Calls[i].Category] = first(granted[audit.Calls[i].Category], v.line)
		}
	}
	c.calls.granted = granted
	return nil
}

// verdict is the outcome of one level.
type verdict struct {
	allow bool
	line  int // 0: nothing decided
}

// function is the verdict of the rules that name a function.
func (m *callRules) function(name string) verdict {
	if n := m.denyFn[name]; n > 0 {
		return verdict{false, n}
	}
	return verdict{true, m.allowFn[name]}
}

// wider is the verdict of the rules for a category and for `*`.
func (m *callRules) wider(cat audit.Category) verdict {
	switch {
	case m.denyCat[cat] > 0:
		return verdict{false, m.denyCat[cat]}
	case m.allowCat[cat] > 0:
		return verdict{true, m.allowCat[cat]}
	case m.denyAll > 0:
		return verdict{false, m.denyAll}
	}
	return verdict{true, m.allowAll}
}

// decide is the verdict on one registered function.
func (m *callRules) decide(call *audit.Call) verdict {
	if v := m.function(call.Name); v.line > 0 {
		return v
	}
	if v := m.wider(call.Category); v.line > 0 {
		return v
	}
	return m.with(call)
}

// with is the verdict of the grants that carry to a function of which no rule speaks.
func (m *callRules) with(call *audit.Call) verdict {
	line := m.granted[call.With]
	for _, name := range call.WithCalls {
		if v := m.function(name); v.line > 0 && v.allow {
			line = first(line, v.line)
		}
	}
	return verdict{true, line}
}

// Call decides on a sensitive call. names are the functions on the way, the outermost first (subprocess.run, then
// subprocess.Popen). The outermost one that a rule names decides; else one grant of a category is enough and one DENY
// of a category refuses.
func (p *Policy) Call(names []string, event string) Decision {
	m := &p.calls
	if len(names) == 0 {
		d := p.refuse("call", event, event, "a call that has no name", 0)
		d.Note = "nothing can be granted for it."
		return d
	}
	for _, name := range names {
		call, known := audit.Lookup(name)
		if !known {
			continue
		}
		if v := m.function(call.Name); v.line > 0 {
			return p.called(names[0], event, v)
		}
	}
	var last verdict
	for _, name := range names {
		call, known := audit.Lookup(name)
		v := verdict{true, m.allowAll}
		if known {
			if v = m.wider(call.Category); v.line == 0 {
				v = m.with(&call)
			}
		} else if m.denyAll > 0 {
			v = verdict{false, m.denyAll}
		}
		if v.line > 0 && !v.allow {
			return p.called(names[0], event, v)
		}
		if v.line > 0 {
			last = v
		}
	}
	return p.called(names[0], event, last)
}

// called words a verdict.
func (p *Policy) called(name, event string, v verdict) Decision {
	call, known := audit.Lookup(name)
	if v.allow && v.line > 0 {
		d := p.allow("call", event, name, v.line)
		d.Category = string(call.Category)
		return d
	}
	if !known {
		d := p.refuse("call", event, name, "calling "+safe(name), v.line)
		d.Note = "The function is not in the registry."
		if v.line == 0 {
			d.Add = []string{"python-api=ALLOW:*"}
		}
		return d
	}
	d := p.refuse("call", event, call.Name, "calling "+call.Name+" ("+string(call.Category)+")", v.line)
	d.Category = string(call.Category)
	if v.line == 0 {
		d.Add = []string{"python-api=ALLOW:" + call.Name, "python-api=ALLOW:" + string(call.Category)}
	}
	d.Note = categoryNotes[call.Category]
	return d
}

// categoryNotes is what a person should know before granting.
var categoryNotes = map[audit.Category]string{
	audit.Threads:     "Threads are common (httpx and anyio start them) and give no right of their own.",
	audit.ProcessExec: "What is started is held by the OS layer alone.",
	audit.Native:      "Native code is held by the OS layer alone.",
}

// Grants tells that some function of a category is allowed.
func (p *Policy) Grants(cat audit.Category) bool {
	return p.calls.granted[cat] > 0
}

// GrantsExec tells that some function that starts a program or copies the process is allowed.
func (p *Policy) GrantsExec() bool { return p.Grants(audit.ProcessExec) }
