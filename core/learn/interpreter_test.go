package learn

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatTheInterpreterReadsOfTheEnvironment(t *testing.T) {
	set := map[string]string{"PYTHONPATH": "/lib", "PYTHONUTF8": "", "TZ": "UTC", "HOME": "/root", "PYTHONOTHER": "1"}
	all, few := []string{"PYTHONPATH", "TZ"}, []string{"TZ"}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, all},
		{[]string{"-u", "program.py", "-E"}, all},
		{[]string{"-c", "-I"}, all},
		{[]string{"-mE"}, all},
		{[]string{"-W", "-E", "-X", "-I", "-"}, all},
		{[]string{"-WE", "-Xdev", "--check-hash-based-pycs", "-I", "-m", "x"}, all},
		{[]string{"-E"}, few},
		{[]string{"-uI", "-c", "pass"}, few},
		{[]string{"-W", "error", "-X", "dev", "-BE", "program.py"}, few},
	} {
		var names []string
		for _, o := range Interpreter(c.args, set) {
			names = append(names, o.Subject)
		}
		assert.Equal(t, c.want, names, c.args)
	}
}

func TestAVariableThatTheInterpreterAndTheProgramRead(t *testing.T) {
	p := newProject(t)
	p.env["PYTHONPATH"], p.env["TZ"] = "/lib", "UTC"
	see := append(Interpreter(nil, p.env), Observation{Family: FamilyEnv, Op: "read", Subject: "TZ", Site: "app.py:1"})
	var got []string
	for _, l := range p.learn(p.options(), see...).Lines {
		line, _ := written(l)
		got = append(got, line)
	}
	assert.Equal(t, []string{"env=PYTHONPATH=${PYTHONPATH}  # chooses where modules come from; read by the interpreter itself", "env=TZ=${TZ}  # app.py:1"}, got)
	o := p.options()
	o.Prompt = true
	rules, _ := lines(p.learn(o, see...))
	assert.Equal(t, []string{"env=PYTHONPATH=${PYTHONPATH}", "env=TZ=${TZ}"}, rules, "a prompt's interpreter as well")
}
