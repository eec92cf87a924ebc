package control

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/bindings/border"
)

// python is an interpreter of the machine.
func python(t *testing.T) string {
	t.Helper()
	const path = "/usr/bin/python3"
	if _, err := os.Stat(path); err != nil {
		t.Skip(path + " is missing")
	}
	return path
}

// request builds a question about a profile against the machine's python. A second profile is compared with.
func request(t *testing.T, profileText, other string, question ...string) string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, ".py-sandboxes")
	require.NoError(t, os.WriteFile(path, []byte(profileText), 0o600))
	ask := map[string]any{
		"profile": path, "env": map[string]string{"HOME": folder, "XDG_CACHE_HOME": folder, "HOST": "value of the host"}, "cwd": folder,
		"interpreter": python(t), "package": folder, "question": question,
	}
	if other != "" {
		ask["other"] = path + ".other"
		require.NoError(t, os.WriteFile(path+".other", []byte(other), 0o600))
	}
	data, err := json.Marshal(ask)
	require.NoError(t, err)
	return string(data)
}

func TestExplainNamesTheRuleOrTheLineToAdd(t *testing.T) {
	const text = "python-import=json\nexpose-ro=/etc/hostname\nnet=ALLOW|tcp|127.0.0.1|80|OUT\n"
	for _, c := range []struct {
		question []string
		allow    bool
		line     int    // of the deciding rule
		change   string // the first line
	}{
		{[]string{"import", "json"}, true, 1, "python-import=DENY:json"},
		{[]string{"import socket"}, false, 0, "python-import=socket"},
		{[]string{"open /etc/hostname"}, true, 2, "ignore=/etc/hostname"},
		{[]string{"write", "/etc/hostname"}, false, 0, "expose-rw=/etc/hostname"},
		{[]string{"connect", "127.0.0.1:80"}, true, 3, "net=DENY|TCP|127.0.0.1|80|OUT"},
		{[]string{"connect 127.0.0.1:81"}, false, 0, "net=ALLOW|TCP|127.0.0.1|81|OUT"},
		{[]string{"env", "TOKEN"}, false, 0, "env=TOKEN=${TOKEN}"},
		{[]string{"eval"}, false, 0, "python-api=ALLOW:builtins.eval"},
	} {
		raw, err := Explain(request(t, text, "", c.question...))
		require.NoError(t, err, c.question)
		var got explained
		require.NoError(t, json.Unmarshal([]byte(raw), &got))
		assert.Equal(t, c.allow, got.Allow, "%v: %s", c.question, raw)
		if c.line > 0 {
			assert.Equal(t, c.line, got.Rule.Line, "%v", c.question)
		}
		require.NotEmpty(t, got.Change, "%v", c.question)
		assert.EqualValues(t, c.change, got.Change[0], "%v", c.question)
		assert.Len(t, got.Layers, 2)
	}
}

func TestExplainAloneIsThePolicyInForce(t *testing.T) {
	raw, err := Explain(request(t, "python-import=json\nenv=A=${HOST}\nlimit-cpu=3s\n", ""))
	require.NoError(t, err)
	var got effective
	require.NoError(t, json.Unmarshal([]byte(raw), &got))
	assert.EqualValues(t, "A", got.Environ[0])
	assert.NotEmpty(t, got.Runtime.Stdlib)
	assert.NotContains(t, raw, "value of the host", "values are the child's alone")
	assert.Contains(t, got.Settings, setting{"limit-cpu", "3s", &place{got.Profile, 3}})
}

func TestExplainRefusesWhatIsNoQuestion(t *testing.T) {
	_, err := Explain(request(t, "", "", "opne /x"))
	assert.ErrorContains(t, err, "Did you mean open?")
	_, err = Explain(`{"question":["open /x"]}`)
	assert.ErrorContains(t, err, "no profile was named")
}

func TestCheckProfileCountsAndLocates(t *testing.T) {
	raw, err := CheckProfile(request(t, "python-import=json\nexpose-ro=/no/such/place\nexpose-ro=.,/elsewhere\n", ""))
	require.NoError(t, err)
	var got checked
	require.NoError(t, json.Unmarshal([]byte(raw), &got))
	assert.Equal(t, 3, got.Rules)
	assert.Len(t, got.Risks, 3)
	kinds := map[string]string{}
	for _, f := range got.Findings {
		kinds[f.Kind+" "+f.Grade] += string(f.Message)
	}
	assert.Contains(t, kinds["load warning"]+kinds["start warning"], "/no/such/place does not exist")
	if got.Provider != "" {
		assert.Contains(t, kinds["start error"], "mount namespace", "a DEST is refused where no provider can hold it")
	}
	_, err = CheckProfile(request(t, "python-imprt=json\n", ""))
	fault := border.AsFault(err)
	assert.Equal(t, border.KindConfig, fault.Kind)
	assert.Equal(t, 1, fault.Line)
	assert.Contains(t, string(fault.Message), "\n    ^^^^^^^^^^^^")
}

func TestDiffSaysWhetherMoreIsAllowed(t *testing.T) {
	for _, c := range []struct {
		before, after string
		opens         bool
		effects       string
	}{
		{"python-import=json\n", "# other\npython-import=json # moved\n", false, ""},
		{"python-import=json\n", "python-import=json, csv\n", true, "wider"},
		{"python-import=json\n", "\n", false, "narrower"},
	} {
		raw, err := Diff(request(t, c.before, c.after))
		require.NoError(t, err)
		var got struct {
			Opens   bool
			Changes []changed
		}
		require.NoError(t, json.Unmarshal([]byte(raw), &got))
		assert.Equal(t, c.opens, got.Opens, raw)
		var effects []string
		for _, x := range got.Changes {
			effects = append(effects, x.Effect)
		}
		assert.Equal(t, c.effects, strings.Join(effects, " "))
	}
	_, err := Diff(request(t, "", ""))
	assert.ErrorContains(t, err, "no profile was named to compare with")
}

func TestKeysAreTheTable(t *testing.T) {
	raw, err := Keys()
	require.NoError(t, err)
	for _, want := range []string{"expose-ro", "net=ALLOW", "qemu.memory"} {
		assert.Contains(t, raw, want)
	}
}

func TestDoctorKnowsEveryProvider(t *testing.T) {
	data, err := json.Marshal(map[string]any{"env": map[string]string{"XDG_CACHE_HOME": t.TempDir()}, "cwd": "/", "interpreter": python(t), "package": "/nowhere"})
	require.NoError(t, err)
	raw, err := Doctor(string(data))
	require.NoError(t, err)
	var got struct {
		Providers   []struct{ Name string }
		Interpreter struct{ Version, Problem string }
		Features    []struct{ Name string }
	}
	require.NoError(t, json.Unmarshal([]byte(raw), &got))
	var names []string
	for _, p := range got.Providers {
		names = append(names, p.Name)
	}
	assert.Contains(t, names, "landlock")
	assert.Contains(t, names, "none")
	assert.NotEmpty(t, got.Features)
	assert.Contains(t, got.Interpreter.Problem, "/nowhere holds no guard")
	_, err = Doctor("{")
	assert.ErrorContains(t, err, "malformed")
}

func TestReportGivesEachRuleWithItsCommentAndWhatItOpens(t *testing.T) {
	const text = "python-import=json # app.py:1\nexpose-ro=/etc/hostname\nnet=DENY|*|@private|*|*\nenv=A=${HOST}\nlimit-cpu=3s\n"
	raw, err := Report(request(t, text, "python-import=json\n"))
	require.NoError(t, err)
	var got reported
	require.NoError(t, json.Unmarshal([]byte(raw), &got))
	rules := map[string]reportedGrant{}
	for _, f := range got.Families {
		for _, r := range f.Rules {
			rules[string(r.Rule)] = r
		}
	}
	require.Len(t, rules, 4, raw)
	assert.EqualValues(t, "app.py:1", rules["python-import=json"].Comment)
	assert.Len(t, rules["expose-ro=/etc/hostname"].Opens, 1)
	assert.True(t, rules["net=DENY|*|@private|*|*"].Deny)
	assert.EqualValues(t, "set here", rules["env=A=${HOST}"].Opens[0])
	assert.NotContains(t, raw, "value of the host")
	require.NotNil(t, got.Compared)
	assert.True(t, got.Compared.Opens)

	raw, err = Report(request(t, text, ""))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(raw), &got))
	_, err = Report(request(t, "nonsense\n", ""))
	assert.ErrorContains(t, err, "not a rule")
}
