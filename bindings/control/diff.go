package control

import (
	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/review"
)

// changed is one change between two profiles.
type changed struct {
	Effect string      `json:"effect"`
	Key    string      `json:"key"`
	Old    border.Text `json:"old"` // "" where there is none
	New    border.Text `json:"new"`
	From   *place      `json:"from"`
	To     *place      `json:"to"`
	Risk   string      `json:"risk"`
	Why    border.Text `json:"why"`
}

// Diff compares two profiles by their rules. The request is CheckProfile's with other, the profile that comes after. The answer is JSON: opens (whether
// anything is allowed that was not) and changes (effect, key, old, new, from, to, risk, why), the ones that open most first.
func Diff(request string) (string, error) {
	r, err := readProfileRequest(request)
	if err != nil {
		return "", err
	}
	if r.Other == "" {
		return "", &border.Fault{Kind: border.KindConfig, Message: "no profile was named to compare with"}
	}
	before, err := r.compile(r.Profile)
	if err != nil {
		return "", err
	}
	after, err := r.compile(r.Other)
	if err != nil {
		return "", err
	}
	return border.JSON(compare(before, after))
}

// comparison is Diff's answer.
type comparison struct {
	Opens   bool      `json:"opens"`
	Changes []changed `json:"changes"`
}

func compare(before, after *loaded) comparison {
	changes := review.Diff(before.Subject, after.Subject)
	out := comparison{review.Opens(changes), []changed{}}
	where := func(p profile.Position) *place {
		if p.IsZero() {
			return nil
		}
		shown := at(p)
		return &shown
	}
	for _, c := range changes {
		out.Changes = append(out.Changes, changed{c.Effect.String(), c.Key, border.Text(c.Old), border.Text(c.New), where(c.OldPos), where(c.NewPos), c.Risk.String(), border.Text(c.Why)})
	}
	return out
}

// Keys gives the table of keys that a profile may hold, as a JSON list: name, family, grammar, meaning, risk, example.
func Keys() (string, error) {
	type key struct {
		Name    string `json:"name"`
		Family  string `json:"family"`
		Grammar string `json:"grammar"`
		Meaning string `json:"meaning"`
		Risk    string `json:"risk"`
		Example string `json:"example"`
	}
	var out []key
	for _, k := range append(append([]profile.Key{}, profile.Keys...), profile.ProviderKeys...) {
		out = append(out, key{k.Name, k.Family, k.Grammar, k.Meaning, k.Risk, k.Example})
	}
	return border.JSON(out)
}
