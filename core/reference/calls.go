package reference

import (
	"fmt"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/audit"
	"github.com/pysandboxes/pysandboxes/core/learn"
)

// opens says in a line what a category holds.
var opens = map[audit.Category]string{
	audit.ProcessExec:     "starts a program or a copy of this one",
	audit.ProcessControl:  "signals, priorities and limits of processes",
	audit.Privileges:      "identities, namespaces, the root folder",
	audit.Threads:         "starts a thread",
	audit.Native:          "runs machine code or touches raw memory",
	audit.Introspection:   "frames, the heap, hooks of the interpreter",
	audit.DynamicCode:     "turns text into code",
	audit.Deserialization: "builds the objects that data names",
}

// Calls is docs/reference/calls.md.
func Calls() string {
	var b strings.Builder
	b.WriteString("# Reference: sensitive calls\n\n" + made +
		"What `python-api=ALLOW:` and `DENY:` can name: a category, a function of these tables, or `*`. A rule for a function beats one for\n" +
		"its category, a rule for a category beats `*`, and within a level DENY wins. A function that some Python lacks may stand in a\n" +
		"profile all the same.\n\n| category | what it opens | risk of a grant | functions |\n| --- | --- | --- | --- |\n")
	for _, c := range audit.Categories {
		risk, _ := learn.GradeCategory(c)
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %d |\n", c, c, opens[c], risk, len(of(c)))
	}
	for _, c := range audit.Categories {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| function | also as | seen by | Python | why |\n| --- | --- | --- | --- | --- |\n", c, title(opens[c]))
		for _, f := range of(c) {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Name, codes(f.Aliases), seen(f), versions(f), cell(f.Why))
		}
	}
	return b.String()
}

func of(c audit.Category) []audit.Call {
	var out []audit.Call
	for _, f := range audit.Calls {
		if f.Category == c {
			out = append(out, f)
		}
	}
	return out
}

func codes(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, "`"+n+"`")
	}
	return strings.Join(out, ", ")
}

// seen says by what the guard notices the call.
func seen(f audit.Call) string {
	var out []string
	if f.Event != "" {
		out = append(out, "event `"+f.Event+"`")
	}
	if len(f.Shim) > 0 {
		out = append(out, "shim")
	}
	if f.Slot {
		out = append(out, "C type")
	}
	return strings.Join(out, ", ")
}

func versions(f audit.Call) string {
	switch {
	case f.Since != "" && f.Until != "":
		return f.Since + " to " + f.Until
	case f.Since != "":
		return f.Since + " and newer"
	case f.Until != "":
		return "up to " + f.Until
	}
	return "all"
}
