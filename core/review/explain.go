package review

import (
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/audit"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// Kernel is what the OS layer in force holds. Whoever asks fills it in: this package knows no provider.
type Kernel struct {
	Provider string // its name; "" where none can be used here
	Problem  string // why there is none, or why it would refuse this profile
	Files    bool
	Exec     bool
	Sockets  bool
	Network  bool
}

// The states of a layer.
const (
	Allows  = "allows"
	Refuses = "refuses"
	Blind   = "does not see it" // the layer has no say in this
)

// Layer is what one layer says.
type Layer struct {
	Name  string // "python" or "kernel"
	State string
	Text  string
}

// Verdict is the answer to a question.
type Verdict struct {
	policy.Decision
	Question string
	Layers   []Layer
	Change   []string // lines: to add where it is refused, narrowest first; that would refuse it where it is allowed
	Advice   string   // what to do with them
}

// Explain says which rule decides a question, what each layer does about it and what would change it.
func Explain(s Subject, k Kernel, words []string) (Verdict, error) {
	q, argument, err := parse(words)
	if err != nil {
		return Verdict{}, err
	}
	d, err := q.ask(s, argument)
	if err != nil {
		return Verdict{}, err
	}
	if d.Family == "env" && d.RuleText != "" {
		g := Grant{Rule: &profile.Rule{Key: "env"}, Value: strings.TrimPrefix(d.RuleText, "env=")}
		if g.secret = holdsSecret(d.Subject, g.Value); g.secret {
			d.RuleText = g.Shown()
		}
	}
	v := Verdict{Decision: d, Question: strings.TrimSpace(q.Word + " " + argument)}
	v.Layers = []Layer{python(s, d), kernel(s, k, d)}
	switch {
	case !d.Allow && !d.Rule.IsZero():
		v.Change, v.Advice = []string{d.RuleText}, "change that line, if this is wanted"
	case !d.Allow && len(d.Add) > 0:
		v.Change, v.Advice = append(slices.Clone(d.Also), d.Add...), "add the first line to allow it; the further ones are wider"
		switch {
		case len(d.Also) > 0:
			v.Change, v.Advice = v.Change[:len(d.Also)+1], "add these lines to allow it"
		case len(d.Add) == 1:
			v.Advice = "add this line to allow it"
		}
	case !d.Allow:
		v.Advice = "no rule can allow it"
	case d.Rule.IsZero():
		v.Advice = "it needs no rule, and none takes it away"
	case q.refuse != nil:
		v.Change, v.Advice = []string{q.refuse(s, d, argument)}, "take the deciding line out, or add this line to refuse it"
	default:
		v.Advice = "take the deciding line out to refuse it"
	}
	return v, nil
}

// python is the Python layer's part.
func python(s Subject, d policy.Decision) Layer {
	l := Layer{Name: "python", State: Refuses, Text: "raises an exception that names the rule"}
	switch {
	case d.Family == "env" && !d.Allow:
		l.Text = "the variable is not in the child's environment"
	case d.Family == "env" && d.Note != "":
		l.State, l.Text = Allows, "the variable is not set here"
	case d.Allow:
		l.State, l.Text = Allows, ""
	}
	if !s.Policy.Switches().PySandbox && d.Family != "env" {
		l.State, l.Text = Blind, "py-sandbox=false switches it off"
	}
	return l
}

// kernel is the OS layer's part: what native code, which steps round the Python layer, would meet.
func kernel(s Subject, k Kernel, d policy.Decision) Layer {
	l := Layer{Name: "kernel", State: Blind}
	holds := func(yes bool, what string) Layer {
		switch {
		case !yes:
			l.Text = k.Provider + " does not hold " + what + ": native code can step round the Python layer"
		case d.Allow:
			l.State = Allows
		default:
			l.State, l.Text = Refuses, k.Provider+" refuses it to native code too"
		}
		return l
	}
	switch {
	case d.Family == "env":
		l.State, l.Text = Refuses, "the child is born without it"
		if d.Allow {
			l.State, l.Text = Allows, ""
		}
	case k.Provider == "" || k.Problem != "":
		l.Text = strings.TrimSpace("no OS layer: " + k.Problem)
	case d.Family == "file":
		if k.Files && !d.Allow && strings.HasPrefix(d.RuleText, "ignore=") && s.Policy.Switches().IgnoreBestEffort {
			l.Text = "ignore-best-effort=true: the Python layer alone hides it"
			return l
		}
		if k.Files && !d.Allow && strings.HasSuffix(d.Op, "stat") {
			return holds(false, "metadata")
		}
		return holds(k.Files, "files")
	case d.Family == "net" && k.Sockets && !s.Policy.NetNeeded() && !d.Allow:
		l.State, l.Text = Refuses, "no rule needs the network, so "+k.Provider+" lets no internet socket be made"
	case d.Family == "net":
		return holds(k.Network, "hosts and ports")
	case d.Family == "call" && d.Category == string(audit.ProcessExec):
		if k.Exec && !d.Allow && s.Policy.GrantsExec() {
			l.Text = "another rule grants starting programs, and the kernel cannot tell the functions apart"
			return l
		}
		return holds(k.Exec, "starting programs")
	default:
		l.Text = "imports, functions and strings are Python's own: no kernel sees them"
	}
	return l
}
