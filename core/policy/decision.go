package policy

import (
	"strings"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// trimComment is the value of a rule as its line says it, without the comment. Items are quoted again where they need
// it, so that the text can be put into a profile as it is.
func trimComment(r *profile.Rule) string {
	if r.Key == "env" {
		return r.Value
	}
	sep := ", "
	if r.Key == "net" {
		sep = "|"
	}
	if r.Key == "expose-ro" || r.Key == "expose-rw" {
		sep = ","
	}
	parts := make([]string, 0, len(r.Items))
	for _, it := range r.Items {
		q, ok := profile.Quote(it)
		if !ok {
			q = it
		}
		parts = append(parts, q)
	}
	return strings.Join(parts, sep)
}

// allow is a decision of rule n; 0 stands for the product itself.
func (p *Policy) allow(family, op, subject string, n int) Decision {
	d := Decision{Allow: true, Family: family, Op: op, Subject: subject}
	p.by(&d, n)
	return d
}

// by puts rule n into a decision.
func (p *Policy) by(d *Decision, n int) {
	if n > 0 && n < len(p.lines) {
		d.Rule, d.RuleText = p.lines[n].pos, p.lines[n].text
	}
}

// refuse is a refusal by rule n, or by default where n is 0. phrase says what was refused: "reading /etc/passwd".
func (p *Policy) refuse(family, op, subject, phrase string, n int, add ...string) Decision {
	d := Decision{Family: family, Op: op, Subject: subject, Add: add, phrase: phrase, profile: p.path}
	p.by(&d, n)
	return d
}

// Through says in a refused file's message that a link at path leads there.
func (d Decision) Through(path string) Decision {
	d.Note = strings.TrimSpace(phrase(path, Read)[len("reading "):] + " leads there by a link. " + d.Note)
	return d
}

// defaults says for each family why nothing allowed it.
var defaults = map[string]string{
	"env":    "no env rule in %s hands it on",
	"file":   "no rule in %s exposes it",
	"net":    "no net rule in %s allows it",
	"import": "no python-import rule in %s grants it",
	"call":   "no python-api rule in %s grants it",
	"eval":   "no rule in %s grants it",
}

// Message is the refusal in words. It ends with the exact line to add (or to change, where a line refused), the
// narrowest one last; wider ones stand before it in brackets. An allowing decision has a short sentence.
func (d Decision) Message() string {
	if d.Allow {
		text := d.Subject + " is allowed"
		if !d.Rule.IsZero() {
			text += " by " + d.RuleText + " at " + d.Rule.String()
		}
		return text
	}
	var b strings.Builder
	b.WriteString(d.phrase)
	if d.Family == "net" {
		b.WriteString(": ")
	} else {
		b.WriteString(" is refused: ")
	}
	switch {
	case !d.Rule.IsZero():
		b.WriteString("the line " + d.RuleText + " at " + d.Rule.String() + " forbids it.")
	case len(d.Add) == 0 && d.Note != "":
		b.WriteString(d.Note)
		return b.String()
	case d.why != "":
		b.WriteString(d.why)
	default:
		where := d.profile
		if where == "" {
			where = "the profile"
		}
		b.WriteString(strings.Replace(defaults[d.Family], "%s", where, 1) + ".")
	}
	if d.Note != "" {
		b.WriteString(" " + d.Note)
	}
	if !d.Rule.IsZero() {
		b.WriteString("\nIf this is wanted, change that line:\n    " + d.RuleText)
		return b.String()
	}
	if len(d.Add) == 0 && d.why != "" {
		return b.String()
	}
	b.WriteString("\nTo allow it, add")
	if len(d.Add) > 1 {
		b.WriteString(" (wider: " + strings.Join(d.Add[1:], "; ") + ")")
	}
	b.WriteString(":")
	for _, a := range d.Also {
		b.WriteString("\n    " + a)
	}
	if len(d.Add) > 0 {
		b.WriteString("\n    " + d.Add[0])
	}
	return b.String()
}
