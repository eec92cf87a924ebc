package learn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func someResult() Result {
	return Result{At: day, Lines: []Learned{
		{Family: FamilyEnv, Line: "env=GREETING=${GREETING}", Count: 2, Site: "app.py:3"},
		{Family: FamilyFile, Line: "expose-ro=./data", Count: 1},
		{Family: FamilyCall, Line: "python-api=ALLOW:os.system", Comment: "process-exec", Risk: High},
		{Family: FamilyFile, Comment: "not learned: listing ~"},
	}}
}

func (p *project) write(r Result) (bool, error) {
	return Write(p.profile, r, WriteOptions{Env: p.env, Home: p.home, Cwd: p.dir, Wait: 50 * time.Millisecond})
}

// names are the files in the project's folder.
func (p *project) names() []string { return entriesOf(p.dir) }

func TestBlocksAreThoseOfTheTemplate(t *testing.T) {
	var want []string
	for _, b := range profile.Blocks {
		want = append(want, b.Tag)
	}
	assert.Equal(t, want, tags())
	d, err := parseDocument("template", profile.Template())
	require.NoError(t, err)
	assert.Len(t, d.spans, len(blocks))
}

func TestWriteMakesAProfileFromTheTemplate(t *testing.T) {
	p := newProject(t)
	changed, err := p.write(someResult())
	require.NoError(t, err)
	assert.True(t, changed)
	text, err := os.ReadFile(p.profile)
	require.NoError(t, err)
	d, err := parseDocument(p.profile, string(text))
	require.NoError(t, err)
	assert.Equal(t, []string{"# learned 2026-03-01", "env=GREETING=${GREETING}  # app.py:3"}, d.inBlock("learning_guard_envs"))
	assert.Equal(t, []string{"# learned 2026-03-01", "expose-ro=./data", "# not learned: listing ~"}, d.inBlock("learning_guard_files"))
	assert.Equal(t, []string{"# learned 2026-03-01", "python-api=ALLOW:os.system  # HIGH RISK; process-exec"}, d.inBlock("learning_guard_api"))
	assert.Equal(t, []string{".py-sandboxes"}, p.names(), "nothing is left beside it")

	before, err := os.Stat(p.profile)
	require.NoError(t, err)
	changed, err = p.write(someResult())
	require.NoError(t, err)
	assert.False(t, changed, "the same again adds nothing")
	after, err := os.Stat(p.profile)
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after))
	assert.Equal(t, []string{".py-sandboxes"}, p.names())
}

func TestWriteKeepsWhatAPersonWrote(t *testing.T) {
	p := newProject(t)
	mine := "# größe\r\nenv=A=1   # mine \t\r\n# <learning_guard_files>\r\n  expose-ro=./data\r\n# </learning_guard_files>\r\n\r\n\tenv = B=2"
	mine = strings.Replace(mine, "\tenv = B=2", "env=B=2", 1)
	require.NoError(t, os.WriteFile(p.profile, []byte(mine), 0o640))
	changed, err := p.write(someResult())
	require.NoError(t, err)
	assert.True(t, changed)
	text, err := os.ReadFile(p.profile)
	require.NoError(t, err)
	assert.Equal(t, strings.Replace(mine, "# </learning_guard_files>", "# learned 2026-03-01\r\n# not learned: listing ~\r\n# </learning_guard_files>", 1)+
		"\r\n\r\n# <learning_guard_envs>\r\n# learned 2026-03-01\r\nenv=GREETING=${GREETING}  # app.py:3\r\n# </learning_guard_envs>\r\n"+
		"\r\n# <learning_guard_api>\r\n# learned 2026-03-01\r\npython-api=ALLOW:os.system  # HIGH RISK; process-exec\r\n# </learning_guard_api>\r\n", string(text))
	old, err := os.ReadFile(p.profile + ".old")
	require.NoError(t, err)
	assert.Equal(t, mine, string(old))
	info, err := os.Stat(p.profile)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())
}

func TestWriteTouchesNothingWhereItMustNot(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		bad  Learned
		want string
	}{
		"damaged markers":       {text: "# <learning_guard_envs>\n", want: "never ends"},
		"a rule that no parser": {text: "", bad: Learned{Family: FamilyEnv, Line: "nosuchkey=1"}, want: "would not load"},
		"a family of its own":   {text: "", bad: Learned{Family: "x", Line: "env=A=1"}, want: "no block for the family"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			require.NoError(t, os.WriteFile(p.profile, []byte(c.text), 0o644))
			r := someResult()
			if c.bad.Line != "" {
				r.Lines = append(r.Lines, c.bad)
			}
			changed, err := p.write(r)
			require.ErrorContains(t, err, c.want)
			assert.False(t, changed)
			text, err := os.ReadFile(p.profile)
			require.NoError(t, err)
			assert.Equal(t, c.text, string(text))
			assert.Equal(t, []string{".py-sandboxes"}, p.names())
		})
	}
}

func TestWriteSetsAScalarOnce(t *testing.T) {
	p := newProject(t)
	require.NoError(t, os.WriteFile(p.profile, []byte("remote-result-mode=data-only\n"), 0o644))
	changed, err := p.write(Result{At: day, Lines: []Learned{{Family: FamilyResult, Line: "remote-result-mode=objects"}}})
	require.NoError(t, err)
	assert.False(t, changed, "a person's line decides")
}

func TestWriteFollowsALinkAndRefusesWhatIsNoFile(t *testing.T) {
	p := newProject(t)
	kept := p.file(p.outside + "/profile")
	require.NoError(t, os.WriteFile(kept, nil, 0o644))
	require.NoError(t, os.Symlink(kept, p.profile))
	changed, err := p.write(someResult())
	require.NoError(t, err)
	assert.True(t, changed)
	info, err := os.Lstat(p.profile)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink)

	require.NoError(t, os.Remove(p.profile))
	require.NoError(t, os.Symlink(p.outside+"/gone", p.profile))
	_, err = p.write(someResult())
	require.ErrorContains(t, err, "a link to nothing")

	require.NoError(t, os.Remove(p.profile))
	require.NoError(t, os.Mkdir(p.profile, 0o755))
	_, err = p.write(someResult())
	require.ErrorContains(t, err, "not a regular file")
	_, err = Write(filepath.Join(p.dir, "no", "such"), someResult(), WriteOptions{})
	require.ErrorContains(t, err, "its folder cannot be used")
}

func TestTwoRunsTakeTurns(t *testing.T) {
	p := newProject(t)
	lock, err := acquire(p.profile, time.Second)
	require.NoError(t, err)
	_, err = p.write(someResult())
	require.ErrorContains(t, err, "another run")
	lock.release()

	const runs = 8
	failed := make(chan error, runs)
	for i := range runs {
		go func() {
			line := "env=V" + string(rune('A'+i)) + "=1"
			_, err := Write(p.profile, Result{At: day, Lines: []Learned{{Family: FamilyEnv, Line: line}}}, WriteOptions{Env: p.env, Home: p.home, Cwd: p.dir})
			failed <- err
		}()
	}
	for range runs {
		require.NoError(t, <-failed)
	}
	text, err := os.ReadFile(p.profile)
	require.NoError(t, err)
	assert.Equal(t, runs, strings.Count(string(text), "=1\n"), "no run's rules were lost")
	assert.Equal(t, []string{".py-sandboxes", ".py-sandboxes.old"}, p.names())
}

// TestLearnedProfileAllowsWhatWasSeen closes the circle: what was observed, learned and written is allowed, and a
// second run learns nothing.
func TestLearnedProfileAllowsWhatWasSeen(t *testing.T) {
	p := newProject(t)
	p.env["GREETING"] = "hi"
	seen := []Observation{
		{Family: FamilyEnv, Op: "getenv", Subject: "GREETING"},
		read(p.file(p.dir + "/data/a.csv")), wrote(p.file(p.dir + "/out/b.csv")), read(p.file(p.outside + "/a, #\"x/1")),
		{Family: FamilyNet, Op: "connect", Proto: "tcp", Host: "127.0.0.1", Port: 8000},
		{Family: FamilyImport, Subject: "json.decoder"}, {Family: FamilyCall, Subject: "os.system"},
	}
	changed, err := p.write(p.learn(p.options(), seen...))
	require.NoError(t, err)
	assert.True(t, changed)
	text, err := os.ReadFile(p.profile)
	require.NoError(t, err)
	o := p.options()
	o.Policy = p.compiled(string(text))
	assert.Empty(t, p.learn(o, seen...).Lines)
	assert.NotEmpty(t, p.learn(o, read(p.file(p.outside+"/other/1"))).Lines, "another path is not allowed")
	assert.NoError(t, o.Policy.CheckProtected())
}

func TestTableIsPlainAndHarmless(t *testing.T) {
	r := someResult()
	r.Lines[1].Line = "expose-ro=\"./a\x1b[31m\u202eb\""
	got := Table(r, false, 80)
	assert.Equal(t, "environment\n    env=GREETING=${GREETING}             2x  app.py:3\nfiles\n", got[:strings.Index(got, "files\n")+6])
	assert.NotContains(t, got, "\x1b")
	assert.NotContains(t, got, "\u202e")
	assert.Contains(t, got, "  ! python-api=ALLOW:os.system")
	assert.Contains(t, got, "- not learned: listing ~")
	assert.Contains(t, got, "! 1 high, * 0 medium risk")
	assert.Contains(t, Table(r, true, 80), "\x1b[31m! ")
	for _, line := range strings.Split(Table(r, false, 60), "\n") {
		assert.LessOrEqual(t, columns(line), 80, line)
	}
	assert.Equal(t, "nothing new was learned\n", Table(Result{}, true, 80))
}

// FuzzLearnedLines: whatever a program names, the profile that is written loads, and holds no rule but for what was
// named.
func FuzzLearnedLines(f *testing.F) {
	f.Add("plain", "a b,c", "host|*", "mod\nx=1")
	f.Add("A${B}", "\xff\x00", "@private", "*")
	f.Add("=", "~", "DENY", "a.b")
	f.Add("'", "\"", "\u202e", "$")
	f.Fuzz(func(t *testing.T, name, path, host, module string) {
		p := newProject(t)
		p.env[name] = "v"
		seen := []Observation{
			{Family: FamilyEnv, Op: "getenv", Subject: name, Site: path},
			{Family: FamilyFile, Op: "os.listdir", Subject: p.outside + "/" + path, Write: true, Site: name},
			{Family: FamilyNet, Op: "resolve", Host: host, Port: 80, Proto: "tcp", Site: module},
			{Family: FamilyNet, Op: "connect", Host: host, Port: 80, Proto: module},
			{Family: FamilyImport, Subject: module, Dist: host, Version: path},
			{Family: FamilyCall, Subject: module}, {Family: FamilyEval, Op: name}, {Family: FamilyResult, Subject: path},
		}
		r := p.learn(p.options(), seen...)
		_, err := p.write(r)
		require.NoError(t, err)
		loaded, err := profile.Load(profile.Options{Path: p.profile, Env: p.env, Platform: "linux", Home: p.home, Cwd: p.dir})
		require.NoError(t, err)
		bare, err := profile.Load(profile.Options{Path: writeTemplate(t, p), Env: p.env, Platform: "linux", Home: p.home, Cwd: p.dir})
		require.NoError(t, err)
		assert.Equal(t, len(bare.Rules)+r.Rules(), len(loaded.Rules), "as many rules as lines")
		for _, l := range r.Lines {
			assert.True(t, plain(l.Comment) || !strings.ContainsAny(l.Comment, "\n\r\x1b"))
		}
	})
}

func writeTemplate(t *testing.T, p *project) string {
	t.Helper()
	path := p.dir + "/template"
	require.NoError(t, os.WriteFile(path, []byte(profile.Template()), 0o644))
	return path
}

func TestReadySaysBeforehandWhatWriteWouldMeet(t *testing.T) {
	p := newProject(t)
	assert.NoError(t, Ready(p.profile, p.dir))
	assert.NoError(t, Ready("name", p.dir))
	assert.Empty(t, p.names(), "nothing stays behind")
	err := Ready(p.dir+"/no/such/profile", p.dir)
	assert.ErrorContains(t, err, p.dir+"/no/such/profile")
	assert.ErrorContains(t, err, "Make the folder first, or name another file: --learn=FILE")
	assert.ErrorContains(t, Ready(p.dir, p.dir), "not a regular file")
	assert.ErrorContains(t, Ready("/proc/profile", p.dir), "learning into /proc/profile: its folder takes no new files")

	require.NoError(t, os.WriteFile(p.profile, []byte("# <learning_guard_api>\n"), 0o644))
	var damaged *BlockError
	assert.ErrorAs(t, Ready(p.profile, p.dir), &damaged)
	require.NoError(t, os.WriteFile(p.profile, []byte("python-import=json\n"), 0o644))
	assert.NoError(t, Ready(p.profile, p.dir), "a profile without blocks gets them")
}
