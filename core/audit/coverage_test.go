package audit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// covered are the functions that the tables know, by every name.
func covered() map[string]bool {
	out := map[string]bool{}
	for _, c := range Calls {
		for _, n := range append([]string{c.Name}, c.Aliases...) {
			out[n] = true
			out[strings.Replace(n, "os.", "posix.", 1)] = true
			out[strings.Replace(n, "signal.", "_signal.", 1)] = true
		}
		for _, s := range c.Shim {
			out[s.Module+"."+s.Attr] = true
		}
	}
	for _, e := range FileEvents {
		out[strings.Replace(e.Event, "os.", "posix.", 1)] = true
	}
	for _, s := range FileShims {
		out[s.Module+"."+s.Attr] = true
	}
	return out
}

// A CPython that adds a function to one of these modules fails here until someone has looked at it: it goes into a
// table, or into testdata/reviewed.txt with the others that need no rule.
func TestEveryFunctionWasLookedAt(t *testing.T) {
	text, err := os.ReadFile("testdata/reviewed.txt")
	require.NoError(t, err)
	known := covered()
	reviewed := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		module, names, _ := strings.Cut(line, ":")
		for name := range strings.FieldsSeq(names) {
			full := strings.TrimSpace(module) + "." + name
			assert.False(t, known[full], "%s is in a table and in reviewed.txt", full)
			assert.False(t, reviewed[full], "%s stands twice", full)
			reviewed[full] = true
		}
	}
	for _, python := range interpreters() {
		out, err := exec.Command(python, "-I", "testdata/functions.py").Output()
		require.NoError(t, err)
		for name := range strings.FieldsSeq(string(out)) {
			assert.True(t, known[name] || reviewed[name], "%s of %s is in no table", name, filepath.Base(python))
		}
	}
}
