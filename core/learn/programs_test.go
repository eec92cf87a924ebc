package learn

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program makes a file that can be run.
func (p *project) program(path, text string) string {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(p.t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

func TestAProgramThatIsRunIsOneFile(t *testing.T) {
	p := newProject(t)
	p.env["PATH"] = "relative:" + p.outside + "/nothing:" + p.outside + "/bin"
	p.program(p.outside+"/bin/tool", "\x7fELF")
	p.program(p.outside+"/bin/perl", "\x7fELF")
	p.file(p.outside + "/bin/unrelated")
	require.NoError(t, os.Symlink("tool", p.outside+"/bin/link"))
	at := p.outside + "/bin/"
	for name, c := range map[string]struct {
		path string
		want []string
	}{
		"itself":                   {at + "tool", []string{at + "tool"}},
		"what a link leads to":     {at + "link", []string{at + "tool"}},
		"a script's interpreter":   {p.program(p.dir+"/a.sh", "#!"+at+"tool -e\nbody\n"), []string{"./a.sh", at + "tool"}},
		"env's program":            {p.program(p.dir+"/b", "#! "+p.program(p.outside+"/env", "")+" -S X=1 perl -w\n"), []string{"./b", at + "perl", p.outside + "/env"}},
		"env's program is missing": {p.program(p.dir+"/c", "#!"+p.outside+"/env nothing-of-that-name\n"), []string{"./c", p.outside + "/env"}},
		"env's program by a path":  {p.program(p.dir+"/d", "#!"+p.outside+"/env ../perl\n"), []string{"./d", p.outside + "/env"}},
		"no interpreter":           {p.program(p.dir+"/e", "#!\n"), []string{"./e"}},
		"one by a relative name":   {p.program(p.dir+"/f", "#!tool\n"), []string{"./f"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := p.learn(p.options(), did("exec", c.path, false))
			rules, notes := lines(r)
			var want []string
			for _, path := range c.want {
				want = append(want, "expose-ro="+path)
			}
			assert.ElementsMatch(t, want, rules)
			assert.Empty(t, notes)
			assert.Equal(t, Medium, r.Lines[0].Risk)
		})
	}
	r := p.learn(p.options(), did("exec", at+"tool", false))
	assert.Equal(t, programRun, r.Lines[0].Comment)

	o := p.options()
	o.Policy = p.compiled("expose-ro=" + at + "\n")
	rules, _ := lines(p.learn(o, did("exec", at+"tool", false)))
	assert.Empty(t, rules, "its folder is exposed already")
}

func TestTheTemporaryFolderThatHoldsTheProfile(t *testing.T) {
	p := newProject(t)
	p.dir = p.tmp + "/app"
	p.profile = p.dir + "/.py-sandboxes"
	p.file(p.dir + "/app.py")
	rules, notes := lines(p.learn(p.options(), wrote(p.tmp+"/tmp1"), did("os.remove", p.tmp+"/tmp1", true), did("os.mkdir", p.tmp+"/tmp2", true),
		wrote(p.tmp+"/tmp2/x"), did("os.rmdir", p.tmp+"/tmp2", true)))
	assert.Empty(t, rules, "a random name never comes again")
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "the temporary folder holds app/.py-sandboxes")
	assert.Contains(t, notes[0], "expose-rw=./tmp/ and env=TMPDIR=./tmp")
}

func TestThePromptsOwnDoingsAreNotLearned(t *testing.T) {
	p := newProject(t)
	history := wrote(p.file(p.home + "/.python_history"))
	home := Observation{Family: FamilyEnv, Op: "read", Subject: "HOME"}
	term := Observation{Family: FamilyEnv, Op: "read", Subject: "TMPDIR", Site: "<string>:38"}
	typed := read(p.file(p.dir + "/data/a"))
	typed.Site = "<stdin>:1"
	o := p.options()
	o.Prompt = true
	rules, _ := lines(p.learn(o, history, home, term, typed))
	assert.Equal(t, []string{"expose-ro=./data"}, rules)
	history.Site = "<python-input-3>:1"
	rules, _ = lines(p.learn(o, history))
	assert.Equal(t, []string{"expose-rw=~/.python_history"}, rules, "a line that asks for it is the person's")
	rules, _ = lines(p.learn(p.options(), home))
	assert.Equal(t, []string{"env=HOME=${HOME}"}, rules, "a program's")
}
