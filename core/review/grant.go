package review

import (
	"strings"

	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// Grant is one thing that a rule says: a rule with a list says several.
type Grant struct {
	Rule  *profile.Rule
	Value string // one item, in the spelling that equal grants share
	Deny  bool   // takes away: DENY, ignore, unenv
	Risk  learn.Risk
	Why   string // of the risk

	exposure *policy.Exposure
	ignore   *policy.Ignore
	net      *policy.NetRule
	target   string // module or call without its action
	secret   bool   // the text of the rule holds a secret
	at       int    // its place among the grants of the profile
}

// Text is the grant as a line of its own.
func (g *Grant) Text() string { return g.Rule.Key + "=" + g.Value }

// Shown is Text for reports, which are passed on and kept: a value that looks like a secret is left out.
func (g *Grant) Shown() string {
	if g.secret {
		name, _, _ := strings.Cut(g.Value, "=")
		return g.Rule.Key + "=" + name + "=…"
	}
	return g.Text()
}

// scalarKeys are the keys of which one rule holds.
var scalarKeys = func() map[string]bool {
	out := map[string]bool{}
	for _, k := range append(append([]profile.Key{}, profile.Keys...), profile.ProviderKeys...) {
		out[k.Name] = k.Scalar
	}
	return out
}()

func scalar(key string) bool {
	base, _, _ := strings.Cut(key, ":")
	return scalarKeys[base]
}

// Grants takes the rules of a profile apart and grades what they open, in the order of the profile.
func Grants(s Subject) []Grant {
	exposures, ignores := s.Policy.Exposures(), s.Policy.Ignores()
	var out []Grant
	for i := range s.Profile.Rules {
		r := &s.Profile.Rules[i]
		switch r.Key {
		case "env":
			out = append(out, envGrant(r))
		case "unenv":
			out = append(out, Grant{Rule: r, Value: r.Value, Deny: true})
		case "expose-ro", "expose-rw":
			out = append(out, fileGrant(s, r, &exposures[0]))
			exposures = exposures[1:]
		case "ignore":
			out = append(out, Grant{Rule: r, Value: quoted(r.Value), Deny: true, ignore: &ignores[0]})
			ignores = ignores[1:]
		case "net":
			if n, err := policy.ParseNet(r.Items); err == nil { // Compile has accepted it
				out = append(out, netGrant(r, n))
			}
		case "python-import", "python-api":
			for _, item := range r.Items {
				if item != "" {
					out = append(out, nameGrant(r, item))
				}
			}
		case "port":
		default:
			out = append(out, scalarGrant(r))
		}
	}
	for i := range out {
		out[i].at = i
	}
	return out
}

func envGrant(r *profile.Rule) Grant {
	g := Grant{Rule: r, Value: strings.TrimSpace(stripComment(r))}
	name := r.Items[0]
	g.secret = holdsSecret(name, g.Value)
	switch {
	case name == "*":
		g.Risk, g.Why = learn.High, "hands on the whole environment, every secret in it"
	case strings.Contains(g.Value, "${"):
		g.Risk, g.Why = learn.GradeVariable(strings.Trim(name, "*"))
		if strings.Contains(name, "*") && g.Risk == learn.Low {
			g.Risk, g.Why = learn.Medium, "hands on whatever variable fits the pattern"
		}
	case g.Risk == learn.Low && loader(name):
		g.Risk, g.Why = learn.GradeVariable(name)
	}
	return g
}

// loader tells a variable that chooses code, whatever its value.
func loader(name string) bool {
	risk, _ := learn.GradeVariable(name)
	return risk == learn.Medium && !strings.HasSuffix(name, "_URL") && !strings.HasSuffix(name, "_URI")
}

// stripComment is the value of an env rule as the line says it: the loader keeps it as written.
func stripComment(r *profile.Rule) string {
	if i := strings.Index(r.Value, " #"); i >= 0 && !strings.ContainsAny(r.Value, `"'`) {
		return r.Value[:i]
	}
	return r.Value
}

func fileGrant(s Subject, r *profile.Rule, e *policy.Exposure) Grant {
	g := Grant{Rule: r, Value: quoted(e.Source), exposure: e}
	if e.Dest != "" {
		g.Value += "," + quoted(e.Dest)
	}
	switch {
	case e.Source == "/":
		g.Risk, g.Why = learn.High, "opens the whole machine"
	case learn.Wholesale(e.Source, s.Profile.Home) && !e.File:
		g.Risk, g.Why = learn.High, "opens a folder that holds more than any one program needs"
	case learn.SecretPath(e.Source):
		g.Risk, g.Why = learn.High, "looks like a secret"
	case e.Write && learn.RunLater(e.Source, e.File):
		g.Risk, g.Why = learn.High, "what is written here may be run later"
	case e.Write && e.File && strings.HasSuffix(e.Source, ".sock"):
		g.Risk, g.Why = learn.High, "whatever serves a socket acts outside the sandbox"
	case e.Write:
		g.Risk, g.Why = learn.Medium, "other programs read what is written here"
	}
	return g
}

func netGrant(r *profile.Rule, n policy.NetRule) Grant {
	g := Grant{Rule: r, Value: n.String(), Deny: n.Deny(), net: &n}
	if n.Deny() {
		return g
	}
	set := n.Set()
	switch {
	case set == "@metadata" || n.Prefix().IsValid() && metadata.Covers(n):
		g.Risk, g.Why = learn.High, "the machine's own credentials are served there"
	case n.Any():
		g.Risk, g.Why = learn.High, "anything that can be read can be sent anywhere"
	case set == "@private" || set == "@link-local":
		g.Risk, g.Why = learn.High, "every service of the private network"
	case n.Domain() != "" && !strings.Contains(n.Domain(), "."):
		g.Risk, g.Why = learn.High, "every host of a top-level domain"
	case n.Domain() != "":
		g.Risk, g.Why = learn.Medium, "every host below the domain, and names that are looked up are a narrow way out"
	case wideNetwork(n):
		g.Risk, g.Why = learn.High, "a network of that size is nearly everywhere"
	case n.AllPorts() && !loopback.Covers(n):
		g.Risk, g.Why = learn.Medium, "every port of the host"
	case n.Inward() && !loopback.Covers(n):
		g.Risk, g.Why = learn.Medium, "reachable from other machines"
	case n.Prefix().IsValid() && !loopback.Covers(n):
		g.Risk, g.Why = learn.Medium, "an address without a name"
	}
	return g
}

// The named sets that grades ask for.
var (
	metadata = netRule("DENY", "@metadata")
	loopback = netRule("DENY", "@loopback")
)

func netRule(action, network string) policy.NetRule {
	n, err := policy.ParseNet([]string{action, "*", network, "*", "*"})
	if err != nil {
		panic("review: " + err.Error()) // a constant of this file
	}
	return n
}

func wideNetwork(n policy.NetRule) bool {
	p := n.Prefix()
	return p.IsValid() && (p.Addr().Is4() && p.Bits() < 16 || p.Addr().Is6() && p.Bits() < 32)
}

// nameGrant is one item of python-import or python-api.
func nameGrant(r *profile.Rule, item string) Grant {
	g := Grant{Rule: r, Value: item, target: item}
	if word, rest, found := strings.Cut(item, ":"); found {
		action := strings.ToUpper(strings.TrimSpace(word))
		g.target, g.Deny = strings.TrimSpace(rest), action == "DENY"
		g.Value = action + ":" + g.target
	}
	if r.Key == "python-import" {
		g.Value = strings.TrimPrefix(g.Value, "ALLOW:")
	}
	switch {
	case g.Deny:
	case r.Key == "python-import" && g.target == "*":
		g.Risk, g.Why = learn.Medium, "any module, those that load native code too"
	case r.Key == "python-import":
		g.Risk, g.Why = learn.GradeImport(g.target)
	case g.target == "*":
		g.Risk, g.Why = learn.High, "every sensitive function: the Python layer guards files and network alone"
	default:
		g.target = canonicalCall(g.target)
		g.Risk, g.Why = gradeCall(g.target)
	}
	if r.Key == "python-api" {
		g.target = canonicalCall(g.target)
	}
	return g
}

// quoted is a text as one item of a rule.
func quoted(s string) string {
	if q, ok := profile.Quote(s); ok {
		return q
	}
	return s
}
