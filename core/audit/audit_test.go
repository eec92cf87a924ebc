package audit

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCallsAreComplete(t *testing.T) {
	seen, events := map[string]string{}, map[string]string{}
	names := 0
	for _, c := range Calls {
		for _, n := range append([]string{c.Name}, c.Aliases...) {
			assert.Empty(t, seen[n], "%s stands twice: %s and %s", n, seen[n], c.Name)
			seen[n] = c.Name
			names++
		}
		assert.Contains(t, Categories, c.Category, c.Name)
		assert.NotEmpty(t, c.Why, c.Name)
		assert.True(t, c.Event != "" || len(c.Shim) > 0 || c.Slot, "%s has neither event nor shim nor slot", c.Name)
		for _, n := range c.WithCalls {
			with, ok := Lookup(n)
			assert.True(t, ok && with.Category == c.Category, "%s: with %s", c.Name, n)
		}
		if c.Event != "" && !evalEvents[c.Event] {
			assert.Empty(t, events[c.Event], "the event %s belongs to two calls", c.Event)
			events[c.Event] = c.Name
		}
	}
	assert.GreaterOrEqual(t, names, 130)
	for _, cat := range Categories {
		assert.NotContains(t, seen, string(cat), "a category is no function")
	}
}

func TestSpecsAreSpelledRight(t *testing.T) {
	event := regexp.MustCompile(`^(open|ioctl|environment|database|[rwWsl]\d(d\d)?( [rwWsl]\d(d\d)?)*)$`)
	shim := regexp.MustCompile(`^[rlwopnbgi]\d(d=[a-z_]+)?$`)
	for _, e := range FileEvents {
		assert.Regexp(t, event, e.Spec, e.Event)
		assert.NotEmpty(t, e.Why, e.Event)
	}
	for _, s := range FileShims {
		assert.Regexp(t, shim, s.Spec, s.Attr)
		assert.NotEmpty(t, s.Why, s.Attr)
	}
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{
		"os.system": "os.system", "posix.system": "os.system", "threading.Thread.start": "_thread.start_new_thread", "eval": "builtins.eval",
	} {
		c, ok := Lookup(name)
		require.True(t, ok, name)
		assert.Equal(t, want, c.Name)
	}
	_, ok := Lookup("os.sytem")
	assert.False(t, ok)
	_, ok = Lookup("process-exec")
	assert.False(t, ok, "a category is no function")
	assert.Equal(t, "os.system", Nearest("os.sytem"))
	assert.Equal(t, "process-exec", Nearest("proces-exec"))
	assert.Empty(t, Nearest("entirely.different.thing"))
}

func TestRegistryIsCurrent(t *testing.T) {
	have, err := os.ReadFile("../../bindings/guard/registry.inc")
	require.NoError(t, err)
	assert.Equal(t, RegistryC(), string(have), "run go generate ./core/audit")
}

// facts.py holds the tables against every supported interpreter that is here.
func TestTablesAgreeWithPython(t *testing.T) {
	pythons := interpreters()
	if len(pythons) == 0 {
		t.Skip("no supported Python found")
	}
	for _, python := range pythons {
		t.Run(filepath.Base(python), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(python, "-I", "-W", "ignore", "testdata/facts.py")
			cmd.Stdin = bytes.NewReader(tables(t))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			require.NoError(t, err, stderr.String())
			assert.Empty(t, strings.TrimSpace(string(out)))
		})
	}
}

func tables(t *testing.T) []byte {
	var shims [][4]string
	events := map[string]int{}
	for _, c := range Calls {
		for _, s := range c.Shim {
			shims = append(shims, [4]string{s.Module, s.Attr, c.Since, c.Until})
		}
		if c.Event != "" {
			events[c.Event] = 0
		}
	}
	for _, s := range FileShims {
		shims = append(shims, [4]string{s.Module, s.Attr})
	}
	for _, e := range FileEvents {
		need := 0
		for _, d := range regexp.MustCompile(`\d`).FindAllString(e.Spec, -1) {
			need = max(need, int(d[0]-'0')+1)
		}
		if e.Spec == "open" {
			need = 3
		}
		if e.Spec == "ioctl" {
			need = 2
		}
		events[e.Event] = need
	}
	for _, e := range NetEvents {
		events[e.Event] = 1
	}
	data, err := json.Marshal(map[string]any{"shims": shims, "events": events})
	require.NoError(t, err)
	return data
}

// interpreters finds python3.11 to python3.13 on PATH and under pyenv.
func interpreters() []string {
	var out []string
	for _, v := range []string{"3.11", "3.12", "3.13"} {
		found, _ := filepath.Glob(filepath.Join(os.Getenv("HOME"), ".pyenv", "versions", v+"*", "bin", "python"+v))
		if p, err := exec.LookPath("python" + v); err == nil {
			found = append(found, p)
		}
		for _, p := range found {
			if exec.Command(p, "-c", "").Run() == nil {
				out = append(out, p)
				break
			}
		}
	}
	return out
}
