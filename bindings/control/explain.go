package control

import (
	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/review"
)

// explained is Explain's answer to one question.
type explained struct {
	Question border.Text   `json:"question"`
	Allow    bool          `json:"allow"`
	Family   string        `json:"family"`
	Op       string        `json:"op"`
	Subject  border.Text   `json:"subject"`
	Category string        `json:"category"`
	Rule     *place        `json:"rule"` // null where no rule decided
	Line     border.Text   `json:"line"` // that rule
	Change   []border.Text `json:"change"`
	Advice   border.Text   `json:"advice"`
	Layers   []layer       `json:"layers"`
	Note     border.Text   `json:"note"`
	Text     border.Text   `json:"text"` // the refusal as a program would read it
}

type layer struct {
	Name  string      `json:"name"`
	State string      `json:"state"`
	Text  border.Text `json:"text"`
}

// effective is Explain's answer where nothing is asked.
type effective struct {
	Profile  border.Text   `json:"profile"`
	Locked   bool          `json:"locked"`
	Provider string        `json:"provider"`
	Problem  border.Text   `json:"problem"` // why no provider would take the profile
	Settings []setting     `json:"settings"`
	Families []family      `json:"families"`
	Environ  []border.Text `json:"environ"` // names of the variables that the child would have now
	Runtime  runtimeSet    `json:"runtime"` // readable without a rule
}

type setting struct {
	Key   string      `json:"key"`
	Value border.Text `json:"value"`
	Rule  *place      `json:"rule"` // null: the default
}

type family struct {
	Name    string   `json:"name"`
	Default string   `json:"default"`
	Rules   []graded `json:"rules"`
}

type runtimeSet struct {
	Read        []border.Text `json:"read"`
	Stdlib      []border.Text `json:"stdlib"`
	Site        []border.Text `json:"site"`
	Executables []border.Text `json:"executables"`
	Libraries   []border.Text `json:"libraries"`
	Devices     []border.Text `json:"devices"`
}

// Explain says which rule decides a question, per layer, and what would change it. The request is CheckProfile's with question, such as
// ["connect example.com:443"], as one text or as words. The answer is JSON: question, allow, family, op, subject, category, rule, line, change, advice,
// layers, note, text. Without a question it is the policy in force: profile, locked, provider, problem, settings, families, environ, runtime.
func Explain(request string) (string, error) {
	r, err := readProfileRequest(request)
	if err != nil {
		return "", err
	}
	l, err := r.compile(r.Profile)
	if err != nil {
		return "", err
	}
	if len(r.Question) == 0 {
		return border.JSON(l.effective())
	}
	v, err := review.Explain(l.Subject, l.kernel, plain(r.Question))
	if err != nil {
		return "", err
	}
	answer := explained{
		Question: border.Text(v.Question), Allow: v.Allow, Family: v.Family, Op: v.Op, Subject: border.Text(v.Subject), Category: v.Category,
		Line: border.Text(v.RuleText), Change: texts(v.Change), Advice: border.Text(v.Advice), Note: border.Text(v.Note), Text: border.Text(v.Message()),
	}
	if !v.Rule.IsZero() {
		rule := at(v.Rule)
		answer.Rule = &rule
	}
	for _, x := range v.Layers {
		answer.Layers = append(answer.Layers, layer{x.Name, x.State, border.Text(x.Text)})
	}
	return border.JSON(answer)
}

func (l *loaded) effective() effective {
	e := review.Describe(l.Subject)
	out := effective{Profile: border.Text(l.Profile.Path), Locked: l.Profile.Locked, Provider: l.kernel.Provider, Problem: border.Text(l.kernel.Problem),
		Settings: []setting{}, Families: []family{}, Environ: texts(e.Environ), Runtime: runtimeOf(e.Runtime, e.Devices)}
	for _, s := range e.Settings {
		shown := setting{s.Key, border.Text(s.Value), nil}
		if !s.Pos.IsZero() {
			rule := at(s.Pos)
			shown.Rule = &rule
		}
		out.Settings = append(out.Settings, shown)
	}
	for _, s := range e.Sections {
		f := family{s.Family, s.Default, []graded{}}
		for _, line := range s.Lines {
			f.Rules = append(f.Rules, graded{at(line.Pos), border.Text(line.Text), line.Risk.String(), border.Text(line.Why)})
		}
		out.Families = append(out.Families, f)
	}
	return out
}

func runtimeOf(r policy.Runtime, devices []string) runtimeSet {
	return runtimeSet{texts(r.Read), texts(r.Stdlib), texts(r.Site), texts(r.Executables), texts(r.Libs), texts(devices)}
}
