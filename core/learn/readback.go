package learn

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// expectation is what a line must read back as.
type expectation struct {
	key   string
	items []string // what the parser must find, nil: any
	// allows asks the policy that this one line makes; it must say yes.
	allows func(*policy.Policy) bool
}

// reader loads single lines with the profile's own parser. A line that was made from an observed name is written
// only if it comes back as that name: no second rule, no other value, no wider one.
type reader struct {
	env  map[string]string
	home string
	base string // the folder that relative paths start from
}

func (r reader) check(line string, want expectation) error {
	if strings.ContainsAny(line, "\n\r\x00") {
		return errors.New("more than one line")
	}
	p, err := r.load(line)
	if err != nil {
		return err
	}
	if len(p.Rules) != 1 || p.Rules[0].Key != want.key {
		return fmt.Errorf("the line reads as %d rules", len(p.Rules))
	}
	if want.items != nil && !slices.Equal(p.Rules[0].Items, want.items) {
		return fmt.Errorf("the line reads as %q", p.Rules[0].Items)
	}
	if want.allows == nil {
		return nil
	}
	compiled, _, err := policy.Compile(p, policy.Context{Cwd: r.base, Home: r.home, Resolver: fixedResolver{}})
	if err != nil {
		return err
	}
	if !want.allows(compiled) {
		return errors.New("the line does not allow what was observed")
	}
	return nil
}

// load parses one line as a rule, with relative paths from r.base as in a profile there.
func (r reader) load(line string) (*profile.Profile, error) {
	key, value, _ := strings.Cut(line, "=")
	return profile.Load(profile.Options{
		Overrides: []profile.Override{{Key: key, Value: value, Origin: profile.OriginCode}},
		Env:       r.env, Platform: "linux", Home: r.home, Cwd: r.base,
	})
}

// fixedResolver answers without the network: whether a line is well formed does not depend on what a name means.
type fixedResolver struct{}

var fixedAddress = netip.MustParseAddr("192.0.2.1") // RFC 5737, documentation

func (fixedResolver) LookupIP(string) ([]netip.Addr, error) { return []netip.Addr{fixedAddress}, nil }

// quote writes text as one item of a value: bare where the parser takes it as it stands, else in double quotes with
// the format's escapes. verbatim, which comes first, is kept as it is: `~`, `./` or `${NAME:-default}`.
func quote(verbatim, text string) string {
	if bare(text) {
		return verbatim + text
	}
	var out strings.Builder
	out.WriteString(`"` + verbatim)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\\' || r == '"' || r == '$':
			out.WriteString(`\` + string(r))
		case !(r == utf8.RuneError && size == 1) && showable(r):
			out.WriteRune(r)
		default:
			for _, b := range []byte(text[i : i+size]) {
				fmt.Fprintf(&out, `\x%02x`, b)
			}
		}
		i += size
	}
	return out.String() + `"`
}

// bare says that text needs no quotes in any kind of value.
func bare(text string) bool {
	for _, r := range text {
		if r == utf8.RuneError || r == ' ' || !showable(r) || strings.ContainsRune("\"'\\$#,|=*", r) {
			return false
		}
	}
	return true
}

// exposes asks for one exposure of exactly this path, and nothing else; of a link, of what it leads to.
func exposes(path string, write bool) func(*policy.Policy) bool {
	target := path
	if at, err := filepath.EvalSymlinks(path); err == nil && !write {
		target = at
	}
	return func(p *policy.Policy) bool {
		e := p.Exposures()
		return len(e) == 1 && (e[0].Source == path || e[0].Source == target) && e[0].Write == write && len(p.Ignores()) == 0
	}
}

func profileDir(o Options) string {
	if o.ProfilePath == "" {
		return o.Cwd
	}
	return dirOf(absolute(o.ProfilePath, o.Cwd))
}

func absolute(path, cwd string) string {
	if filepath.IsAbs(path) {
		return path
	}
	if cwd == "" {
		cwd, _ = os.Getwd()
	}
	return filepath.Join(cwd, path)
}
