package learn

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// project is a folder with a program in it, a home and a temporary folder, none of them inside another.
type project struct {
	t                *testing.T
	dir, home, tmp   string
	env              map[string]string
	resolver         names4test
	profile, outside string
}

type names4test map[string][]netip.Addr

func (n names4test) LookupIP(host string) ([]netip.Addr, error) {
	if a, ok := n[host]; ok {
		return a, nil
	}
	return nil, errors.New("no such host")
}

func newProject(t *testing.T) *project {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	p := &project{t: t, dir: root + "/work/app", home: root + "/homes/me", tmp: root + "/tmp", outside: root + "/srv/share"}
	for _, d := range []string{p.dir, p.home, p.tmp, p.outside} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	p.env = map[string]string{"TMPDIR": p.tmp, "HOME": p.home}
	p.profile = p.dir + "/.py-sandboxes"
	return p
}

// file makes a file and the folders above it.
func (p *project) file(path string) string {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(p.t, os.WriteFile(path, []byte("x"), 0o644))
	return path
}

func (p *project) options() Options {
	return Options{ProfilePath: p.profile, Home: p.home, Cwd: p.dir, Env: p.env, Resolver: p.resolver,
		Now: func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }}
}

// compiled is the policy of a profile with this text; "" is one that allows nothing.
func (p *project) compiled(text string) *policy.Policy {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(p.profile, []byte(text), 0o644))
	loaded, err := profile.Load(profile.Options{Path: p.profile, Env: p.env, Platform: "linux", Home: p.home, Cwd: p.dir})
	require.NoError(p.t, err)
	c, _, err := policy.Compile(loaded, policy.Context{Resolver: p.resolver, Home: p.home, Cwd: p.dir, Sleep: func(time.Duration) {}})
	require.NoError(p.t, err)
	return c
}

func (p *project) learn(o Options, seen ...Observation) Result {
	r := New(o)
	for _, s := range seen {
		r.Add(s)
	}
	return r.Result()
}

// lines are the rules of a result; notes are the comments of what was left out.
func lines(r Result) (rules, notes []string) {
	for _, l := range r.Lines {
		if l.Line != "" {
			rules = append(rules, l.Line)
		} else {
			notes = append(notes, l.Comment)
		}
	}
	return rules, notes
}

func read(path string) Observation { return Observation{Family: FamilyFile, Op: "open", Subject: path} }
func wrote(path string) Observation {
	return Observation{Family: FamilyFile, Op: "open", Subject: path, Write: true}
}
func did(op, path string, write bool) Observation {
	return Observation{Family: FamilyFile, Op: op, Subject: path, Write: write}
}

func TestEnvLearnsNamesNeverValues(t *testing.T) {
	p := newProject(t)
	p.env["GREETING"], p.env["API_KEY"], p.env["BAD NAME"], p.env["X*"] = "hello", "s3cret", "x", "x"
	see := func(name string) Observation {
		return Observation{Family: FamilyEnv, Op: "getenv", Subject: name, Site: p.dir + "/app.py:3"}
	}
	r := p.learn(p.options(), see("GREETING"), see("GREETING"), see("API_KEY"), see("UNSET_HERE"), see("BAD NAME"), see("X*"), see("A\nexpose-rw=/"))
	rules, notes := lines(r)
	assert.Equal(t, []string{"env=API_KEY=${API_KEY}", "env=GREETING=${GREETING}"}, rules)
	assert.Equal(t, High, r.Lines[0].Risk)
	assert.Equal(t, 2, r.Lines[1].Count)
	assert.Equal(t, "app.py:3", r.Lines[1].Site)
	assert.Len(t, notes, 2)
	for _, l := range r.Lines {
		assert.NotContains(t, l.Line+l.Comment, "s3cret")
	}
	o := p.options()
	o.Policy = p.compiled("env=GREETING=hi\nunenv=API_*\n")
	rules, notes = lines(p.learn(o, see("GREETING"), see("API_KEY")))
	assert.Empty(t, rules)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "API_KEY is refused by "+p.profile+":2")
}

func TestFilesLearnTheFolderThatWasSeen(t *testing.T) {
	for name, c := range map[string]struct {
		see   func(p *project) []Observation
		want  []string
		notes []string
	}{
		"a folder of the project": {func(p *project) []Observation {
			return []Observation{read(p.file(p.dir + "/data/a.csv")), read(p.file(p.dir + "/data/b.csv"))}
		}, []string{"expose-ro=./data"}, nil},
		"read and written": {func(p *project) []Observation {
			return []Observation{read(p.file(p.dir + "/data/a.csv")), wrote(p.file(p.dir + "/data/b.csv"))}
		}, []string{"expose-rw=./data"}, nil},
		"beneath home": {func(p *project) []Observation {
			return []Observation{read(p.file(p.home + "/notes/x"))}
		}, []string{"expose-ro=~/notes"}, nil},
		"absolute": {func(p *project) []Observation {
			return []Observation{read(p.file(p.outside + "/x"))}
		}, []string{"expose-ro=OUTSIDE"}, nil},
		"temporary files": {func(p *project) []Observation {
			return []Observation{did("os.mkdir", p.tmp+"/tmpx1", true), wrote(p.tmp + "/tmpx1/f"), did("os.rmdir", p.tmp+"/tmpx1", true)}
		}, []string{"expose-rw=${TMPDIR:-/tmp}"}, nil},
		"a file in the temporary folder": {func(p *project) []Observation {
			return []Observation{read(p.file(p.tmp + "/x.txt"))}
		}, []string{"expose-ro=${TMPDIR:-/tmp}/x.txt"}, nil},
		"home is never opened": {func(p *project) []Observation {
			return []Observation{read(p.file(p.home + "/a.txt")), did("os.listdir", p.home, false)}
		}, []string{"expose-ro=~/a.txt"}, []string{"listing"}},
		"etc is never opened": {func(*project) []Observation {
			return []Observation{read("/etc/passwd")}
		}, []string{"expose-ro=/etc/passwd"}, nil},
		"a key alone": {func(p *project) []Observation {
			p.file(p.home + "/.ssh/other")
			return []Observation{read(p.file(p.home + "/.ssh/id_rsa"))}
		}, []string{"expose-ro=~/.ssh/id_rsa"}, nil},
		"a secret beside it": {func(p *project) []Observation {
			p.file(p.dir + "/conf/.env")
			return []Observation{read(p.file(p.dir + "/conf/app.toml"))}
		}, []string{"expose-ro=./conf/app.toml"}, nil},
		"a secret in a folder that was listed": {func(p *project) []Observation {
			p.file(p.dir + "/conf/.env")
			return []Observation{did("os.scandir", p.dir+"/conf", false)}
		}, []string{"expose-ro=./conf"}, nil},
		"the profile's folder is never writable": {func(p *project) []Observation {
			return []Observation{wrote(p.file(p.dir + "/out.txt"))}
		}, []string{"expose-rw=./out.txt"}, nil},
		"the profile's folder itself": {func(p *project) []Observation {
			return []Observation{read(p.file(p.dir + "/helper.py")), did("os.listdir", p.dir, false)}
		}, []string{"expose-ro=./"}, nil},
		"the profile's folder, listed and written to": {func(p *project) []Observation {
			return []Observation{read(p.file(p.dir + "/a")), wrote(p.file(p.dir + "/b")), did("os.listdir", p.dir, false)}
		}, []string{"expose-rw=./b", "expose-ro=./"}, nil},
		"all of a folder's folders": {func(p *project) []Observation {
			return []Observation{read(p.file(p.dir + "/d/a/1")), read(p.file(p.dir + "/d/b/1")), read(p.file(p.dir + "/d/c/1"))}
		}, []string{"expose-ro=./d"}, nil},
		"some of a folder's folders": {func(p *project) []Observation {
			p.file(p.dir + "/d/c/1")
			return []Observation{read(p.file(p.dir + "/d/a/1")), read(p.file(p.dir + "/d/b/1"))}
		}, []string{"expose-ro=./d/a", "expose-ro=./d/b"}, nil},
		"a folder in a folder": {func(p *project) []Observation {
			return []Observation{read(p.file(p.dir + "/d/x")), read(p.file(p.dir + "/d/a/1")), wrote(p.file(p.dir + "/d/w/1"))}
		}, []string{"expose-rw=./d/w", "expose-ro=./d"}, nil},
		"what is not there": {func(p *project) []Observation {
			return []Observation{read(p.dir + "/no/such"), did("os.stat", p.dir, false)}
		}, nil, nil},
		"folders that are looked at": {func(p *project) []Observation {
			os.MkdirAll(p.outside+"/empty", 0o700)
			p.file(p.outside + "/full/x")
			return []Observation{did("os.stat", p.outside+"/empty", false), did("os.stat", p.outside+"/full", false), did("os.stat", p.outside, false)}
		}, []string{"expose-ro=OUTSIDE/full", "expose-ro=OUTSIDE/empty"}, nil},
		"a folder above one that is used": {func(p *project) []Observation {
			return []Observation{read(p.file(p.outside + "/full/x")), did("os.stat", p.outside, false)}
		}, []string{"expose-ro=OUTSIDE/full"}, nil},
		"folders that no look opens": {func(p *project) []Observation {
			p.file(p.outside + "/full/.env")
			return []Observation{did("os.stat", p.home, false), did("os.stat", p.outside+"/full", false)}
		}, nil, []string{"looking at", "looking at"}},
		"compiled modules": {func(p *project) []Observation {
			return []Observation{read(p.file(p.dir + "/lib/__pycache__/m.pyc")), wrote(p.file(p.dir + "/lib/__pycache__/n.pyc"))}
		}, []string{"expose-ro=./lib"}, nil},
		"a folder that the program makes": {func(p *project) []Observation {
			return []Observation{did("os.mkdir", p.dir+"/out", true), wrote(p.file(p.dir + "/out/a"))}
		}, []string{"expose-rw=./out/"}, []string{"making and removing names"}},
		"a folder that it makes where it may": {func(p *project) []Observation {
			return []Observation{did("os.mkdir", p.outside+"/out", true), wrote(p.file(p.outside + "/out/a"))}
		}, []string{"expose-rw=OUTSIDE"}, nil},
		"a folder in one that it makes": {func(p *project) []Observation {
			return []Observation{did("os.mkdir", p.dir+"/out", true), did("os.mkdir", p.dir+"/out/deep", true), wrote(p.file(p.dir + "/out/deep/a"))}
		}, []string{"expose-rw=./out/"}, []string{"making and removing names"}},
		"a name beside the profile that comes and goes": {func(p *project) []Observation {
			return []Observation{wrote(p.dir + "/x.tmp"), did("os.rename", p.dir+"/x.tmp", true), wrote(p.file(p.dir + "/x"))}
		}, []string{"expose-rw=./x"}, []string{"making and removing names"}},
		"a temporary name that is gone without a word": {func(p *project) []Observation {
			return []Observation{wrote(p.tmp + "/tmp8d7x")}
		}, []string{"expose-rw=${TMPDIR:-/tmp}"}, nil},
		"what a temporary folder held": {func(p *project) []Observation {
			return []Observation{did("os.mkdir", p.tmp+"/tmpx1", true), wrote(p.tmp + "/tmpx1/d/f"), did("os.scandir", p.tmp+"/tmpx1", false), did("os.rmdir", p.tmp+"/tmpx1", true)}
		}, []string{"expose-rw=${TMPDIR:-/tmp}"}, nil},
		"a file that is read and written beside the profile": {func(p *project) []Observation {
			return []Observation{wrote(p.file(p.dir + "/run.sh")), did("exec", p.dir+"/run.sh", false)}
		}, []string{"expose-rw=./run.sh"}, nil},
		"another process": {func(*project) []Observation {
			return []Observation{read("/proc/1/status")}
		}, nil, []string{"process number"}},
		"hostile names": {func(p *project) []Observation {
			p.file(p.outside + "/another/x")
			return []Observation{read(p.file(p.outside + "/a,b #$\"' |*/x")), read(p.file(p.outside + "/n\nexpose-rw=~/x")), read(p.file(p.outside + "/\xff\xfe/x"))}
		}, []string{"expose-ro=\"OUTSIDE/\\xff\\xfe\"", "expose-ro=\"OUTSIDE/a,b #\\$\\\"' |*\"", "expose-ro=\"OUTSIDE/n\\x0aexpose-rw=~\""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			rules, notes := lines(p.learn(p.options(), c.see(p)...))
			for i := range c.want {
				c.want[i] = strings.ReplaceAll(c.want[i], "OUTSIDE", p.outside)
			}
			assert.Equal(t, c.want, rules)
			require.Len(t, notes, len(c.notes), "%q", notes)
			for i, n := range c.notes {
				assert.Contains(t, notes[i], n)
			}
		})
	}
}

func TestFilesAreGraded(t *testing.T) {
	p := newProject(t)
	p.file(p.dir + "/conf/.env")
	r := p.learn(p.options(), read(p.file(p.home+"/.ssh/id_rsa")), wrote(p.file(p.home+"/.bashrc")), did("os.listdir", p.dir+"/conf", false),
		read(p.file(p.dir+"/data/x")), wrote(p.file(p.dir+"/out/x")), wrote(p.file(p.outside+"/bin/tool")),
		Observation{Family: FamilyFile, Op: "openat", Subject: p.file(p.outside + "/native/x"), Native: true})
	risks := map[string]Risk{}
	for _, l := range r.Lines {
		risks[l.Line] = l.Risk
		if strings.HasSuffix(l.Line, "/native") {
			assert.Contains(t, l.Comment, "seen in native code")
		}
	}
	assert.Equal(t, map[string]Risk{"expose-ro=~/.ssh/id_rsa": High, "expose-rw=~/.bashrc": High, "expose-ro=./conf": High, "expose-ro=./data": Low,
		"expose-rw=./out": Medium, "expose-rw=" + p.outside + "/bin": High, "expose-ro=" + p.outside + "/native": Low}, risks)
}

func TestNetLearnsNamesPortsAndDirections(t *testing.T) {
	connect := func(proto, host string, port int) Observation {
		return Observation{Family: FamilyNet, Op: "connect", Proto: proto, Host: host, Port: port}
	}
	look := func(host string, port int) Observation {
		return Observation{Family: FamilyNet, Op: "resolve", Host: host, Port: port}
	}
	serve := func(op, host string, port int) Observation {
		return Observation{Family: FamilyNet, Op: op, Proto: "tcp", Host: host, Port: port}
	}
	for name, c := range map[string]struct {
		see   []Observation
		want  []string
		notes []string
	}{
		"address":            {[]Observation{connect("tcp", "127.0.0.1", 8000), connect("tcp", "127.0.0.1", 8000)}, []string{"net=ALLOW|TCP|127.0.0.1|8000|OUT"}, nil},
		"mapped address":     {[]Observation{connect("tcp", "::ffff:127.0.0.1", 8000)}, []string{"net=ALLOW|TCP|127.0.0.1|8000|OUT"}, nil},
		"name":               {[]Observation{look("api.test", 443), connect("tcp", "192.0.2.7", 443)}, []string{"net=ALLOW|TCP|api.test|443|OUT"}, nil},
		"two names":          {[]Observation{look("api.test", 443), look("www.test", 80), connect("tcp", "192.0.2.7", 443), connect("tcp", "2001:db8::1", 80)}, []string{"net=ALLOW|TCP|api.test|443|OUT", "net=ALLOW|TCP|www.test|80|OUT"}, nil},
		"an answer changed":  {[]Observation{look("gone.test", 443), connect("tcp", "192.0.2.99", 443)}, []string{"net=ALLOW|TCP|gone.test|443|OUT"}, nil},
		"literal look-up":    {[]Observation{look("127.0.0.1", 80), connect("tcp", "127.0.0.1", 80)}, []string{"net=ALLOW|TCP|127.0.0.1|80|OUT"}, nil},
		"looked up only":     {[]Observation{look("api.test", 0)}, nil, []string{"nothing connected"}},
		"udp, ipv6":          {[]Observation{connect("udp", "::1", 53)}, []string{"net=ALLOW|UDP|::1|53|OUT"}, nil},
		"server":             {[]Observation{serve("bind", "0.0.0.0", 8080), serve("listen", "0.0.0.0", 8080)}, []string{"net=ALLOW|TCP|0.0.0.0|8080|IN"}, nil},
		"own port, reached":  {[]Observation{serve("bind", "127.0.0.1", 0), serve("chosen", "", 40001), connect("tcp", "127.0.0.1", 40001), connect("tcp", "127.0.0.1", 50001)}, []string{"net=ALLOW|TCP|127.0.0.1|0|IN", "net=ALLOW|TCP|127.0.0.1|32768-60999|OUT", "net=ALLOW|TCP|127.0.0.1|50001|OUT"}, nil},
		"own port, again":    {[]Observation{serve("bind", "127.0.0.1", 0), serve("chosen", "", 40001), serve("bind", "127.0.0.1", 40001), serve("listen", "127.0.0.1", 40001), connect("tcp", "127.0.0.1", 40001)}, []string{"net=ALLOW|TCP|127.0.0.1|0|IN", "net=ALLOW|TCP|127.0.0.1|32768-60999|IN", "net=ALLOW|TCP|127.0.0.1|32768-60999|OUT"}, nil},
		"own port elsewhere": {[]Observation{serve("bind", "", 0), serve("chosen", "", 40001), connect("tcp", "192.0.2.1", 40001)}, []string{"net=ALLOW|TCP|0.0.0.0|0|IN", "net=ALLOW|TCP|192.0.2.1|40001|OUT"}, nil},
		"own port below":     {[]Observation{serve("bind", "127.0.0.1", 0), serve("chosen", "", 20001), serve("bind", "127.0.0.1", 20001)}, []string{"net=ALLOW|TCP|127.0.0.1|0|IN", "net=ALLOW|TCP|127.0.0.1|20001|IN"}, nil},
		"a port of others":   {[]Observation{serve("bind", "127.0.0.1", 0), connect("tcp", "127.0.0.1", 40001)}, []string{"net=ALLOW|TCP|127.0.0.1|0|IN", "net=ALLOW|TCP|127.0.0.1|40001|OUT"}, nil},
		"server by a name":   {[]Observation{serve("bind", "LocalHost", 0), serve("chosen", "", 40001), connect("tcp", "127.0.0.1", 40001)}, []string{"net=ALLOW|TCP|127.0.0.1|32768-60999|OUT", "net=ALLOW|TCP|localhost|0|IN"}, nil},
		"server everywhere":  {[]Observation{serve("bind", "", 8080)}, []string{"net=ALLOW|TCP|0.0.0.0|8080|IN"}, nil},
		"connect by a name":  {[]Observation{look("db.test", 5432), connect("tcp", "db.test", 5432)}, []string{"net=ALLOW|TCP|db.test|5432|OUT"}, nil},
		"no name at all":     {[]Observation{connect("tcp", "a b\n", 80)}, nil, []string{"neither an address nor a name"}},
		"reverse look-up":    {[]Observation{serve("reverse", "127.0.0.1", 0), serve("bind", "localhost", 80)}, []string{"net=ALLOW|TCP|localhost|80|IN"}, nil},
		"own port, by UDP":   {[]Observation{serve("bind", "127.0.0.1", 0), connect("udp", "127.0.0.1", 40001)}, []string{"net=ALLOW|TCP|127.0.0.1|0|IN", "net=ALLOW|UDP|127.0.0.1|40001|OUT"}, nil},
		"a service's port":   {[]Observation{serve("bind", "127.0.0.1", 0), connect("tcp", "127.0.0.1", 5432)}, []string{"net=ALLOW|TCP|127.0.0.1|0|IN", "net=ALLOW|TCP|127.0.0.1|5432|OUT"}, nil},
		"no port of its own": {[]Observation{serve("bind", "127.0.0.1", 40001), connect("tcp", "127.0.0.1", 40001)}, []string{"net=ALLOW|TCP|127.0.0.1|40001|IN", "net=ALLOW|TCP|127.0.0.1|40001|OUT"}, nil},
		"another's machine":  {[]Observation{serve("bind", "0.0.0.0", 0), connect("tcp", "192.0.2.9", 40001)}, []string{"net=ALLOW|TCP|0.0.0.0|0|IN", "net=ALLOW|TCP|192.0.2.9|40001|OUT"}, nil},
		"server on any port": {[]Observation{serve("bind", "127.0.0.1", 0), serve("listen", "127.0.0.1", 40001), connect("tcp", "127.0.0.1", 40001)}, []string{"net=ALLOW|TCP|127.0.0.1|0|IN", "net=ALLOW|TCP|127.0.0.1|32768-60999|OUT"}, nil},
		"raw":                {[]Observation{connect("raw", "127.0.0.1", 0)}, nil, []string{"no net rule"}},
		"hostile name":       {[]Observation{look("a|*|*|OUT\nx", 80)}, nil, []string{`a|*|*|OUT\nx`}},
		"no address":         {[]Observation{connect("tcp", "*", 80)}, nil, []string{"neither an address"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			p.resolver = names4test{"api.test": {netip.MustParseAddr("192.0.2.7")}, "www.test": {netip.MustParseAddr("2001:db8::1")}}
			rules, notes := lines(p.learn(p.options(), c.see...))
			assert.Equal(t, c.want, rules)
			require.Len(t, notes, len(c.notes), "%q", notes)
			for i, n := range c.notes {
				assert.Contains(t, notes[i], n)
			}
		})
	}
}

func TestNetRisksAndUnixSockets(t *testing.T) {
	p := newProject(t)
	r := p.learn(p.options(), Observation{Family: FamilyNet, Op: "connect", Proto: "tcp", Host: "169.254.169.254", Port: 80},
		Observation{Family: FamilyNet, Op: "connect", Proto: "unix", Host: p.outside + "/x.sock"},
		Observation{Family: FamilyNet, Op: "connect", Proto: "unix", Host: "\x00abstract"})
	rules, notes := lines(r)
	assert.ElementsMatch(t, []string{"net=ALLOW|TCP|169.254.169.254|80|OUT", "expose-rw=" + p.outside + "/x.sock"}, rules)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], `\x00abstract`)
	for _, l := range r.Lines {
		if l.Line != "" {
			assert.Equal(t, High, l.Risk, l.Line)
		}
	}
}

func TestImportsAreGroupedAndFolded(t *testing.T) {
	p := newProject(t)
	site := p.outside + "/site-packages"
	p.file(site + "/httpx/__init__.py")
	require.NoError(t, os.MkdirAll(site+"/httpx-0.28.1.dist-info", 0o755))
	require.NoError(t, os.WriteFile(site+"/httpx-0.28.1.dist-info/RECORD", []byte("httpx/__init__.py,sha256=x,1\n../../bin/httpx,,\nhttpx-0.28.1.dist-info/RECORD,,\n"), 0o644))
	o := p.options()
	o.Runtime = policy.Runtime{Site: []string{site}}
	see := func(name string) Observation { return Observation{Family: FamilyImport, Op: "import", Subject: name} }
	r := p.learn(o, see("json"), see("json.decoder"), see("httpx._client"), see("ctypes"), see("helper"), see("a\nb"), see("a b"))
	rules, notes := lines(r)
	assert.Equal(t, []string{"python-import=ctypes", "python-import=json", "python-import=helper", "python-import=httpx"}, rules)
	assert.Equal(t, High, r.Lines[0].Risk)
	assert.Equal(t, 2, r.Lines[1].Count)
	assert.Contains(t, r.Lines[2].Comment, "program's own")
	assert.Equal(t, "httpx 0.28.1", r.Lines[3].Comment)
	assert.Len(t, notes, 2)
	o.Policy = p.compiled("python-import=json, DENY:ctypes\n")
	rules, notes = lines(p.learn(o, see("json.decoder"), see("ctypes"), see("math")))
	assert.Equal(t, []string{"python-import=math"}, rules)
	assert.Len(t, notes, 1)
}

func TestCallsAreFunctionsNeverCategories(t *testing.T) {
	p := newProject(t)
	see := func(name string) Observation { return Observation{Family: FamilyCall, Op: "call", Subject: name} }
	r := p.learn(p.options(), see("os.system"), see("no.such.call"), Observation{Family: FamilyEval, Op: "eval"}, Observation{Family: FamilyResult, Subject: "mine.Thing"})
	rules, notes := lines(r)
	assert.Equal(t, []string{"python-api=ALLOW:os.system", "python-api=ALLOW:builtins.eval", "remote-result-mode=objects"}, rules)
	require.Len(t, notes, 1)
	assert.Contains(t, r.Lines[0].Comment, "process-exec")
	assert.Equal(t, High, r.Lines[0].Risk)
	o := p.options()
	o.Policy = p.compiled("python-api=ALLOW:process-exec, DENY:os.fork, ALLOW:dynamic-code\nremote-result-mode=objects\n")
	rules, notes = lines(p.learn(o, see("os.system"), see("os.fork"), Observation{Family: FamilyEval, Op: "eval"}, Observation{Family: FamilyResult, Subject: "mine.Thing"}))
	assert.Empty(t, rules)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "os.fork is refused by")
}

func TestRecorderIsBoundedAndConcurrent(t *testing.T) {
	r := New(Options{})
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 1000 {
				r.Add(Observation{Family: FamilyEnv, Subject: "A"})
				r.Add(read("/no/such/file"))
			}
		}()
	}
	for range 4 {
		<-done
	}
	assert.Equal(t, 4000, r.order[0].count)
	r.order = make([]*entry, maxObservations)
	for i := range r.order {
		r.order[i] = &entry{}
	}
	r.Add(Observation{Family: FamilyEnv, Subject: "LATE"})
	_, notes := lines(r.Result())
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "more than this run records")
}

func BenchmarkAddSeen(b *testing.B) {
	r := New(Options{})
	o := read("/etc/passwd")
	for b.Loop() {
		r.Add(o)
	}
}

func TestWhatLooksLikeASecret(t *testing.T) {
	for _, name := range []string{".env", ".env.local", ".git", "id_rsa", "server.pem", "token", "api_token.txt", "secrets.yaml", "db-password", "credentials", ".bash_history"} {
		assert.True(t, secretFile.MatchString(name), name)
	}
	for _, name := range []string{"tokenizer.json", "environment.md", "secretary.txt", "notes.txt", "keyboard.py", ".gitignore", "passage.txt"} {
		assert.False(t, secretFile.MatchString(name), name)
	}
	for name, want := range map[string]Risk{"OPENAI_API_KEY": High, "GITHUB_TOKEN": High, "MYSECRETS": High, "DB_PASSWORD": High, "DATABASE_URL": Medium,
		"PATH": Medium, "PWD": Low, "KEYBOARD": Low, "LANG": Low, "XDG_SESSION_ID": Low} {
		risk, _ := envRisk(name)
		assert.Equal(t, want, risk, name)
	}
}
