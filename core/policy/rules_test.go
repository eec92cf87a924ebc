package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/audit"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

func TestEnviron(t *testing.T) {
	host := map[string]string{"A_KEY": "1", "B_KEY": "2", "AA_KEY": "3", "HOME": "/h", "LONG": "l"}
	for name, c := range map[string]struct {
		rules []string
		want  []string
	}{
		"empty":                    {nil, nil},
		"value":                    {[]string{"env=X=1", "env=Y="}, []string{"X=1", "Y="}},
		"host":                     {[]string{"env=HOME=${HOME}", "env=GONE=${GONE}", "env=D=${GONE:-d}"}, []string{"D=d", "HOME=/h"}},
		"pattern":                  {[]string{"env=*_KEY=${*_KEY}"}, []string{"AA_KEY=3", "A_KEY=1", "B_KEY=2"}},
		"renamed":                  {[]string{"env=NEW_*=${*_KEY}"}, []string{"NEW_A=1", "NEW_AA=3", "NEW_B=2"}},
		"exact beats pattern":      {[]string{"env=A_KEY=mine", "env=*_KEY=${*_KEY}"}, []string{"AA_KEY=3", "A_KEY=mine", "B_KEY=2"}},
		"longer beats shorter":     {[]string{"env=N*=${A*_KEY}", "env=NA*=${B*_KEY}", "env=N_*=${LON*}"}, []string{"N=1", "NA=2", "N_G=l"}},
		"unenv wins":               {[]string{"env=*_KEY=${*_KEY}", "unenv=A*"}, []string{"B_KEY=2"}},
		"the same value is no tie": {[]string{"env=X=1", "env=X=1"}, []string{"X=1"}},
	} {
		w := newWorld(t)
		w.env = host
		pol := w.policy(t, c.rules...)
		assert.Equal(t, c.want, pol.Environ(), name)
	}
	w := newWorld(t)
	_, err := w.try(t, "env=X=1", "env=X=2")
	assert.ErrorContains(t, err, ".py-sandboxes:2")
	assert.ErrorContains(t, err, ".py-sandboxes:1")
	w.overrides = []profile.Override{{Key: "env", Value: "X=3", Origin: profile.OriginCommandLine}}
	assert.Equal(t, []string{"X=3"}, w.policy(t, "env=X=1").Environ(), "the command line is stronger")
	w = newWorld(t)
	w.env, w.ctx.Learning = host, true
	assert.Equal(t, []string{"AA_KEY=3", "A_KEY=1", "B_KEY=2", "HOME=/h", "X=1"}, w.policy(t, "env=X=1", "unenv=LONG").Environ())
}

func TestEnvDecisions(t *testing.T) {
	pol := newWorld(t).policy(t, "env=HOME=${HOME}", "env=*_KEY=${*_KEY}", "unenv=BAD_*")
	for name, want := range map[string]bool{"HOME": true, "ANY_KEY": true, "BAD_KEY": false, "PATH": false} {
		assert.Equal(t, want, pol.Env(name).Allow, name)
	}
	assert.True(t, strings.HasSuffix(pol.Env("PATH").Message(), "\n    env=PATH=${PATH}"))
	assert.Empty(t, pol.Env("odd name").Add)
	_, err := newWorld(t).try(t, "unenv=*_A_*")
	assert.ErrorContains(t, err, "one *")
}

func TestImports(t *testing.T) {
	w := newWorld(t)
	w.ctx.TargetModules = []string{"app.main", "app"}
	for name, c := range map[string]struct {
		rules       []string
		yes, refuse []string
	}{
		"none":      {nil, []string{"app.main", "app", "__future__", "__main__", "pysandboxes.aio"}, []string{"json", "jsonx", ""}},
		"names":     {[]string{"python-import=json, xml.etree"}, []string{"json", "json.decoder", "xml.etree", "xml.etree.ElementTree", "xml"}, []string{"jsonx", "xml.dom", "os"}},
		"star":      {[]string{"python-import=*, DENY:ctypes"}, []string{"json", "a.b"}, []string{"ctypes", "ctypes.util"}},
		"deny wins": {[]string{"python-import=os.path", "python-import=deny:os"}, nil, []string{"os", "os.path"}},
		"deny all":  {[]string{"python-import=json, DENY:*"}, nil, []string{"json", "app"}},
		"empty":     {[]string{"python-import="}, nil, []string{"json"}},
		"unicode":   {[]string{"python-import=módulo, a-b"}, []string{"módulo.x", "a-b"}, []string{"modulo"}},
	} {
		pol := w.policy(t, c.rules...)
		for _, m := range c.yes {
			assert.True(t, pol.Import(m, "").Allow, "%s: %s", name, m)
		}
		for _, m := range c.refuse {
			assert.False(t, pol.Import(m, "").Allow, "%s: %s", name, m)
		}
	}
}

func TestImportMessages(t *testing.T) {
	w := newWorld(t)
	pol := w.policy(t, "python-import=helper")
	m := pol.Import("json", "").Message()
	assert.Contains(t, m, "importing json is refused")
	assert.True(t, strings.HasSuffix(m, "\n    python-import=json"), m)
	m = pol.Import("xml.dom", "").Message()
	assert.Contains(t, m, "(wider: python-import=xml)")
	assert.True(t, strings.HasSuffix(m, "\n    python-import=xml.dom"), m)
	d := pol.Import("helper", w.dir+"/its/folder/helper.py")
	assert.False(t, d.Allow)
	assert.True(t, strings.HasSuffix(d.Message(), "\nTo allow it, add (wider: expose-ro=./its/folder):\n    expose-ro=./its/folder/helper.py"), d.Message())
	assert.Contains(t, d.Message(), "importing helper is refused")
	d = pol.Import("pkg", w.dir+"/its/pkg/__init__.py")
	assert.True(t, strings.HasSuffix(d.Message(), " add (wider: expose-ro=./its):\n    python-import=pkg\n    expose-ro=./its/pkg"), d.Message())
	assert.Empty(t, pol.Import("a\nb", "").Add, "an odd name has no line")
	assert.NotContains(t, pol.Import("a\nb", "").Message(), "a\nb")
	for line, want := range map[string]string{
		"python-import=os.*":     "write os",
		"python-import=a b":      "not the name of a module",
		"python-import=ALOW:os":  "unknown action",
		"python-import=os..path": "not the name of a module",
		"python-import=./helper": "not the name of a module",
	} {
		_, err := w.try(t, line)
		assert.ErrorContains(t, err, want, line)
	}
}

func TestCalls(t *testing.T) {
	for name, c := range map[string]struct {
		rules []string
		yes   []string // names joined by >, outermost first
		no    []string
	}{
		"none":                       {nil, nil, []string{"os.system", "subprocess.run>subprocess.Popen", "builtins.eval", "no.such"}},
		"function":                   {[]string{"python-api=ALLOW:os.system"}, []string{"os.system", "posix.system"}, []string{"os.popen"}},
		"twin":                       {[]string{"python-api=allow:posix.system"}, []string{"os.system"}, nil},
		"category":                   {[]string{"python-api=ALLOW:process-exec"}, []string{"os.system", "subprocess.run"}, []string{"os.kill"}},
		"function beats category":    {[]string{"python-api=DENY:process-exec", "python-api=ALLOW:os.system"}, []string{"os.system"}, []string{"os.popen"}},
		"denied function":            {[]string{"python-api=ALLOW:process-exec, DENY:os.system"}, []string{"os.popen"}, []string{"os.system"}},
		"deny wins within a level":   {[]string{"python-api=DENY:os.system", "python-api=ALLOW:os.system", "python-api=ALLOW:native", "python-api=DENY:native"}, nil, []string{"os.system", "ctypes.CDLL"}},
		"star":                       {[]string{"python-api=ALLOW:*"}, []string{"os.system", "builtins.eval", "no.such"}, nil},
		"category beats star":        {[]string{"python-api=ALLOW:*", "python-api=DENY:native"}, []string{"os.system"}, []string{"ctypes.CDLL"}},
		"outer carries":              {[]string{"python-api=ALLOW:subprocess.run"}, []string{"subprocess.run>subprocess.Popen>_posixsubprocess.fork_exec"}, []string{"subprocess.Popen"}},
		"inner is enough":            {[]string{"python-api=ALLOW:subprocess.Popen"}, []string{"subprocess.run>subprocess.Popen"}, nil},
		"the outermost rule decides": {[]string{"python-api=ALLOW:subprocess.run, DENY:subprocess.Popen"}, []string{"subprocess.run>subprocess.Popen"}, []string{"subprocess.call>subprocess.Popen"}},
		"who starts may end":         {[]string{"python-api=ALLOW:subprocess.run"}, []string{"subprocess.Popen.kill"}, []string{"os.kill"}},
		"unless a rule says no":      {[]string{"python-api=ALLOW:subprocess.run, DENY:process-control"}, nil, []string{"subprocess.Popen.send_signal"}},
		"denied outer":               {[]string{"python-api=ALLOW:process-exec, DENY:subprocess.run"}, []string{"subprocess.Popen"}, []string{"subprocess.run>subprocess.Popen"}},
	} {
		pol := newWorld(t).policy(t, c.rules...)
		for _, n := range c.yes {
			d := pol.Call(strings.Split(n, ">"), "event")
			assert.True(t, d.Allow, "%s: %s", name, n)
			assert.False(t, d.Rule.IsZero(), "%s: %s", name, n)
		}
		for _, n := range c.no {
			assert.False(t, pol.Call(strings.Split(n, ">"), "event").Allow, "%s: %s", name, n)
		}
		assert.False(t, pol.Call(nil, "event").Allow)
	}
}

func TestCallMessages(t *testing.T) {
	pol := newWorld(t).policy(t, "python-api=DENY:native")
	d := pol.Call([]string{"os.system"}, "os.system")
	m := d.Message()
	assert.Equal(t, "process-exec", d.Category)
	assert.Contains(t, m, "calling os.system (process-exec) is refused")
	assert.Less(t, strings.Index(m, "ALLOW:process-exec"), strings.Index(m, "ALLOW:os.system"))
	assert.True(t, strings.HasSuffix(m, "\n    python-api=ALLOW:os.system"), m)
	assert.Contains(t, pol.Call([]string{"_thread.start_new_thread"}, "").Message(), "Threads are common")
	m = pol.Call([]string{"ctypes.CDLL"}, "").Message()
	assert.True(t, strings.HasSuffix(m, "\n    python-api=DENY:native"), m)
	assert.Contains(t, m, ".py-sandboxes:1")
	for line, want := range map[string]string{
		"python-api=os.system":        "Write python-api=ALLOW:os.system",
		"python-api=ALLOW:os.sytem":   "Did you mean os.system?",
		"python-api=ALLOW:procesexec": "Did you mean process-exec?",
		"python-api=ALLOW:":           "no supported Python",
		"python-api=PERMIT:os.system": "needs an action",
	} {
		_, err := newWorld(t).try(t, line)
		assert.ErrorContains(t, err, want, line)
	}
}

func TestGrants(t *testing.T) {
	for line, c := range map[string]struct{ exec, native bool }{
		"":                                          {false, false},
		"python-api=ALLOW:subprocess.run":           {true, false},
		"python-api=ALLOW:process-exec":             {true, false},
		"python-api=ALLOW:*":                        {true, true},
		"python-api=ALLOW:*, DENY:native":           {true, false},
		"python-api=ALLOW:ctypes.CDLL":              {false, true},
		"python-api=DENY:native, ALLOW:ctypes.cast": {false, true},
	} {
		pol := newWorld(t).policy(t, line)
		assert.Equal(t, c.exec, pol.GrantsExec(), line)
		assert.Equal(t, c.native, pol.Grants(audit.Native), line)
	}
}

func TestEval(t *testing.T) {
	pol := newWorld(t).policy(t)
	for _, kind := range []string{"eval", "exec", "compile"} {
		d := pol.Eval(kind)
		assert.False(t, d.Allow)
		assert.True(t, strings.HasSuffix(d.Message(), "\n    python-api=ALLOW:builtins."+kind), d.Message())
	}
	assert.False(t, pol.Eval("other").Allow)
	pol = newWorld(t).policy(t, "python-api=ALLOW:dynamic-code")
	assert.True(t, pol.Eval("eval").Allow)
	assert.Equal(t, "allow", pol.Snapshot().Eval)
	pol = newWorld(t).policy(t, "python-api=ALLOW:eval")
	assert.True(t, pol.Eval("eval").Allow)
	assert.False(t, pol.Eval("exec").Allow)
	assert.Equal(t, "refuse", pol.Snapshot().Eval)
	pol = newWorld(t).policy(t, "python-api=ALLOW:dynamic-code, DENY:builtins.exec")
	assert.False(t, pol.Eval("eval").Allow, "a string given to exec() looks like one given to eval()")
	assert.Equal(t, 1, pol.Eval("eval").Rule.Line)
	assert.True(t, pol.Eval("compile").Allow)
	pol = newWorld(t).policy(t, "eval-syntax=arith")
	assert.False(t, pol.Eval("eval").Allow)
	assert.Contains(t, pol.Eval("eval").Message(), "guard strings and trees")
	assert.Equal(t, "guard", pol.Snapshot().Eval)
	pol = newWorld(t).policy(t, "eval-syntax=arith", "python-api=DENY:builtins.eval")
	assert.Equal(t, "refuse", pol.Snapshot().Eval)
}

func TestScalars(t *testing.T) {
	w := newWorld(t)
	pol := w.policy(t)
	assert.Equal(t, Switches{PySandbox: true, OSSandbox: "auto", ResultMode: "data-only", ResultGuard: true}, pol.Switches())
	assert.Equal(t, Limits{Result: 256 << 20}, pol.Limits())
	pol = w.policy(t, "py-sandbox=false", "os-sandbox=landlock", "learn=x.profile", "remote-result-mode=objects", "remote-result-guard=false", "ignore-best-effort=true",
		"limit-memory=512MB", "limit-cpu=1.5s", "limit-processes=16", "limit-open-files=1_000", "call-timeout=250ms", "limit-result=1KB", "qemu.memory=1GB", "bwrap.dev-bind=/x")
	s := pol.Switches()
	assert.Equal(t, 2, s.OSSandboxPos.Line)
	s.OSSandboxPos = profile.Position{}
	assert.Equal(t, Switches{OSSandbox: "landlock", Learn: "x.profile", ResultMode: "objects", IgnoreBestEffort: true}, s)
	assert.Equal(t, Limits{Memory: 512 << 20, CPU: 1500 * time.Millisecond, Processes: 16, OpenFiles: 1000, CallTimeout: 250 * time.Millisecond, Result: 1024}, pol.Limits())
	assert.Equal(t, map[string]string{"memory": "1GB"}, pol.Options("qemu"))
	assert.Equal(t, map[string]string{"dev-bind": "/x"}, pol.Options("bwrap"))
	assert.Empty(t, pol.Options("landlock"))
	assert.True(t, w.policy(t, "learn=false").Switches().Locked)
}

// What the snapshot allows, the policy allows; what the policy refuses, the snapshot does not hold.
func TestSnapshotSaysNoMoreThanThePolicy(t *testing.T) {
	w := newWorld(t)
	w.folder(t, "data")
	w.file(t, "one", "")
	w.ctx.Runtime = Runtime{Read: []string{"/usr/lib"}}
	pol := w.policy(t, "expose-ro=./data", "expose-rw=./one", "ignore=*.key", "python-import=json, DENY:json.tool", "python-api=ALLOW:threads, DENY:_thread.start_joinable_thread")
	s := pol.Snapshot()
	assert.True(t, s.Ignore)
	for _, e := range s.Files {
		assert.True(t, pol.File(e.Path, Access(e.Bits), "open").Allow, "%+v", e)
	}
	assert.Contains(t, s.Files, FileEntry{w.dir + "/one", 3, FlagExact})
	assert.Contains(t, s.Files, FileEntry{w.dir + "/data", 1, 0})
	assert.Contains(t, s.Files, FileEntry{"/dev/null", 3, FlagExact | FlagRuntime})
	assert.Equal(t, []string{"__future__", "__main__", "json", "pysandboxes"}, s.Imports)
	assert.Equal(t, []string{"json.tool"}, s.ImportsDeny)
	assert.Equal(t, []string{"_thread.start_new_thread"}, s.Calls)
	assert.Equal(t, "refuse", s.Eval)
	s = w.policy(t, "python-import=*", "python-api=ALLOW:*").Snapshot()
	assert.Contains(t, s.Imports, "*")
	assert.Len(t, s.Calls, len(audit.Calls))
	assert.Equal(t, "allow", s.Eval)
	assert.Nil(t, w.policy(t, "python-import=json, DENY:*").Snapshot().Imports)
}

func TestOverridesAreNamedByTheirOrigin(t *testing.T) {
	w := newWorld(t)
	w.overrides = []profile.Override{{Key: "python-api", Value: "DENY:os.system", Origin: profile.OriginCommandLine}, {Key: "expose-ro", Value: "./here", Origin: profile.OriginCode}}
	pol := w.policy(t)
	m := pol.Call([]string{"os.system"}, "").Message()
	assert.Contains(t, m, "at command line forbids it")
	assert.True(t, pol.File(w.dir+"/here/x", Read, "open").Allow)
	w.overrides[0].Value = "DENY:os.sytem"
	_, err := w.try(t)
	require.ErrorContains(t, err, "command line: ")
	assert.ErrorContains(t, err, "--python-api=DENY:os.sytem\n")
}
