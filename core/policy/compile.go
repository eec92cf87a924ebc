package policy

import (
	"path/filepath"
	"time"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// Policy is a compiled profile. It never changes; a reload compiles a new one.
type Policy struct {
	path       string // the profile, "" where there is none
	dir        string // its folder, for the lines that refusals suggest
	ctx        Context
	lines      []line // the rules that decide, by index
	env        envRules
	files      fileRules
	imports    importRules
	calls      callRules
	net        netRules
	scalars    scalars
	evals      map[string]*EvalProfile // by name, the plain one under ""
	evalBounds map[evalBound]string    // what lines give
}

// line is a rule as decisions quote it.
type line struct {
	pos  profile.Position
	text string
}

// compiler is a policy in the making.
type compiler struct {
	*Policy
	profile  *profile.Profile
	warnings []profile.Warning
	folders  map[string]place // resolved so far
}

// family compiles the rules of some keys. A new family is a new file and a row in families.
type family struct {
	keys   []string
	add    func(*compiler, *profile.Rule) error // nil: finish reads what it needs
	finish func(*compiler) error                // after the last rule, nil where nothing is left to do
}

var families = []family{
	{keys: []string{"env", "unenv"}, add: (*compiler).addEnv, finish: (*compiler).finishEnv},
	{keys: []string{"expose-ro", "expose-rw", "ignore"}, add: (*compiler).addFile, finish: (*compiler).finishFiles},
	{keys: []string{"net"}, add: (*compiler).addNet, finish: (*compiler).finishNet},
	{keys: []string{"python-import"}, add: (*compiler).addImport, finish: (*compiler).finishImports},
	{keys: []string{"python-api"}, add: (*compiler).addCall, finish: (*compiler).finishCalls},
	{finish: (*compiler).finishScalars},
}

// Compile makes a policy of a loaded profile. It reads the file system (canonical paths) and looks names up; a policy
// that is made does neither. Warnings of the profile come first.
func Compile(p *profile.Profile, c Context) (*Policy, []profile.Warning, error) {
	if c.Cwd == "" {
		c.Cwd = p.Cwd
	}
	if c.Home == "" {
		c.Home = p.Home
	}
	if c.Sleep == nil {
		c.Sleep = time.Sleep
	}
	if c.Resolver == nil {
		c.Resolver = hostResolver{}
	}
	k := &compiler{Policy: &Policy{path: p.Path, ctx: c}, profile: p}
	if p.Path != "" {
		k.dir = filepath.Dir(p.Path)
	}
	k.warnings = append(k.warnings, p.Warnings...)
	byKey := map[string]family{}
	for _, f := range families {
		for _, key := range f.keys {
			byKey[key] = f
		}
	}
	for i := range p.Rules {
		if f, ok := byKey[p.Rules[i].Key]; ok {
			if err := f.add(k, &p.Rules[i]); err != nil {
				return nil, k.warnings, err
			}
		}
	}
	for _, f := range families {
		if err := f.finish(k); err != nil {
			return nil, k.warnings, err
		}
	}
	return k.Policy, k.warnings, nil
}

// warn notes something for a person.
func (c *compiler) warn(r *profile.Rule, text string) {
	c.warnings = append(c.warnings, profile.Warning{Pos: r.Pos, Text: text})
}

// keep stores a rule for decisions and returns its number, which is never 0.
func (p *Policy) keep(r *profile.Rule) int {
	if len(p.lines) == 0 {
		p.lines = make([]line, 1)
	}
	p.lines = append(p.lines, line{r.Pos, r.Key + "=" + trimComment(r)})
	return len(p.lines) - 1
}

// base is the folder that relative paths of a rule start at: the folder of the file it stands in, the working
// directory for rules of the command line and of code.
func (c *compiler) base(r *profile.Rule) string {
	if r.Pos.Line == 0 {
		return c.ctx.Cwd
	}
	return filepath.Dir(r.Pos.File)
}
