package review

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// Line is a rule in force.
type Line struct {
	Text string
	Pos  profile.Position
	Risk learn.Risk
	Why  string
}

// Section is a family of the effective policy.
type Section struct {
	Family  string
	Default string // what holds where no line speaks
	Lines   []Line
}

// Setting is a switch or a limit in force.
type Setting struct {
	Key, Value string
	Pos        profile.Position // zero: the default
}

// Effective is the policy in force, as a person reads it.
type Effective struct {
	Sections []Section
	Settings []Setting
	Environ  []string // names of the variables that the child would have now
	Runtime  policy.Runtime
	Devices  []string
}

// sections are the families of lists, in the order of the template.
var sections = []struct{ family, absent string }{
	{profile.FamilyEnv, "no variable is handed on"},
	{profile.FamilyFiles, "no file is exposed but the runtime set below"},
	{profile.FamilyNet, "no network"},
	{profile.FamilyImports, "no import"},
	{profile.FamilyCalls, "no sensitive call"},
}

// Describe lists what is in force: each grant under its family, the scalars that decide, and what is readable without a
// rule.
func Describe(s Subject) Effective {
	grants := Grants(s)
	out := Effective{Runtime: s.Policy.Runtime(), Devices: policy.Devices()}
	for _, sec := range sections {
		section := Section{Family: sec.family, Default: sec.absent}
		for i := range grants {
			if g := &grants[i]; profile.FamilyOf(g.Rule.Key) == sec.family {
				section.Lines = append(section.Lines, Line{g.Shown(), g.Rule.Pos, g.Risk, g.Why})
			}
		}
		out.Sections = append(out.Sections, section)
	}
	for _, v := range s.Policy.Environ() {
		name, _, _ := strings.Cut(v, "=")
		out.Environ = append(out.Environ, name)
	}
	out.Settings = settings(s, grants)
	return out
}

// settings are the scalars, each with the line that decides it, and the eval lists.
func settings(s Subject, grants []Grant) []Setting {
	sw, lim := s.Policy.Switches(), s.Policy.Limits()
	set := map[string]Setting{
		"py-sandbox":          {Value: boolean(sw.PySandbox)},
		"os-sandbox":          {Value: sw.OSSandbox},
		"remote-result-mode":  {Value: sw.ResultMode},
		"remote-result-guard": {Value: boolean(sw.ResultGuard)},
		"limit-result":        {Value: bytes(lim.Result)},
	}
	for i := range grants {
		r := grants[i].Rule
		switch family := profile.FamilyOf(r.Key); {
		case slices.ContainsFunc(sections, func(x struct{ family, absent string }) bool { return x.family == family }):
		case scalar(r.Key):
			if best, ok := s.Profile.Scalar(r.Key); ok {
				set[r.Key] = Setting{Value: best.Value, Pos: best.Pos}
			}
		default:
			set[r.Key+" at "+r.Pos.String()] = Setting{Key: r.Key, Value: r.Value, Pos: r.Pos}
		}
	}
	var out []Setting
	for key, v := range set {
		if v.Key == "" {
			v.Key = key
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Setting) int {
		return strings.Compare(a.Key+a.Pos.String(), b.Key+b.Pos.String())
	})
	return out
}

func boolean(v bool) string {
	if v {
		return "true"
	}
	return "false"
}

// bytes is a size in the largest unit that divides it.
func bytes(n int64) string {
	for _, u := range []struct {
		each int64
		name string
	}{{1 << 30, "GB"}, {1 << 20, "MB"}, {1 << 10, "KB"}} {
		if n >= u.each && n%u.each == 0 {
			return number(n/u.each) + u.name
		}
	}
	return number(n)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
