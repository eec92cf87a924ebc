package control

import (
	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/review"
)

// reported is Report's answer: the policy in force, as Explain alone gives it, with more said of each rule.
type reported struct {
	Profile  border.Text      `json:"profile"`
	Locked   bool             `json:"locked"`
	Provider string           `json:"provider"`
	Problem  border.Text      `json:"problem"`
	Settings []setting        `json:"settings"`
	Families []reportedFamily `json:"families"`
	Environ  []border.Text    `json:"environ"`
	Runtime  runtimeSet       `json:"runtime"`
	Findings []finding        `json:"findings"`
	Compared *comparison      `json:"compared"` // null where no other profile was named
}

type reportedFamily struct {
	Name    string          `json:"name"`
	Default string          `json:"default"`
	Rules   []reportedGrant `json:"rules"`
}

type reportedGrant struct {
	graded
	Deny    bool          `json:"deny"`
	Comment border.Text   `json:"comment"` // of the line
	Opens   []border.Text `json:"opens"`   // on this machine, a sentence each
}

// Report gives all that a person needs to judge a profile. The request is CheckProfile's; with other, the profile that held before. The answer is
// JSON: what Explain alone gives, with deny, comment and opens (on this machine, a sentence each) beside each rule; findings (as CheckProfile gives
// them) and compared (as Diff gives it, or null). Names and sizes of files are read, no contents.
func Report(request string) (string, error) {
	r, err := readProfileRequest(request)
	if err != nil {
		return "", err
	}
	l, err := r.compile(r.Profile)
	if err != nil {
		return "", err
	}
	e := l.effective()
	answer := reported{Profile: e.Profile, Locked: e.Locked, Provider: e.Provider, Problem: e.Problem, Settings: e.Settings,
		Environ: e.Environ, Runtime: e.Runtime, Findings: l.shown()}
	for _, f := range e.Families {
		answer.Families = append(answer.Families, reportedFamily{f.Name, f.Default, []reportedGrant{}})
	}
	here := review.NewHere(l.Subject)
	grants := review.Grants(l.Subject)
	for i := range grants {
		g := &grants[i]
		for j := range answer.Families {
			if f := &answer.Families[j]; f.Name == profile.FamilyOf(g.Rule.Key) {
				f.Rules = append(f.Rules, reportedGrant{
					graded{at(g.Rule.Pos), border.Text(g.Shown()), g.Risk.String(), border.Text(g.Why)}, g.Deny, border.Text(g.Rule.Comment), texts(here.Opens(g)),
				})
			}
		}
	}
	if r.Other != "" {
		before, err := r.compile(r.Other)
		if err != nil {
			return "", err
		}
		compared := compare(before, l)
		answer.Compared = &compared
	}
	return border.JSON(answer)
}
