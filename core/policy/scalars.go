package policy

import (
	"strings"
	"time"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// scalars are the switches, limits and provider options. The loader has checked their values.
type scalars struct {
	switches Switches
	limits   Limits
	bounds   map[string]profile.Rule      // the lines that set limits, by key
	options  map[string]map[string]string // provider, key
}

const defaultResult = 256 << 20

func (c *compiler) finishScalars() error {
	s := &c.scalars
	s.switches = Switches{PySandbox: true, OSSandbox: "auto", ResultMode: "data-only", ResultGuard: true, Locked: c.profile.Locked}
	s.limits.Result = defaultResult
	s.bounds = map[string]profile.Rule{}
	for key, set := range map[string]func(r *profile.Rule){
		"py-sandbox":          func(r *profile.Rule) { s.switches.PySandbox, _ = profile.ParseBool(r.Value) },
		"os-sandbox":          func(r *profile.Rule) { s.switches.OSSandbox, s.switches.OSSandboxPos = r.Value, r.Pos },
		"learn":               func(r *profile.Rule) { s.switches.Learn = learnFile(r.Value) },
		"ignore-best-effort":  func(r *profile.Rule) { s.switches.IgnoreBestEffort, _ = profile.ParseBool(r.Value) },
		"remote-result-mode":  func(r *profile.Rule) { s.switches.ResultMode = r.Value },
		"remote-result-guard": func(r *profile.Rule) { s.switches.ResultGuard, _ = profile.ParseBool(r.Value) },
		"limit-memory":        size(&s.limits.Memory),
		"limit-result":        size(&s.limits.Result),
		"limit-cpu":           duration(&s.limits.CPU),
		"call-timeout":        duration(&s.limits.CallTimeout),
		"limit-processes":     count(&s.limits.Processes),
		"limit-open-files":    count(&s.limits.OpenFiles),
	} {
		r, ok := c.profile.Scalar(key)
		if !ok {
			continue
		}
		set(&r)
		if profile.FamilyOf(key) == profile.FamilyLimits {
			s.bounds[key] = r
		}
	}
	for i := range c.profile.Rules {
		r := &c.profile.Rules[i]
		if guardedStrings(r.Key) {
			if err := c.addEval(r); err != nil {
				return err
			}
		}
		if provider, key, found := strings.Cut(r.Key, "."); found {
			c.option(provider, key, r)
		}
	}
	return nil
}

// option stores `provider.key=value`: the strongest origin of a key, as scalars do.
func (c *compiler) option(provider, key string, r *profile.Rule) {
	if c.scalars.options == nil {
		c.scalars.options = map[string]map[string]string{}
	}
	if c.scalars.options[provider] == nil {
		c.scalars.options[provider] = map[string]string{}
	}
	if best, ok := c.profile.Scalar(r.Key); ok {
		c.scalars.options[provider][key] = best.Value
	}
}

func learnFile(value string) string {
	if _, isBool := profile.ParseBool(value); isBool {
		return ""
	}
	return value
}

func size(to *int64) func(*profile.Rule) {
	return func(r *profile.Rule) { *to, _ = profile.ParseSize(r.Value) }
}

func duration(to *time.Duration) func(*profile.Rule) {
	return func(r *profile.Rule) { *to, _ = profile.ParseDuration(r.Value) }
}

func count(to *int) func(*profile.Rule) {
	return func(r *profile.Rule) { n, _ := profile.ParseCount(r.Value); *to = int(n) }
}

// Switches returns the layers and modes.
func (p *Policy) Switches() Switches { return p.scalars.switches }

// Limits returns the bounds of the child.
func (p *Policy) Limits() Limits { return p.scalars.limits }

// LimitRule gives the line that sets a limit and where it stands, as messages name it: `limit-memory=64MB, .py-sandboxes:12`.
// It is "" where no line sets it.
func (p *Policy) LimitRule(key string) string {
	r, set := p.scalars.bounds[key]
	if !set {
		return ""
	}
	return key + "=" + r.Value + ", " + r.Pos.String()
}

// LimitPosition is where the line that sets a limit stands; zero where none does.
func (p *Policy) LimitPosition(key string) profile.Position { return p.scalars.bounds[key].Pos }

// Options returns the keys of one provider.
func (p *Policy) Options(provider string) map[string]string {
	out := map[string]string{}
	for k, v := range p.scalars.options[provider] {
		out[k] = v
	}
	return out
}
