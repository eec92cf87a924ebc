package review

import (
	"regexp"
	"strings"
	"sync"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// includes finds those that lead to no file: they are passed over, and so are the rules that a person thinks are in force.
func (l *linter) includes() {
	for _, r := range l.Profile.Missing {
		l.findings = append(l.findings, Finding{Grade: Warning, Kind: KindNever, Pos: r.Pos, Line: strings.TrimSpace(r.Source),
			Message: "there is no such file, so nothing is included", Hint: braces(r.Source)})
	}
}

// unread finds `$NAME`, which is text like any other.
func (l *linter) unread() {
	for i := range l.Profile.Rules {
		r := &l.Profile.Rules[i]
		if hint := braces(r.Source); hint != "" && r.Origin >= profile.OriginFile {
			l.findings = append(l.findings, Finding{Grade: Warning, Kind: KindNever, Pos: r.Pos, Line: shownSource(r),
				Message: "a variable without braces is not read: it stands for these very letters", Hint: hint})
		}
	}
}

// bare matches `$NAME` outside of `${}`. In single quotes it is meant.
var bare = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[^\\$])\$([A-Za-z_][A-Za-z0-9_]*)`) })

func braces(source string) string {
	found := bare().FindStringSubmatch(source)
	if found == nil || strings.Contains(source, "'") {
		return ""
	}
	return "Write ${" + found[1] + "} for the variable."
}

// shownSource is the line as it stands, without the value where it may hold a secret.
func shownSource(r *profile.Rule) string {
	g := Grant{Rule: r, Value: r.Value}
	if r.Key == "env" && len(r.Items) > 0 {
		g.secret = holdsSecret(r.Items[0], r.Value)
	}
	return g.Shown()
}
