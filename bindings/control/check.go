package control

import (
	"strings"

	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// profileRequest is what CheckProfile and Explain take.
type profileRequest struct {
	host
	Profile  border.Text   `json:"profile"`
	Question []border.Text `json:"question"` // Explain alone
}

// checked is CheckProfile's answer.
type checked struct {
	Rules     int           `json:"rules"`
	Locked    bool          `json:"locked"`
	Warnings  []warning     `json:"warnings"`
	Protected []border.Text `json:"protected"`
}

type warning struct {
	File    border.Text `json:"file"`
	Line    int         `json:"line"`
	Message border.Text `json:"message"`
}

// CheckProfile loads and compiles a profile as a start would. The request is JSON: profile, env, cwd, interpreter, package. The answer
// is JSON: rules (how many), locked, warnings (file, line, message), protected (paths that no sandbox may write).
func CheckProfile(request string) (string, error) {
	r, err := readProfileRequest(request)
	if err != nil {
		return "", err
	}
	prof, pol, warnings, err := r.compile()
	if err != nil {
		return "", err
	}
	if err := pol.CheckProtected(); err != nil {
		return "", &border.Fault{Kind: border.KindConfig, Message: border.Text(err.Error()), File: r.Profile}
	}
	answer := checked{Rules: len(prof.Rules), Locked: prof.Locked, Warnings: []warning{}, Protected: texts(pol.Protected())}
	for _, w := range warnings {
		answer.Warnings = append(answer.Warnings, warning{border.Text(w.Pos.File), w.Pos.Line, border.Text(w.Text)})
	}
	return border.JSON(answer)
}

func readProfileRequest(request string) (profileRequest, error) {
	var r profileRequest
	err := read(request, &r)
	if err == nil && r.Profile == "" {
		err = &border.Fault{Kind: border.KindConfig, Message: "no profile was named"}
	}
	return r, err
}

// compile gives the policy as a program in this place would get it.
func (r profileRequest) compile() (*profile.Profile, *policy.Policy, []profile.Warning, error) {
	prof, err := profile.Load(profile.Options{
		Path: string(r.Profile), Env: r.environ(), Platform: "linux", Home: r.home(), Cwd: string(r.Cwd), IgnoreOverridesLock: true,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	in, err := r.python()
	if err != nil {
		return nil, nil, nil, err
	}
	pol, warnings, err := policy.Compile(prof, policy.Context{
		Runtime: in.RuntimeFor(allowsNet(prof)), Package: in.Package, Cwd: string(r.Cwd), Home: r.home(),
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return prof, pol, append(prof.Warnings, warnings...), nil
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
