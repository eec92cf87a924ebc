package learn

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled when it is first used: every start of python-sb links this package, and
// few of them learn.
type pattern struct{ compiled func() *regexp.Regexp }

func lazy(text string) pattern {
	return pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })}
}

// MatchString reports whether s holds a match.
func (p pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// FindStringSubmatch gives the leftmost match and its groups, nil for none.
func (p pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }
