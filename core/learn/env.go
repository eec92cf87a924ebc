package learn

import (
	"strings"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

var variableName = lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secretWords mark variables that hold something to steal. Matched as words between underscores, and the longer ones
// anywhere.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "CREDENTIAL",
	"CREDENTIALS", "AUTH", "PRIVATE", "DSN", "COOKIE", "SIGNATURE", "APIKEY"}

// loaderVariables change what code runs: whoever passes them in chooses what is loaded.
var loaderVariables = map[string]string{
	"LD_PRELOAD":      "loads libraries into every program",
	"LD_LIBRARY_PATH": "chooses where libraries come from",
	"PYTHONPATH":      "chooses where modules come from",
	"PYTHONHOME":      "chooses the standard library",
	"PYTHONSTARTUP":   "runs a file in every interactive session",
	"PATH":            "chooses which programs are found",
	"BROWSER":         "names a program that webbrowser starts",
	"EDITOR":          "names a program that others start",
	"PAGER":           "names a program that others start",
}

// env learns the variables that the program read and that the host has: one that is not set is absent in the sandbox
// too, so it needs no rule, and a secret set later does not slip in. The value is never stored.
func (g *generaliser) env(entries []entry) []Learned {
	var out []Learned
	for _, e := range fold(entries, func(e entry) string { return e.Subject }) {
		name := e.Subject
		value, set := g.o.Env[name]
		if g.o.Env != nil && !set {
			continue
		}
		if g.o.Policy != nil {
			d := g.o.Policy.Env(name)
			if d.Allow {
				continue
			}
			if d.RuleText != "" {
				out = append(out, leftOut(FamilyEnv, e, name+" is refused by "+d.Rule.String()))
				continue
			}
		}
		if !variableName.MatchString(name) {
			out = append(out, leftOut(FamilyEnv, e, "the variable "+name+" has a name that ${} cannot read"))
			continue
		}
		risk, why := envRisk(name)
		if e.Event == ofInterpreter && e.Site == "" {
			why = join(why, "read by the interpreter itself")
		}
		out = append(out, g.rule(e, "env="+name+"=${"+name+"}", risk, why, expectation{key: "env", allows: func(p *policy.Policy) bool {
			environ := p.Environ()
			return len(environ) == 0 && g.o.Env == nil || len(environ) == 1 && environ[0] == name+"="+value
		}}))
	}
	return byRisk(out)
}

func envRisk(name string) (Risk, string) {
	upper := strings.ToUpper(name)
	for _, part := range strings.Split(upper, "_") {
		for _, word := range secretWords {
			if part == word || len(word) > 5 && strings.Contains(part, word) {
				return High, "looks like a secret"
			}
		}
	}
	if strings.HasPrefix(upper, "DATABASE_") || strings.HasSuffix(upper, "_URL") || strings.HasSuffix(upper, "_URI") {
		return Medium, "may hold a password inside an address"
	}
	if why, ok := loaderVariables[upper]; ok {
		return Medium, why
	}
	return Low, ""
}
