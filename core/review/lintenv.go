package review

import (
	"regexp"
	"strings"
	"sync"

	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// secretValue matches texts that are keys by their form: of OpenAI and Anthropic, GitHub, GitLab, AWS, Google, Slack,
// Stripe, npm, PyPI, Hugging Face, JSON web tokens, private keys, and passwords inside of addresses.
var secretValue = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_|glpat-|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}|xox[abpr]-|` +
		`[sr]k_live_|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{20,}|eyJ[A-Za-z0-9_-]{10,}\.eyJ|-----BEGIN [A-Z ]*PRIVATE KEY|://[^/\s:@]+:[^/\s@]+@`)
})

// variables matches `${…}` without a default: the rest of a value is what the profile itself holds.
var variables = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{[^{}:]*\}`) })

func (l *linter) env() {
	removed := l.keys("unenv")
	seen := map[string]*Grant{}
	for _, g := range l.keys("env") {
		name := g.Rule.Items[0]
		for _, u := range removed {
			if nameCovers(u.Value, name) {
				l.shadowed(g, u)
				break
			}
		}
		if first, ok := seen[g.Value]; ok {
			l.duplicate(g, first)
		} else {
			seen[g.Value] = g
		}
		l.envSecret(g, name)
		if strings.Contains(name, "*") && len(name) < 4 && g.Risk >= learn.Medium {
			l.wide(g, "Name the variables one by one, or a longer pattern.")
		}
	}
	for _, u := range removed {
		if !meets(l.grants, u) {
			l.add(u, Note, KindNever, "takes nothing away: no env rule hands such a variable on", "")
		}
	}
}

// envSecret tells of secrets in the text of the profile: it is read by many and kept in version control.
func (l *linter) envSecret(g *Grant, name string) {
	if g.secret {
		l.add(g, Error, KindSecret, "the value looks like a secret, in a file that others read", "Hand the host's value on: env="+name+"=${"+name+"}.")
	}
}

// holdsSecret tells that the text of an env rule holds a secret: a key by its form, or a text of some length for a
// variable whose name says so. What `${…}` reads from the host is not part of the text; a default is.
func holdsSecret(name, value string) bool {
	_, value, _ = strings.Cut(value, "=")
	literal := variables().ReplaceAllString(value, "")
	if secretValue().MatchString(literal) {
		return true
	}
	if i := strings.LastIndex(literal, ":-"); i >= 0 {
		literal = literal[i+2:]
	}
	risk, _ := learn.GradeVariable(strings.Trim(name, "*"))
	return risk == learn.High && len(strings.Trim(literal, `}"' `)) >= 8
}

// nameCovers tells that pattern a matches whatever b matches.
func nameCovers(a, b string) bool {
	prefix, suffix, star := strings.Cut(a, "*")
	if !star {
		return a == b
	}
	if !strings.Contains(b, "*") {
		return profile.MatchName(a, b)
	}
	p, s, _ := strings.Cut(b, "*")
	return strings.HasPrefix(p, prefix) && strings.HasSuffix(s, suffix)
}

// nameMeets tells that some name may fit both patterns.
func nameMeets(a, b string) bool {
	p, s, aStar := strings.Cut(a, "*")
	q, u, bStar := strings.Cut(b, "*")
	switch {
	case !aStar && !bStar:
		return a == b
	case !aStar:
		return profile.MatchName(b, a)
	case !bStar:
		return profile.MatchName(a, b)
	}
	return (strings.HasPrefix(p, q) || strings.HasPrefix(q, p)) && (strings.HasSuffix(s, u) || strings.HasSuffix(u, s))
}
