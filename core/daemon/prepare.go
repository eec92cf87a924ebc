package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/interpreter"
	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/transport"
	"github.com/pysandboxes/pysandboxes/core/wire"
	"github.com/pysandboxes/pysandboxes/providers"
)

// Plan is a sandbox that may be started, any number of times: the profile is loaded, the policy compiled, the provider
// chosen. It does not change.
type Plan struct {
	spec      Spec
	profile   *profile.Profile
	policy    *policy.Policy
	provider  providers.Provider
	notices   []string
	learnPath string // "" where this run does not learn
	recorder  *learn.Recorder
}

// ErrDirect is os-sandbox=none: there is no child, functions are called directly.
var ErrDirect = errors.New("os-sandbox=none: functions are called directly, without any sandbox")

// SetupError is a machine or an installation that lacks something, where the profile and the request are in order.
type SetupError struct{ Err error }

func (e *SetupError) Error() string { return e.Err.Error() }

// Unwrap gives what is lacking.
func (e *SetupError) Unwrap() error { return e.Err }

// Prepare loads the profile of a spec and chooses the provider. The errors are those of a person's making, each with its
// place and the way out; nothing was started. With [ErrDirect] the plan is still good for its notices and switches.
func Prepare(spec Spec) (*Plan, error) {
	spec, err := spec.complete()
	if err != nil {
		return nil, err
	}
	if err := spec.Interpreter.CheckInstalled(wire.Version); err != nil {
		return nil, &SetupError{err}
	}
	p := &Plan{spec: spec}
	learning, err := p.missing()
	if err != nil {
		return nil, err
	}
	if err := p.load(learning); err != nil {
		return nil, err
	}
	if err := p.learning(learning); err != nil {
		return nil, err
	}
	if err := p.choose(); err != nil {
		if protected := (*unprotectedError)(nil); errors.As(err, &protected) {
			return nil, protected.error
		}
		return p, err
	}
	if spec.ProfilePath != "" {
		remember(spec.Env, spec.ProfilePath)
	}
	return p, nil
}

// missing decides what a start without a profile does; it reports whether the run learns for that reason or because it was
// asked to.
func (p *Plan) missing() (learning bool, err error) {
	s := p.spec
	never := s.Env[learnVariable] == "never"
	if s.Learn.On && never {
		return false, &LearnForbiddenError{learnVariable + "=never is set"}
	}
	if s.ProfilePath != "" || s.Learn.On {
		return s.Learn.On, nil
	}
	if len(s.Searched) == 0 {
		return false, errors.New("sandbox: neither a profile nor a place to look for one")
	}
	missing := &MissingProfileError{Searched: s.Searched, Mode: s.Mode, Never: never,
		Former: knownProfile(s.Env, s.Searched[len(s.Searched)-1])}
	if missing.Former != "" || never || !s.Learn.IfMissing {
		return false, missing
	}
	return true, nil
}

// load reads the profile and compiles it. What a profile's own learn=FILE asks for is known only then.
func (p *Plan) load(learning bool) error {
	s := p.spec
	prof, err := profile.Load(profile.Options{
		Path: s.ProfilePath, Overrides: s.Overrides, Env: s.Env, Platform: "linux", Home: s.Home, Cwd: s.Cwd,
	})
	if err != nil {
		return err
	}
	if rule, set := prof.Scalar("learn"); set && !prof.Locked && rule.Value != "" {
		learning = true
	}
	context := s.context(learning)
	context.Runtime = s.Interpreter.RuntimeFor(learning || letsOut(prof))
	pol, warnings, err := policy.Compile(prof, context)
	if err != nil {
		return err
	}
	p.profile, p.policy = prof, pol
	for _, w := range warnings { // the profile's own among them
		p.notices = append(p.notices, place(w.Pos)+w.Text)
	}
	return nil
}

// context is what a profile is compiled against.
func (s Spec) context(learning bool) policy.Context {
	return policy.Context{
		Runtime: s.Interpreter.RuntimeFor(learning),
		Target:  s.Target, TargetModules: s.TargetModules, Package: s.Interpreter.Package,
		Cwd: s.Cwd, Home: s.Home, Learning: learning, Trusted: s.trusted(),
	}
}

// trusted is what later runs rely on: no more the sandbox's to write than the profile is.
func (s Spec) trusted() []policy.Trusted {
	var out []policy.Trusted
	for _, t := range []policy.Trusted{
		{Path: interpreter.CacheFolder(s.Env), What: "which keeps what is known of interpreters", Made: true},
		{Path: StateFolder(s.Env), What: "which keeps what profiles were used", Made: true},
		{Path: s.Interpreter.Package, What: "which holds the guard"},
		{Path: s.InitPath, What: "which sets the boundary up"},
	} {
		if t.Path != "" {
			out = append(out, t)
		}
	}
	return out
}

// letsOut reports whether a network rule may allow anything, before the policy is there to say so exactly.
func letsOut(p *profile.Profile) bool {
	for _, rule := range p.Rules {
		if rule.Key == "net" && len(rule.Items) > 0 && strings.EqualFold(rule.Items[0], "ALLOW") {
			return true
		}
	}
	return false
}

// learning sets up the recorder where this run learns.
func (p *Plan) learning(asked bool) error {
	s, switches := p.spec, p.policy.Switches()
	path := s.Learn.File
	switch {
	case path != "":
		path = within(s.Cwd, path)
	case asked && s.ProfilePath != "":
		path = s.ProfilePath
	case asked:
		path = s.Searched[len(s.Searched)-1]
	case switches.Learn != "":
		path = within(filepath.Dir(s.ProfilePath), switches.Learn)
	default:
		return nil
	}
	if s.Env[learnVariable] == "never" {
		return &LearnForbiddenError{learnVariable + "=never is set"}
	}
	if switches.Locked {
		return &LearnForbiddenError{s.ProfilePath + " is locked by learn=false"}
	}
	if err := learn.Ready(path, s.Cwd); err != nil {
		return err // before the run: what it would have learned is not lost at its end
	}
	allowed, err := p.allowedBy(path)
	if err != nil {
		return err
	}
	p.learnPath = path
	p.recorder = learn.New(learn.Options{
		Policy: allowed, ProfilePath: path, Home: s.Home, Cwd: s.Cwd, Env: s.Env, Runtime: p.policy.Runtime(), Prompt: s.Prompt,
		Journal: journal(s.Env, path), For: s.Learn.For,
	})
	if s.Mode == wire.ModeComplete { // else the interpreter gets the application's path and flags
		for _, o := range learn.Interpreter(s.PythonArgs, s.Env) {
			p.recorder.Add(o)
		}
	}
	p.notices = append(p.notices, fmt.Sprintf(
		"LEARNING into %s: everything is allowed and recorded. Never do this with code that you do not trust.", path))
	if n := p.recorder.Former(); n > 0 {
		p.notices = append(p.notices, fmt.Sprintf("an earlier learning run was killed before it could write; what it saw (%d) is learned with this one", n))
	}
	return nil
}

// allowedBy is the policy of the profile that is learned into. Where it is another than the profile in force it is to be whole
// by itself: what the latter allows, or a rule beside it, is written all the same.
func (p *Plan) allowedBy(path string) (*policy.Policy, error) {
	s := p.spec
	if path == s.ProfilePath || sameFile(path, s.ProfilePath) || s.ProfilePath == "" && !exists(path) {
		return p.policy, nil
	}
	o := profile.Options{Env: s.Env, Platform: "linux", Home: s.Home, Cwd: filepath.Dir(path)}
	if exists(path) {
		o.Path = path
	}
	prof, err := profile.Load(o)
	if err != nil {
		return nil, fmt.Errorf("learning into %s: it does not load: %w", path, err)
	}
	if prof.Locked {
		return nil, &LearnForbiddenError{path + " is locked by learn=false"}
	}
	pol, _, err := policy.Compile(prof, s.context(true))
	if err != nil {
		return nil, fmt.Errorf("learning into %s: %w", path, err)
	}
	return pol, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(one, other)
}

func within(folder, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(folder, path)
}

// choose finds the provider and says what it does not hold.
func (p *Plan) choose() error {
	switches := p.policy.Switches()
	name := switches.OSSandbox
	if p.Learning() {
		name = "subprocess"
	}
	if name == "none" {
		if err := p.policy.CheckProtected(); err != nil {
			return &unprotectedError{err}
		}
		p.notices = append(p.notices, place(switches.OSSandboxPos)+"os-sandbox=none: no rule of the profile is held")
		return ErrDirect
	}
	provider, notices, err := providers.Choose(name)
	if err != nil {
		return &SetupError{fmt.Errorf("%s%w", place(switches.OSSandboxPos), err)}
	}
	if err := Protected(p.policy, provider); err != nil {
		return &unprotectedError{err}
	}
	p.provider = provider
	if p.Learning() {
		return nil // the banner has said more than any gap could
	}
	p.notices = append(p.notices, notices...)
	p.notices = append(p.notices, p.weakened(provider)...)
	for _, gap := range provider.Gaps(p.policy) {
		if gap.Standing {
			continue // `pysandboxes check` and `doctor` say it; at each start it would be noise
		}
		p.tell(place(gap.Rule) + gap.Text)
	}
	return nil
}

// unprotectedError: the program could write its own rules.
type unprotectedError struct{ error }

// Protected tells whether a provider can keep the profile, and what later starts trust, from the program. What only a mount
// namespace holds shows when it is made.
func Protected(pol *policy.Policy, provider providers.Provider) error {
	if !provider.Holds().Mounts {
		return pol.CheckProtected()
	}
	_, err := pol.HoldProtected()
	return err
}

// tell adds a notice in place of one that says less of the same: the compiler knows that a path is missing, the provider
// what follows from it.
func (p *Plan) tell(notice string) {
	p.notices = append(slices.DeleteFunc(p.notices, func(said string) bool { return strings.HasPrefix(notice, said) }), notice)
}

// weakened warns where the host's OS_SANDBOX took the kernel boundary away, which the profile allows (hardening.md 2).
func (p *Plan) weakened(provider providers.Provider) []string {
	value := p.spec.Env["OS_SANDBOX"]
	rule, set := p.profile.Scalar("os-sandbox")
	if !set || value == "" || rule.Value != value || !strings.Contains(rule.Source, "${OS_SANDBOX") || provider.Holds().Files {
		return nil
	}
	return []string{fmt.Sprintf("%sOS_SANDBOX=%s in the environment takes the kernel boundary away", place(rule.Pos), value)}
}

func place(pos profile.Position) string {
	if pos.IsZero() {
		return ""
	}
	return pos.String() + ": "
}

// Notices are what a person should be told at the start, each once.
func (p *Plan) Notices() []string { return p.notices }

// Learning reports whether everything is allowed and recorded.
func (p *Plan) Learning() bool { return p.recorder != nil }

// LearnPath is the profile that learning writes, "" where this run does not learn.
func (p *Plan) LearnPath() string { return p.learnPath }

// Policy is the compiled policy.
func (p *Plan) Policy() *policy.Policy { return p.policy }

// Provider is the name of the chosen provider, "none" for direct calls.
func (p *Plan) Provider() string {
	if p.provider == nil {
		return "none"
	}
	return p.provider.Name()
}

// Seen counts what a learning run has recorded so far, by family.
func (p *Plan) Seen() map[string]int { return p.recorder.Seen() }

// LearnReport is the outcome of a learning run.
type LearnReport struct {
	Path    string
	Changed bool
	Result  learn.Result
}

// Summary is the one line that ends a learning run: what happened to which file.
func (r LearnReport) Summary() string {
	switch n := r.Result.Rules(); {
	case !r.Changed:
		return fmt.Sprintf("nothing new was learned; %s is unchanged", r.Path)
	case n == 1:
		return "learned 1 rule; check this file: " + r.Path
	default:
		return fmt.Sprintf("learned %d rules; check this file: %s", n, r.Path)
	}
}

// Learned writes what was recorded so far to its profile. Nothing new leaves the file untouched. The report is good for
// its table even where writing failed.
func (p *Plan) Learned() (LearnReport, error) {
	if p.recorder == nil {
		return LearnReport{}, errors.New("this run does not learn")
	}
	report := LearnReport{Path: p.learnPath, Result: p.recorder.Result()}
	changed, err := learn.Write(p.learnPath, report.Result, learn.WriteOptions{Env: p.spec.Env, Home: p.spec.Home, Cwd: p.spec.Cwd})
	if err != nil {
		return report, fmt.Errorf("what was learned could not be written: %w", err)
	}
	report.Changed = changed
	p.recorder.Written()
	remember(p.spec.Env, p.learnPath)
	return report, nil
}

// bootData is what a child of this plan is born with. made are the folders that its start made.
func (p *Plan) bootData(made map[string]bool) ([]byte, error) {
	snapshot, rt, switches := p.policy.Snapshot(), p.policy.Runtime(), p.policy.Switches()
	holds := p.provider.Holds()
	boot := wire.Boot{
		Mode: p.spec.Mode, Learn: p.Learning(), Py: switches.PySandbox, Resolve: !holds.Files,
		NoInet:  holds.Sockets && !p.policy.NetNeeded(),
		Signals: holds.Signals,
		Ignore:  snapshot.Ignore, Imports: snapshot.Imports, ImportsDeny: snapshot.ImportsDeny, Calls: snapshot.Calls,
		Eval: snapshot.Eval, Stdlib: rt.Stdlib, Site: rt.Site, Target: p.spec.TargetModules,
		Package: p.spec.Interpreter.Package, Extra: p.spec.Extra,
	}
	profiles := p.policy.EvalProfiles()
	if p.Learning() { // what a profile that is not there yet starts from
		profiles[policy.NewEvalProfile] = policy.EvalDefaults()
	}
	if len(profiles) > 0 {
		table, err := json.Marshal(profiles)
		if err != nil {
			return nil, fmt.Errorf("the guarded profiles: %w", err)
		}
		boot.Evals = table
	}
	for _, f := range snapshot.Files {
		flags := f.Flags
		if made[f.Path] {
			flags |= wire.FlagMade
		}
		bits := f.Bits
		if holds.Files && bits&wire.BitWrite != 0 {
			if _, absent := p.policy.Absent(f.Path, ""); absent {
				bits &^= wire.BitWrite // asked, and refused in words: the kernel refuses it without
			}
		}
		boot.Files = append(boot.Files, wire.File{Path: f.Path, Bits: bits, Flags: flags})
	}
	if p.Learning() {
		boot.Py = true // the hook is what learning sees by
	}
	return boot.Encode()
}

// For is the same plan for a child with other descriptors 1 and 2: policy, provider and recorder are shared.
func (p *Plan) For(native *transport.Native) *Plan {
	another := *p
	another.spec.Native = native
	return &another
}

// ProfilePath is the profile in force, "" where there is none yet.
func (p *Plan) ProfilePath() string { return p.spec.ProfilePath }
