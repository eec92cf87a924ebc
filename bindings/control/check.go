package control

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/daemon"
	"github.com/pysandboxes/pysandboxes/core/interpreter"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/review"
	"github.com/pysandboxes/pysandboxes/providers"
)

// profileRequest is what CheckProfile, Explain and Diff take.
type profileRequest struct {
	host
	Profile  border.Text   `json:"profile"`
	Question []border.Text `json:"question"` // Explain alone
	Other    border.Text   `json:"other"`    // Diff alone: the profile that it is compared with
}

// place is a rule's position.
type place struct {
	File border.Text `json:"file"`
	Line int         `json:"line"`
}

func at(p profile.Position) place { return place{border.Text(p.File), p.Line} }

// checked is CheckProfile's answer.
type checked struct {
	Rules     int           `json:"rules"`
	Locked    bool          `json:"locked"`
	Provider  string        `json:"provider"`
	Findings  []finding     `json:"findings"`
	Risks     []graded      `json:"risks"`
	Protected []border.Text `json:"protected"`
}

type finding struct {
	place
	Grade   string      `json:"grade"`
	Kind    string      `json:"kind"`
	Rule    border.Text `json:"rule"`
	Message border.Text `json:"message"`
	Hint    border.Text `json:"hint"`
	Other   *place      `json:"other,omitempty"`
}

type graded struct {
	place
	Rule border.Text `json:"rule"`
	Risk string      `json:"risk"`
	Why  border.Text `json:"why"`
}

// CheckProfile loads and compiles a profile as a start would and reviews it. The request is JSON: profile, env, cwd, interpreter,
// package. The answer is JSON: rules (how many), locked, provider, findings (grade, kind, file, line, rule, message, hint, other), risks (rule,
// risk, why, file, line) and protected (paths that no sandbox may write).
func CheckProfile(request string) (string, error) {
	r, err := readProfileRequest(request)
	if err != nil {
		return "", err
	}
	loaded, err := r.compile(r.Profile)
	if err != nil {
		return "", err
	}
	answer := checked{Rules: len(loaded.Profile.Rules), Locked: loaded.Profile.Locked, Provider: loaded.kernel.Provider,
		Findings: loaded.shown(), Risks: []graded{}, Protected: texts(loaded.Policy.Protected())}
	for _, g := range review.Grants(loaded.Subject) {
		if !g.Deny {
			answer.Risks = append(answer.Risks, graded{at(g.Rule.Pos), border.Text(g.Shown()), g.Risk.String(), border.Text(g.Why)})
		}
	}
	return border.JSON(answer)
}

// shown are the findings as answers give them.
func (l *loaded) shown() []finding {
	out := []finding{}
	for _, f := range l.findings() {
		shown := finding{at(f.Pos), f.Grade.String(), f.Kind, border.Text(f.Line), border.Text(f.Message), border.Text(f.Hint), nil}
		if !f.Other.IsZero() {
			other := at(f.Other)
			shown.Other = &other
		}
		out = append(out, shown)
	}
	return out
}

func readProfileRequest(request string) (profileRequest, error) {
	var r profileRequest
	err := read(request, &r)
	if err == nil && r.Profile == "" {
		err = &border.Fault{Kind: border.KindConfig, Message: "no profile was named"}
	}
	return r, err
}

// loaded is a profile with all that is said about it.
type loaded struct {
	review.Subject
	warnings []profile.Warning
	kernel   review.Kernel
	gaps     []providers.Gap
}

// compile gives the policy as a program in this place would get it.
func (r profileRequest) compile(path border.Text) (*loaded, error) {
	in, err := r.python()
	if err != nil {
		return nil, err
	}
	prof, pol, warnings, err := r.load(path, in, nil)
	if err != nil {
		return nil, r.mistakes(path, in, err)
	}
	l := &loaded{Subject: review.Subject{Profile: prof, Policy: pol}, warnings: warnings}
	l.choose(in)
	return l, nil
}

// load reads and compiles a profile without some of its lines.
func (r profileRequest) load(path border.Text, in *interpreter.Interpreter, skip []profile.Position) (*profile.Profile, *policy.Policy, []profile.Warning, error) {
	prof, err := profile.Load(profile.Options{
		Path: string(path), Env: r.environ(), Platform: "linux", Home: r.home(), Cwd: string(r.Cwd), IgnoreOverridesLock: true, Skip: skip,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	pol, warnings, err := policy.Compile(prof, policy.Context{
		Runtime: in.RuntimeFor(allowsNet(prof)), Package: in.Package, Cwd: string(r.Cwd), Home: r.home(),
	})
	return prof, pol, warnings, err
}

// mostMistakes bounds a report: a file that is no profile at all is wrong in every line.
const mostMistakes = 20

// mistakes finds the mistakes behind the first one, so that a person mends them in one go: the line of each is left out
// and the rest is read again. They are told in the order of the lines.
func (r profileRequest) mistakes(path border.Text, in *interpreter.Interpreter, err error) error {
	var found []*profile.SyntaxError
	var skip []profile.Position
	last := ""
	for err != nil {
		var syntax *profile.SyntaxError
		if !errors.As(err, &syntax) || syntax.Pos.Line == 0 {
			last = err.Error()
			break
		}
		if len(found) == mostMistakes {
			last = "There are more mistakes; they are told when these are mended."
			break
		}
		found, skip = append(found, syntax), append(skip, syntax.Pos)
		_, _, _, err = r.load(path, in, skip)
	}
	slices.SortStableFunc(found, func(a, b *profile.SyntaxError) int {
		return cmp.Or(cmp.Compare(a.Pos.File, b.Pos.File), cmp.Compare(a.Pos.Line, b.Pos.Line))
	})
	fault := &border.Fault{Kind: border.KindConfig, File: path}
	var texts []string
	for _, f := range found {
		texts = append(texts, f.Error())
	}
	if len(found) > 0 {
		fault.File, fault.Line = border.Text(found[0].Pos.File), found[0].Pos.Line
	}
	if last != "" {
		texts = append(texts, last)
	}
	fault.Message = border.Text(strings.Join(texts, "\n"))
	return fault
}

// choose asks which provider a start would take here, and whether it would take this profile.
func (l *loaded) choose(in *interpreter.Interpreter) {
	provider, _, err := providers.Choose(l.Policy.Switches().OSSandbox)
	if err != nil {
		l.kernel.Problem = err.Error()
		return
	}
	holds := provider.Holds()
	l.kernel = review.Kernel{Provider: provider.Name(), Files: holds.Files, Exec: holds.Exec, Sockets: holds.Sockets, Network: holds.Network}
	l.gaps = provider.Gaps(l.Policy)
	if provider.Name() == "none" {
		return // it starts nothing, so that it has nothing to prepare
	}
	if err := daemon.Protected(l.Policy, provider); err != nil {
		l.kernel.Problem = err.Error()
		return
	}
	command, err := provider.Prepare(l.Policy, providers.Child{Path: in.Executable, Guard: in.Guard, Preload: in.Preload})
	if err != nil {
		l.kernel.Problem = err.Error()
		return
	}
	lacking, problem := providers.Lacking(command)
	l.gaps, l.kernel.Problem = append(l.gaps, lacking...), problem
}

// findings are the linter's, the compiler's warnings and what the provider says.
func (l *loaded) findings() []review.Finding {
	out := review.Lint(l.Subject)
	for _, w := range l.warnings {
		if strings.HasSuffix(w.Text, "does not exist") && slices.ContainsFunc(l.gaps, func(g providers.Gap) bool { return g.Rule == w.Pos }) {
			continue // the provider says what follows from it
		}
		out = append(out, review.Finding{Grade: review.Warning, Kind: review.KindLoad, Pos: w.Pos, Message: w.Text})
	}
	if l.kernel.Problem != "" {
		out = append(out, review.Finding{Grade: review.Error, Kind: review.KindStart, Pos: l.Policy.Switches().OSSandboxPos, Message: l.kernel.Problem})
	}
	for _, g := range l.gaps {
		grade := review.Note
		if !g.Rule.IsZero() {
			grade = review.Warning
		}
		out = append(out, review.Finding{Grade: grade, Kind: review.KindStart, Pos: g.Rule, Message: g.Text})
	}
	review.Sort(out)
	return out
}

// allowsNet reports whether a net rule may allow anything; look-ups by the C library then read its files.
func allowsNet(p *profile.Profile) bool {
	for _, rule := range p.Rules {
		if rule.Key == "net" && len(rule.Items) > 0 && strings.EqualFold(rule.Items[0], "ALLOW") {
			return true
		}
	}
	return false
}
