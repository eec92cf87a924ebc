package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// envRules is the environment that the child starts with.
type envRules struct {
	names   map[string]envValue // what env rules set
	removed []removal           // unenv, wins
	values  []string            // NAME=value, sorted
	allow   []allowance         // names that rules would hand on if the host had them
}

// envValue is the value of a name and how strong the rule is that sets it.
type envValue struct {
	value string
	fixed int // characters of the name that the rule spells out; exactName where it is no pattern
	rank  int // order of precedence among origins and includes
	line  int
	rule  *profile.Rule
}

type removal struct {
	pattern string
	line    int
}

// allowance is the left side of an env rule.
type allowance struct {
	pattern string
	line    int
}

const exactName = 1 << 30

func (c *compiler) addEnv(r *profile.Rule) error {
	n := c.keep(r)
	if r.Key == "unenv" {
		if strings.Count(r.Value, "*") > 1 || strings.ContainsAny(r.Value, "= \t") {
			return r.Fail("unenv takes one name with one * at most", "Write unenv=NAME or unenv=*_SUFFIX, a line each.")
		}
		c.env.removed = append(c.env.removed, removal{r.Value, n})
		return nil
	}
	name := r.Items[0]
	c.env.allow = append(c.env.allow, allowance{name, n})
	fixed := exactName
	if strings.Contains(name, "*") {
		fixed = len(name) - 1
	}
	if c.env.names == nil {
		c.env.names = map[string]envValue{}
	}
	for _, v := range r.Env {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") {
			continue // an empty star makes no name
		}
		next := envValue{v.Value, fixed, r.Rank(), n, r}
		old, seen := c.env.names[v.Name]
		switch {
		case !seen || next.stronger(old):
			c.env.names[v.Name] = next
		case old.stronger(next) || old.value == next.value:
		default:
			return r.Fail(fmt.Sprintf("two rules give %s different values; the other is %s", v.Name, old.rule.Pos),
				"Keep one of them, or name "+v.Name+" exactly in a line of its own.")
		}
	}
	return nil
}

// stronger: an exact name beats a pattern, more fixed characters beat fewer, then the origin decides.
func (a envValue) stronger(b envValue) bool {
	if a.fixed != b.fixed {
		return a.fixed > b.fixed
	}
	return a.rank < b.rank
}

func (c *compiler) finishEnv() error {
	all := map[string]string{}
	if c.ctx.Learning {
		for k, v := range c.profile.Env {
			all[k] = v
		}
	}
	for k, v := range c.env.names {
		all[k] = v.value
	}
	for k, v := range all {
		if c.env.removedBy(k) == 0 {
			c.env.values = append(c.env.values, k+"="+v)
		}
	}
	slices.Sort(c.env.values)
	return nil
}

// removedBy returns the unenv rule that takes a name away, 0 if none does.
func (e *envRules) removedBy(name string) int {
	for _, r := range e.removed {
		if profile.MatchName(r.pattern, name) {
			return r.line
		}
	}
	return 0
}

// Environ returns the child's environment as NAME=value, sorted. While learning it is the host's, changed by the rules.
func (p *Policy) Environ() []string { return slices.Clone(p.env.values) }

// Env says whether the rules hand a variable of the host on, set there or not.
func (p *Policy) Env(name string) Decision {
	if n := p.env.removedBy(name); n > 0 {
		return p.refuse("env", "getenv", name, "the variable "+safe(name), n)
	}
	if v, ok := p.env.names[name]; ok {
		return p.allow("env", "getenv", name, v.line)
	}
	for _, a := range p.env.allow {
		if profile.MatchName(a.pattern, name) {
			return p.allow("env", "getenv", name, a.line)
		}
	}
	d := p.refuse("env", "getenv", name, "the variable "+safe(name), 0)
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == "" && name != "" {
		d.Add = []string{"env=" + name + "=${" + name + "}"}
	} else {
		d.Note = "Its name has characters that no env rule can spell."
	}
	return d
}
