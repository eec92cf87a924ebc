package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFiles(t *testing.T) {
	w := newWorld(t)
	w.file(t, "data/a.txt", "")
	w.file(t, "data/secret.key", "")
	w.file(t, "data/.env", "")
	w.file(t, "data/deep/er/x.log", "")
	w.file(t, "single.txt", "")
	w.folder(t, "out")
	pol := w.policy(t, "expose-ro=./data", "expose-rw=./out", "expose-ro=./single.txt", "ignore=.env", "ignore=*.key", "ignore=./data/**/*.log", "expose-rw=./new")
	for _, c := range []struct {
		path  string
		a     Access
		op    string
		allow bool
		rule  string
	}{
		{"data", Read, "os.listdir", true, "expose-ro=./data"},
		{"data/a.txt", Read, "open", true, "expose-ro=./data"},
		{"data/a.txt", Write, "open", false, ""},
		{"data/a.txt", Read | Write, "open", false, ""},
		{"data/absent/too", Read, "open", true, "expose-ro=./data"},
		{"data.txt", Read, "open", false, ""},
		{"data/secret.key", Read, "open", false, "ignore=*.key"},
		{"data/.env", Read, "open", false, "ignore=.env"},
		{"data/.env/inside", Read, "open", false, "ignore=.env"},
		{"data/.envy", Read, "open", true, "expose-ro=./data"},
		{"data/deep/er/x.log", Read, "open", false, "ignore=./data/**/*.log"},
		{"data/deep/er/x.txt", Read, "open", true, "expose-ro=./data"},
		{"out/x", Write, "open", true, "expose-rw=./out"},
		{"out/x", Read | Write, "open", true, "expose-rw=./out"},
		{"out/x.key", Write, "open", false, "ignore=*.key"},
		{"new/x", Write, "open", true, "expose-rw=./new"},
		{"single.txt", Read, "open", true, "expose-ro=./single.txt"},
		{"single.txt/x", Read, "open", false, ""},
		{".py-sandboxes", Read, "open", false, ""},
		{"", Read, "os.stat", true, ""},
		{"", Read, "os.lstat", true, ""},
		{"", Read, "os.listdir", false, ""},
		{"other", Read, "os.stat", false, ""},
	} {
		path := filepath.Join(w.dir, c.path)
		d := pol.File(path, c.a, c.op)
		assert.Equal(t, c.allow, d.Allow, "%s %d %s", c.path, c.a, c.op)
		assert.Equal(t, c.rule, d.RuleText, c.path)
	}
	assert.Contains(t, w.warned(), w.dir+"/new does not exist")
}

func TestFileMessages(t *testing.T) {
	w := newWorld(t)
	w.folder(t, "data")
	pol := w.policy(t, "expose-ro=./data", "ignore=*.key")
	for _, c := range []struct {
		path string
		a    Access
		ends string
		says string
	}{
		{"/etc/passwd", Read, "\n    expose-ro=/etc/passwd", "reading /etc/passwd is refused: no rule in " + w.dir + "/.py-sandboxes exposes it."},
		{w.dir + "/data/x", Write, "\n    expose-rw=./data/x", "It is exposed read only."},
		{w.dir + "/other/x", Read, "\n    expose-ro=./other/x", "exposes it"},
		{w.dir + "/data/a.key", Read, "\n    ignore=*.key", "the line ignore=*.key at " + w.dir + "/.py-sandboxes:2 forbids it"},
		{"/odd, name\n#", Read, "\n    expose-ro=\"/odd, name\\n#\"", "reading"},
		{"/caf\xe9", Read, "\n    expose-ro=\"/caf\\xe9\"", "reading"},
	} {
		m := pol.File(c.path, c.a, "open").Message()
		assert.True(t, strings.HasSuffix(m, c.ends), "%q should end with %q", m, c.ends)
		assert.Contains(t, m, c.says)
	}
	none, err := newWorld(t).try(t)
	require.NoError(t, err)
	assert.False(t, none.File("/", Read, "os.listdir").Allow)
}

// What the message says to add must be enough, once added.
func TestAddedLinesAreEnough(t *testing.T) {
	w := newWorld(t)
	odd := w.file(t, "odd, \"name\" # ${x}\n\xff.txt", "")
	bare := w.policy(t)
	for _, path := range []string{"/etc/passwd", odd, w.dir + "/a'b", w.dir + "/ blank "} {
		for _, a := range []Access{Read, Write} {
			d := bare.File(path, a, "open")
			require.False(t, d.Allow)
			require.NotEmpty(t, d.Add, path)
			assert.True(t, newPolicy(t, w, d.Add[0]).File(path, a, "open").Allow, "%q does not allow %q", d.Add[0], path)
		}
	}
}

func newPolicy(t *testing.T, w *world, lines ...string) *Policy {
	t.Helper()
	return w.policy(t, lines...)
}

func TestPathsThatAreNotCanonicalAreRefused(t *testing.T) {
	w := newWorld(t)
	pol := w.policy(t, "expose-ro=/")
	assert.True(t, pol.File("/etc/passwd", Read, "open").Allow)
	for _, path := range []string{"", "etc/passwd", "/etc/../etc/passwd", "/etc/./passwd", "//etc", "/etc/", "/etc\x00/passwd", "/..", "/."} {
		d := pol.File(path, Read, "open")
		assert.False(t, d.Allow, "%q", path)
		assert.NotEmpty(t, d.Message())
	}
	assert.True(t, pol.File("/etc/..x", Read, "open").Allow)
	assert.True(t, pol.File("/", Read, "os.listdir").Allow)
}

func TestNamesThatAListDoesNotShow(t *testing.T) {
	w := newWorld(t)
	w.file(t, "lib/a.key", "")
	w.ctx.Runtime.Stdlib = append(w.ctx.Runtime.Stdlib, w.dir+"/lib")
	pol := w.policy(t, "expose-ro=.", "ignore=*.key", "ignore=./conf/**/secret", "ignore=gone")
	for name, hidden := range map[string]bool{
		"a.key": true, "a.txt": false, "secret": false, "conf": false, "conf/": true, "../a": true, "..": true, ".": true, "": true,
		"a\x00": true, "\xff.key": true, "\xff": false,
	} {
		assert.Equal(t, hidden, pol.Hidden(w.dir, name), "%q", name)
	}
	assert.True(t, pol.Hidden(w.dir+"/conf/d", "secret"))
	assert.True(t, pol.Hidden(w.dir+"/gone", "x"), "what lies in a hidden folder is hidden")
	assert.True(t, pol.Hidden("/", "gone"))
	assert.False(t, pol.Hidden(w.dir+"/lib", "a.key"), "the runtime set is never ignored")
}

func TestExposuresAreCanonical(t *testing.T) {
	w := newWorld(t)
	w.file(t, "real/x", "")
	require.NoError(t, os.Symlink("real", filepath.Join(w.dir, "link")))
	require.NoError(t, os.Symlink("gone/further", filepath.Join(w.dir, "dangling")))
	pol := w.policy(t, "expose-ro=./link", "expose-rw=./dangling", "ignore=./link/*.no")
	assert.True(t, pol.File(w.dir+"/real/x", Read, "open").Allow)
	assert.False(t, pol.File(w.dir+"/link/x", Read, "open").Allow, "decisions are on canonical paths")
	assert.True(t, pol.File(w.dir+"/gone/further/x", Write, "open").Allow)
	assert.False(t, pol.File(w.dir+"/real/a.no", Read, "open").Allow)
	e := pol.Exposures()
	assert.Equal(t, w.dir+"/real", e[0].Source)
	assert.True(t, e[0].Exists)
	assert.False(t, e[1].Exists)

	require.NoError(t, os.Symlink("round", filepath.Join(w.dir, "round")))
	_, err := w.try(t, "expose-ro=./round")
	assert.ErrorContains(t, err, "cannot be resolved")
}

func TestOwnProcessPathsStayOwn(t *testing.T) {
	pol := newWorld(t).policy(t, "expose-ro=/proc/self", "expose-ro=/dev/fd")
	assert.True(t, pol.File("/proc/self/status", Read, "open").Allow)
	assert.False(t, pol.File("/proc/1/status", Read, "open").Allow)
	assert.Equal(t, "/proc/self/fd", pol.Exposures()[1].Source)
}

func TestRuntimeIsReadableAndNeverIgnored(t *testing.T) {
	w := newWorld(t)
	lib := w.file(t, "py/lib/.env", "")
	script := w.file(t, "app/main.py", "")
	w.ctx.Runtime = Runtime{Read: []string{filepath.Join(w.dir, "py")}}
	w.ctx.Target = []string{script}
	pol := w.policy(t, "ignore=.env", "ignore=*.py")
	assert.True(t, pol.File(lib, Read, "open").Allow)
	assert.False(t, pol.File(lib, Write, "open").Allow)
	assert.True(t, pol.File(script, Read, "open").Allow)
	assert.False(t, pol.File(filepath.Dir(script), Read, "os.listdir").Allow, "the folder of the script is not exposed")
	assert.False(t, pol.File(filepath.Dir(script)+"/other.py", Read, "open").Allow)
	for path, write := range map[string]bool{"/dev/null": true, "/dev/zero": false, "/dev/urandom": false} {
		assert.True(t, pol.File(path, Read, "open").Allow)
		assert.Equal(t, write, pol.File(path, Write, "open").Allow, path)
	}
	assert.False(t, pol.File("/dev/mem", Read, "open").Allow)
	w.ctx = Context{}
}

func TestProfileIsNeverWritable(t *testing.T) {
	w := newWorld(t)
	w.file(t, "inc", "expose-ro=/etc\n")
	pol := w.policy(t, "expose-rw=.", `include "./inc"`, `include "./absent"`)
	for _, name := range []string{".py-sandboxes", "inc", "absent"} {
		assert.True(t, pol.File(filepath.Join(w.dir, name), Read, "open").Allow)
		d := pol.File(filepath.Join(w.dir, name), Write, "open")
		assert.False(t, d.Allow, name)
		assert.Contains(t, d.Message(), "never writable")
		assert.Contains(t, pol.Protected(), filepath.Join(w.dir, name))
	}
	assert.True(t, pol.File(w.dir+"/x", Write, "open").Allow)
	err := pol.CheckProtected()
	require.Error(t, err)
	assert.ErrorContains(t, err, w.dir+"/.py-sandboxes:1")
	assert.ErrorContains(t, err, "--pysandboxes-config=")
	assert.ErrorContains(t, err, "expose-rw="+w.dir+"/output")
	assert.NoError(t, w.policy(t, "expose-ro=.", "expose-rw=./out").CheckProtected())
	for _, e := range pol.Snapshot().Files {
		if e.Path == w.dir {
			assert.Equal(t, int(Read), e.Bits, "writes beside the profile are asked")
		}
	}
}

func TestProfileThatIsALinkIsProtectedTwice(t *testing.T) {
	w := newWorld(t)
	target := w.file(t, "elsewhere/p", "expose-rw=.\n")
	w.folder(t, "app")
	require.NoError(t, os.Symlink(target, filepath.Join(w.dir, "app", ".py-sandboxes")))
	w.file(t, "x", "")
	pol := w.policy(t, `include "./app/.py-sandboxes"`)
	assert.Subset(t, pol.Protected(), []string{target, filepath.Join(w.dir, "app", ".py-sandboxes")})
}

func TestBadFileRules(t *testing.T) {
	for line, want := range map[string]string{
		"expose-ro=a,b,c":                    "a source and a destination",
		"expose-ro=./a,rel":                  "not a plain absolute path",
		"expose-ro=./a,/b/../c":              "not a plain absolute path",
		"expose-ro=,/a":                      "the path is empty",
		"expose-ro=~root/x":                  "another user",
		"ignore=[":                           "cannot be used",
		"ignore=/a/**/b/**/c/**/d/**/e/**/f": "more than four",
		"ignore=/":                           "names nothing",
		"ignore=/a/*/../b":                   ".. after",
	} {
		_, err := newWorld(t).try(t, "", line)
		assert.ErrorContains(t, err, want, line)
		assert.ErrorContains(t, err, ".py-sandboxes:2:", line)
	}
}

func TestDestinationIsWhereTheProgramSeesIt(t *testing.T) {
	w := newWorld(t)
	w.folder(t, "data")
	pol := w.policy(t, "expose-ro=./data,/srv/data")
	assert.True(t, pol.File("/srv/data/x", Read, "open").Allow)
	assert.False(t, pol.File(w.dir+"/data/x", Read, "open").Allow)
	assert.Equal(t, "/srv/data", pol.Exposures()[0].Dest)
}

func TestReadOnlyBeneathWritableIsSaid(t *testing.T) {
	w := newWorld(t)
	w.folder(t, "a/b")
	w.policy(t, "expose-ro=./a/b", "expose-rw=./a")
	assert.Contains(t, w.warned(), "has no effect")
}

func TestAFolderThatIsMadeAtTheStart(t *testing.T) {
	w := newWorld(t)
	w.folder(t, "there")
	pol := w.policy(t, "expose-rw=./out/", "expose-rw=./there/", "expose-ro=./read/", "expose-rw=./plain", `expose-rw="./two words/"`)
	var made []string
	for _, e := range pol.Exposures() {
		if e.Make {
			made = append(made, e.Source)
		}
	}
	assert.Equal(t, []string{w.dir + "/out", w.dir + "/two words"}, made)
	assert.NotContains(t, w.warned(), w.dir+"/out does not exist")
	assert.Contains(t, w.warned(), w.dir+"/read does not exist")
	assert.Contains(t, w.warned(), w.dir+"/plain does not exist")
	assert.True(t, pol.File(w.dir+"/out/a", Write, "open").Allow)
	assert.NoDirExists(t, w.dir+"/out", "compiling makes nothing")
}

// The kernel grants what exists at the start, and names belong to their folder: the advice has to be one that works.
func TestAdviceForNamesThatAreMadeOrRemoved(t *testing.T) {
	w := newWorld(t)
	w.folder(t, "data")
	w.file(t, "data/there", "")
	w.file(t, "there", "")
	pol := w.policy(t)
	for _, c := range []struct{ op, path, ends, says string }{
		{"open", "data/new", "\n    expose-rw=./data", "does not exist yet"},
		{"open", "data/there", "\n    expose-rw=./data/there", "exposes it"},
		{"os.remove", "data/there", "\n    expose-rw=./data", "in their folder"},
		{"os.rename", "data/there", "\n    expose-rw=./data", "in their folder"},
		{"os.mkdir", "data/deep", "\n    expose-rw=./data/deep/", "made at the start"},
		{"os.mkdir", "out", "\n    expose-rw=./out/", "made at the start"},
		{"open", "new.txt", "\n    expose-rw=./new.txt", "such as output (expose-rw=./output/), or make the file before the start"},
		{"open", "there", "\n    expose-rw=./there", "exposes it"},
		{"os.remove", "there", "\n    expose-rw=./output/", "Its folder holds the profile"},
	} {
		m := pol.File(w.dir+"/"+c.path, Write, c.op).Message()
		assert.True(t, strings.HasSuffix(m, c.ends), "%s %s: %q should end with %q", c.op, c.path, m, c.ends)
		assert.Contains(t, m, c.says, "%s %s", c.op, c.path)
	}
	for _, path := range []string{"/new", "/etc/new"} {
		assert.Equal(t, []string{"expose-rw=" + path}, pol.File(path, Write, "open").Add, "a folder of the system's is not proposed")
	}
	d := pol.File("/etc/new", Write, "open")
	assert.Contains(t, d.Message(), "Make it before the start.")
	w.dir = "/srv/no-such-place" // a profile that is not beneath /tmp
	far := &Policy{ctx: Context{Home: "/home/me"}, path: w.dir + "/.py-sandboxes", dir: w.dir}
	assert.Equal(t, []string{"expose-rw=/tmp"}, far.File("/tmp/tmp8x3k", Write, "open").Add, "the next name is another")
	assert.Equal(t, []string{"expose-rw=/home/me/new"}, far.File("/home/me/new", Write, "open").Add, "never the home folder")
	assert.Equal(t, []string{"expose-ro=./data/new"}, pol.File(pol.dir+"/data/new", Read, "open").Add)
}

// A link that the program can change leads wherever it likes at the next start.
func TestNothingIsReachedOverALinkOfTheProgram(t *testing.T) {
	w := newWorld(t)
	w.file(t, "real/deep/p", "")
	w.folder(t, "work/own")
	for link, target := range map[string]string{"work/out": "../real", "work/in": "own", "lasting": "real", "twice": "work/out"} {
		require.NoError(t, os.Symlink(target, filepath.Join(w.dir, link)))
	}
	for rule, held := range map[string]bool{
		"expose-ro=./work/out": true, "expose-rw=./work/out/deep": true, "expose-ro=./twice": true, "expose-ro=./twice/deep/p": true,
		"expose-ro=./work/in": false, "expose-ro=./lasting/deep": false, "expose-ro=./real": false, "expose-ro=./work/none": false,
	} {
		err := w.policy(t, "expose-rw=./work", rule).CheckProtected()
		if !held {
			assert.NoError(t, err, rule)
			continue
		}
		require.ErrorContains(t, err, "work/out", rule)
		assert.ErrorContains(t, err, ".py-sandboxes:2")
	}
	assert.NoError(t, w.policy(t, "expose-ro=./work", "expose-ro=./work/out").CheckProtected(), "nobody can change the link")
}

func TestTheWayToTheProfileIsTheProfile(t *testing.T) {
	w := newWorld(t)
	w.file(t, "real/p", "")
	w.folder(t, "work")
	require.NoError(t, os.Symlink("../real", filepath.Join(w.dir, "work/current")))
	pol := w.policy(t, "expose-rw=./work", `include "./work/current/p"`)
	assert.ErrorContains(t, pol.CheckProtected(), "work/current, which")
	assert.False(t, pol.File(filepath.Join(w.dir, "work/current"), Write, "os.remove").Allow)
	w.ctx.Trusted = []Trusted{{Path: filepath.Join(w.dir, "work/kept"), What: "which is trusted"}}
	err := w.policy(t, "expose-rw=./work").CheckProtected()
	require.ErrorContains(t, err, "work/kept, which is trusted, lies beneath")
	assert.NotContains(t, err.Error(), "profile "+w.dir)
}

func TestWhatWasReplacedByALinkStartsNoMore(t *testing.T) {
	w := newWorld(t)
	w.folder(t, "work/sub")
	w.folder(t, "other")
	pol := w.policy(t, "expose-rw=./work", "expose-ro=./work/sub", "expose-ro=./other", "expose-ro=./work/missing")
	require.NoError(t, pol.CheckMoved())
	require.NoError(t, os.Remove(filepath.Join(w.dir, "work/sub")))
	require.NoError(t, pol.CheckMoved(), "nothing is no link")
	require.NoError(t, os.Symlink("../other", filepath.Join(w.dir, "work/sub")))
	assert.ErrorContains(t, pol.CheckMoved(), "work/sub")
}

func TestWhatIsHiddenStaysHiddenWhenItsFolderMoves(t *testing.T) {
	w := newWorld(t)
	w.file(t, "work/sub/deep/a.key", "")
	w.file(t, "work/plain/b.txt", "")
	w.file(t, "work/plain/c.secret", "")
	for _, glob := range []string{"./work/sub/deep/a.key", "./work/*/deep/*.key", "./work/**/*.key", "./work/sub/deep"} {
		pol := w.policy(t, "expose-rw=./work", "ignore="+glob, "ignore=*.secret")
		for path, allow := range map[string]bool{"work/sub": false, "work/plain": true, "work/plain/b.txt": true, "work/none": true} {
			d := pol.File(filepath.Join(w.dir, path), Write, "os.rename")
			assert.Equal(t, allow, d.Allow, "%s %s", glob, path)
			if !allow {
				assert.Contains(t, d.Message(), "hidden no more")
				assert.Equal(t, "ignore="+glob, d.RuleText)
			}
		}
		assert.True(t, pol.File(filepath.Join(w.dir, "work/sub"), Write, "os.mkdir").Allow)
	}
}
