package policy

import (
	"strings"

	"github.com/pysandboxes/pysandboxes/core/audit"
)

// evalCalls are the registry's names for the kinds of evaluation.
var evalCalls = map[string]string{"eval": "builtins.eval", "exec": "builtins.exec", "compile": "builtins.compile"}

var phrases = map[string]string{
	"eval":    "evaluating a string by eval() or exec()",
	"exec":    "running a code object by exec() or eval()",
	"compile": "compiling a string by compile()",
}

// Eval decides on a string given to eval, exec or compile.
func (p *Policy) Eval(kind string) Decision {
	name, known := evalCalls[kind]
	if !known {
		d := p.refuse("eval", kind, kind, "evaluating a string by "+safe(kind), 0)
		d.Note = "there is no such way to evaluate."
		return d
	}
	call, _ := audit.Lookup(name)
	v := p.calls.decide(&call)
	if n := p.calls.denyFn[evalCalls["exec"]]; n > 0 && kind == "eval" && v.allow {
		v = verdict{false, n} // one event stands for a string given to either of them
	}
	if v.allow && v.line > 0 {
		d := p.allow("eval", kind, kind, v.line)
		d.Category = string(audit.DynamicCode)
		return d
	}
	d := p.refuse("eval", kind, kind, phrases[kind]+" ("+string(audit.DynamicCode)+")", v.line)
	d.Category = string(audit.DynamicCode)
	if v.line == 0 {
		d.Add = []string{"python-api=ALLOW:" + name, "python-api=ALLOW:" + string(audit.DynamicCode)}
	}
	if len(p.evals) > 0 {
		d.Note = "The eval-* rules guard strings and trees that the program hands to eval(), exec() and compile(). This was something else: code that was made in another way."
	}
	return d
}

// guardedStrings tells an eval-* key.
func guardedStrings(key string) bool { return strings.HasPrefix(key, "eval-") }
