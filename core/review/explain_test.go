package review

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

var landlock = Kernel{Provider: "landlock", Files: true, Exec: true, Sockets: true}

func TestExplain(t *testing.T) {
	profile := []string{"expose-ro=./data", "expose-rw=./out", "ignore=*.key", "net=ALLOW|TCP|api.example.com|443|OUT", "net=ALLOW|TCP|*|8443|OUT",
		"net=DENY|*|@metadata|*|*", "python-import=json", "python-api=ALLOW:threads, DENY:os.system", "env=LANG=${LANG}", "net=ALLOW|UDP|10.0.0.1|53|OUT",
		"net=ALLOW|TCP|*.example.net|22|OUT", "net=DENY|*|*.not.example.net|*|*"}
	for _, c := range []struct {
		question string
		allow    bool
		line     int    // of the deciding rule, 0 none
		change   string // all lines
		kernel   string // state of the kernel's layer
	}{
		{"open ./data/a b.txt", true, 1, `ignore={dir}/data/a b.txt`, Allows},
		{"open data/x.key", false, 3, "ignore=*.key", Refuses},
		{"read /etc/passwd", false, 0, "expose-ro=/etc/passwd", Refuses},
		{"write ./data/x", false, 0, "expose-rw=./data/x", Refuses},
		{"write ./out/x", true, 2, "ignore={dir}/out/x", Allows},
		{"list ./data", true, 1, "ignore={dir}/data", Allows},
		{"stat /etc/hosts", false, 0, "expose-ro=/etc/hosts", Blind},
		{"open /usr/lib/python3.11/os.py", true, 0, "", Allows},
		{"OPEN ~/x", false, 0, "expose-ro=./home/x", Refuses},
		{"connect api.example.com:443", true, 4, "net=DENY|TCP|192.0.2.1|443|OUT", Blind},
		{"connect api.example.com:80", false, 0, "net=ALLOW|TCP|api.example.com|80|OUT net=ALLOW|TCP|192.0.2.1|80|OUT", Blind},
		{"connect unknown.example.org:8443", true, 5, "net=DENY|TCP|unknown.example.org|8443|OUT", Blind},
		{"connect unknown.example.org:1", false, 0, "net=ALLOW|TCP|unknown.example.org|1|OUT", Blind},
		{"connect 169.254.169.254:80", false, 6, "net=DENY|*|@metadata|*|*", Blind},
		{"connect [::1]:80", false, 0, "net=ALLOW|TCP|::1|80|OUT net=ALLOW|TCP|@loopback|80|OUT", Blind},
		{"udp 10.0.0.1:53", true, 10, "net=DENY|UDP|10.0.0.1|53|OUT", Blind},
		{"bind 127.0.0.1:80", false, 0, "net=ALLOW|TCP|127.0.0.1|80|IN net=ALLOW|TCP|@loopback|80|IN", Blind},
		{"resolve api.example.com", true, 4, "", Blind},
		{"unix /run/x.sock", false, 0, "expose-rw=/run/x.sock", Blind},
		{"import json.tool", true, 7, "python-import=DENY:json.tool", Blind},
		{"import xml", false, 0, "python-import=xml", Blind},
		{"call _thread.start_new_thread", true, 8, "python-api=DENY:_thread.start_new_thread", Blind},
		{"call os.system", false, 8, "python-api=ALLOW:threads, DENY:os.system", Refuses},
		{"call ctypes.CDLL", false, 0, "python-api=ALLOW:ctypes.CDLL python-api=ALLOW:native", Blind},
		{"env LANG", true, 9, "unenv=LANG", Allows},
		{"env HOME", false, 0, "env=HOME=${HOME}", Refuses},
		{"connect 0300.0.02.1:1", false, 0, "net=ALLOW|TCP|api.example.com|1|OUT net=ALLOW|TCP|192.0.2.1|1|OUT", Blind},
		{"connect deep.down.example.net:22", true, 11, "net=DENY|TCP|deep.down.example.net|22|OUT", Blind},
		{"connect deep.down.example.net:23", false, 0, "net=ALLOW|TCP|deep.down.example.net|23|OUT", Blind},
		{"connect example.net:22", false, 0, "net=ALLOW|TCP|example.net|22|OUT", Blind},
		{"connect x.not.example.net:22", false, 12, "net=DENY|*|*.not.example.net|*|*", Blind},
		{"resolve a.example.net", true, 11, "", Blind},
		{"resolve x.not.example.net", false, 12, "net=DENY|*|*.not.example.net|*|*", Blind},
		{"udp 10.1:53", true, 10, "net=DENY|UDP|10.0.0.1|53|OUT", Blind}, // inet_aton's spellings
		{"udp 0x0a000001:53", true, 10, "net=DENY|UDP|10.0.0.1|53|OUT", Blind},
		{"udp 167772161:53", true, 10, "net=DENY|UDP|10.0.0.1|53|OUT", Blind},
		{"udp 10.2:53", false, 0, "net=ALLOW|UDP|10.0.0.2|53|OUT net=ALLOW|UDP|@private|53|OUT", Blind},
		{"open /proc/self/status", false, 0, "expose-ro=/proc/self/status", Refuses},
		{"open /proc/4711/status", false, 0, "expose-ro=/proc/self/status", Refuses},
		{"write /proc/4711/comm", false, 0, "expose-rw=/proc/self/comm", Refuses},
		{"open /proc/1/status", false, 0, "expose-ro=/proc/1/status", Refuses},
		{"open /proc/4711x", false, 0, "expose-ro=/proc/4711x", Refuses},
		{"call len", true, 0, "", Blind},
		{"eval", false, 0, "python-api=ALLOW:builtins.eval python-api=ALLOW:dynamic-code", Blind},
	} {
		p := newPlace(t)
		s := p.subject(t, profile...)
		for _, words := range [][]string{{c.question}, strings.Split(c.question, " ")} {
			v, err := Explain(s, landlock, words)
			require.NoError(t, err, c.question)
			assert.Equal(t, c.allow, v.Allow, c.question)
			assert.Equal(t, c.line, v.Rule.Line, c.question)
			assert.Equal(t, c.change, p.plain(strings.Join(v.Change, " ")), c.question)
			assert.Equal(t, c.kernel, v.Layers[1].State, "%s: %s", c.question, v.Layers[1].Text)
			assert.NotEmpty(t, v.Advice, c.question)
			assert.Equal(t, v.Allow, v.Layers[0].State == Allows, c.question)
		}
	}
}

// What is said to change a verdict changes it.
func TestTheChangeThatIsNamedIsEnough(t *testing.T) {
	profile := []string{"expose-ro=./data", "net=ALLOW|TCP|192.0.2.1|443|OUT", "python-import=json", "python-api=ALLOW:threads", "env=LANG=${LANG}", "python-api=ALLOW:builtins.eval"}
	for _, question := range []string{"open ./data/a", "open /etc/passwd", "write ./data/x", "connect 192.0.2.1:443", "connect 192.0.2.1:80", "udp 192.0.2.9:53", "bind 127.0.0.1:80",
		"import json", "import xml.dom", "call _thread.start_new_thread", "call os.fork", "env LANG", "env HOME", "eval", "exec"} {
		p := newPlace(t)
		before, err := Explain(p.subject(t, profile...), landlock, []string{question})
		require.NoError(t, err)
		require.NotEmpty(t, before.Change, question)
		after, err := Explain(p.subject(t, append(profile, before.Change[0])...), landlock, []string{question})
		require.NoError(t, err)
		assert.NotEqual(t, before.Allow, after.Allow, "%s with %s", question, before.Change[0])
	}
}

func TestWhatIsNoQuestion(t *testing.T) {
	s := newPlace(t).subject(t)
	for question, want := range map[string]string{
		"opne /x":                   "Did you mean open?",
		"":                          `"" is no question`,
		"open":                      "needs PATH",
		"eval 1":                    "stands alone",
		"connect 127.0.0.1":         "not HOST:PORT",
		"connect 127.0.0.1:9999999": "not a port",
		"call os.sistem":            "Did you mean os.system?",
		"call process-exec":         "is a category",
	} {
		_, err := Explain(s, landlock, []string{question})
		assert.ErrorContains(t, err, want, question)
	}
	for _, q := range Questions {
		_, err := Explain(s, landlock, []string{q.Example})
		assert.NoError(t, err, q.Example)
		assert.True(t, strings.HasPrefix(q.Example, q.Word))
	}
}

func TestLayersThatAreMissing(t *testing.T) {
	p := newPlace(t)
	s := p.subject(t, "py-sandbox=false")
	v, err := Explain(s, Kernel{Provider: "subprocess"}, []string{"open /etc/passwd"})
	require.NoError(t, err)
	assert.Equal(t, Blind, v.Layers[0].State)
	assert.Equal(t, Blind, v.Layers[1].State)
	v, err = Explain(s, Kernel{Problem: "no Landlock"}, []string{"call os.system"})
	require.NoError(t, err)
	assert.Contains(t, v.Layers[1].Text, "no Landlock")
	v, err = Explain(p.subject(t), landlock, []string{"connect 192.0.2.1:80"})
	require.NoError(t, err)
	assert.Equal(t, Refuses, v.Layers[1].State, "no socket can be made")
	v, err = Explain(p.subject(t, "expose-ro=./data", "ignore=x", "ignore-best-effort=true"), landlock, []string{"open ./data/x"})
	require.NoError(t, err)
	assert.Equal(t, Blind, v.Layers[1].State)
	v, err = Explain(p.subject(t, "python-api=ALLOW:os.fork"), landlock, []string{"call os.system"})
	require.NoError(t, err)
	assert.Equal(t, Blind, v.Layers[1].State)
}

func TestAVariableThatIsNotSetIsNotSaidToBeThere(t *testing.T) {
	p := newPlace(t)
	s := p.subject(t, "env=A=${NOT_SET}", "env=B=${NOT_SET:-}", "env=LANG=${LANG}", "env=C_*=${C_*}")
	for name, there := range map[string]bool{"A": false, "B": true, "LANG": true, "C_1": false} {
		v, err := Explain(s, landlock, []string{"env " + name})
		require.NoError(t, err)
		require.True(t, v.Allow, name)
		assert.Equal(t, there, v.Note == "", "%s: %s", name, v.Note)
		assert.Equal(t, there, v.Layers[0].Text == "", name)
	}
}

func TestSecretsOfTheProfileAreNotExplained(t *testing.T) {
	v, err := Explain(newPlace(t).subject(t, "env=API_KEY=abcdefgh1234"), landlock, []string{"env API_KEY"})
	require.NoError(t, err)
	assert.True(t, v.Allow)
	assert.Equal(t, "env=API_KEY=…", v.RuleText)
	assert.NotContains(t, v.Message(), "abcdefgh")
}

func TestDescribe(t *testing.T) {
	e := Describe(newPlace(t).subject(t, "env=LANG=${LANG}", "python-import=json, DENY:xml", "limit-memory=1GB", "eval-syntax=arith", "port=9"))
	assert.Equal(t, []string{"LANG"}, e.Environ)
	assert.Equal(t, []string{"/usr/lib/python3.11"}, e.Runtime.Stdlib)
	assert.Contains(t, e.Devices, "/dev/null")
	var lines []string
	for _, s := range e.Sections {
		for _, l := range s.Lines {
			lines = append(lines, l.Text)
		}
	}
	assert.Equal(t, []string{"env=LANG=${LANG}", "python-import=json", "python-import=DENY:xml"}, lines)
	var settings []string
	for _, s := range e.Settings {
		settings = append(settings, s.Key+"="+s.Value)
	}
	assert.Equal(t, []string{"eval-syntax=arith", "limit-memory=1GB", "limit-result=256MB", "os-sandbox=auto", "py-sandbox=true", "remote-result-guard=true", "remote-result-mode=data-only"}, settings)
}
