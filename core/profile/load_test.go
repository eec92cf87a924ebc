package profile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// values renders rules as key=[items].
func values(p *Profile) []string {
	var out []string
	for _, r := range p.Rules {
		out = append(out, r.Key+"=["+strings.Join(r.Items, "][")+"]")
	}
	return out
}

func TestValues(t *testing.T) {
	for line, want := range map[string]string{
		"expose-ro=/a":                          "expose-ro=[/a]",
		"  expose-ro = /a  ":                    "expose-ro=[/a]",
		"expose-ro=/a,/b":                       "expose-ro=[/a][/b]",
		"expose-ro=/a b # why":                  "expose-ro=[/a b]",
		"expose-ro=/a#b":                        "expose-ro=[/a#b]",
		`expose-ro="/a, b # c"`:                 "expose-ro=[/a, b # c]",
		`expose-ro='/a "b"' , '/c'# not a`:      "",
		`expose-ro='/a "b"' , '/c' # a`:         `expose-ro=[/a "b"][/c]`,
		`expose-ro="/a\n\x41\\\"\$\t\r${HOST}"`: "expose-ro=[/a\nA\\\"$\t\rh]",
		`expose-ro='/a\n${HOST}'`:               `expose-ro=[/a\n${HOST}]`,
		"expose-ro=/don't":                      "expose-ro=[/don't]",
		"expose-ro=${HOST}/x":                   "expose-ro=[h/x]",
		"expose-ro=${NO:-/d}/x":                 "expose-ro=[/d/x]",
		"expose-ro=${EMPTY:-/d}":                "expose-ro=[/d]",
		"expose-ro=${NO:-${NOR:-${HOST}}z}":     "expose-ro=[hz]",
		"expose-ro=/x,${COMMA}":                 "expose-ro=[/x][a,b]",
		"expose-ro=$5":                          "expose-ro=[$5]",
		"python-import=a, b.c ,DENY:d":          "python-import=[a][b.c][DENY:d]",
		`python-import="a, b"`:                  "python-import=[a][b]",
		"python-import=${COMMA}":                "python-import=[a,b]",
		"python-import=":                        "python-import=[]",
		"net=ALLOW|TCP|x|80,443|OUT":            "net=[ALLOW][TCP][x][80,443][OUT]",
		`net="ALLOW|TCP|x|80|OUT"`:              "net=[ALLOW][TCP][x][80][OUT]",
		"net=ALLOW|${BAR}|80|OUT":               "net=[ALLOW][TCP|x][80][OUT]",
		"eval-timeout:calc=5s":                  "eval-timeout:calc=[5s]",
		"bwrap.any-thing=v":                     "bwrap.any-thing=[v]",
		"unenv=*_KEY":                           "unenv=[*_KEY]",
	} {
		p, err := loadText(t, line)
		if want == "" {
			assert.Error(t, err, line)
			continue
		}
		require.NoError(t, err, line)
		assert.Equal(t, []string{want}, values(p), line)
	}
}

func TestEnvRules(t *testing.T) {
	for line, want := range map[string][]Variable{
		"env=A=b":            {{"A", "b"}},
		"env=A=b=c":          {{"A", "b=c"}},
		"env=A=":             {{"A", ""}},
		"env=A= b # c":       {{"A", "b"}},
		`env=A=" b # c"`:     {{"A", " b # c"}},
		`env="A= b"`:         {{"A", " b"}},
		"env=A=${HOST}":      {{"A", "h"}},
		"env=A=x${HOST}y":    {{"A", "xhy"}},
		"env=A=${NO}":        nil,
		"env=A=x${NO}":       nil,
		"env=A=${NO:-d}":     {{"A", "d"}},
		"env=A=${EMPTY}":     {{"A", ""}},
		"env=A='${HOST}'":    {{"A", "${HOST}"}},
		"env=*_KEY=${*_KEY}": {{"A_KEY", "1"}, {"B_KEY", "2"}},
		"env=X_*=${*_KEY}":   {{"X_A", "1"}, {"X_B", "2"}},
		"env=NO_*=${NO_*}":   nil,
	} {
		p, err := loadText(t, line)
		require.NoError(t, err, line)
		assert.Equal(t, want, p.Rules[0].Env, line)
		assert.NotContains(t, p.Rules[0].Value, "xhy", "the value of the host is not kept")
	}
}

func TestSyntaxErrors(t *testing.T) {
	for line, want := range map[string]string{
		"pyton-import=x":             "2:1: unknown key pyton-import\n    pyton-import=x\n    ^^^^^^^^^^^^\n  Did you mean python-import?",
		"expose_ro=/a":               "Did you mean expose-ro?",
		"Expose-RO=/a":               "Did you mean expose-ro?",
		"expose-ro":                  "2:1: this is not a rule",
		"expose-ro /a":               "Did you mean expose-ro=…?",
		"=x":                         "this is not a rule",
		"expose-ro=":                 "needs a value",
		`expose-ro="/a`:              "2:11: the quote is not closed",
		`expose-ro="/a"b`:            "2:15: unexpected text after the closing quote",
		`expose-ro="\q"`:             "unknown escape",
		`expose-ro="\x00"`:           "NUL",
		`expose-ro="\x4"`:            "unknown escape",
		"expose-ro=${":               "needs the name",
		"expose-ro=${A":              "not closed",
		"expose-ro=${A:-b":           "not closed",
		"expose-ro=${A-b}":           "the variable A-b is not set", // a dash may be part of a name
		"expose-ro=${NO}":            "2:11: the variable NO is not set\n    expose-ro=${NO}\n              ^^^^^",
		"expose-ro=${NO:-${NOR}}":    "the variable NOR is not set",
		"expose-ro=${A_*}":           "for env rules only",
		"env=A":                      "needs a value",
		"env==b":                     "name of the variable is empty",
		"env=${HOST}=b":              "begins with the name",
		"env=A_*=x":                  "needs exactly one ${}",
		"env=A_*=${A_*:-x}":          "needs exactly one ${}",
		"env=A_*_*=${A_*}":           "one * in the name",
		"env=A=${A_*}":               "needs a pattern as the name",
		"py-sandbox=yes":             `"yes" is not a value of py-sandbox`,
		"os-sandbox=landlok":         "Did you mean landlock?",
		"limit-memory=lots":          "is not a value of limit-memory",
		"limit-memory=99999999999GB": "is not a value",
		"limit-cpu=-1s":              "is not a value",
		"limit-processes=1__0":       "is not a value",
		"learn=true":                 "Name the file",
		"qemu.colour=red":            "unknown key qemu.colour",
		"landlock.x=1":               "unknown key landlock.x",
		"eval-sintax=arith":          "Did you mean eval-syntax?",
		"eval-syntax:=arith":         "unknown key",
		"include":                    "path to include is missing",
		"include ./x y\" z":          "",
		"include=./x":                "include takes a path",
		"include-platform ./x":       "needs a platform",
		"include-platform=linus ./x": "unknown platform linus",
		`include ""`:                 "is empty",
		"os-sandbox=${NO:-" + strings.Repeat("${A:-", 40) + "x" + strings.Repeat("}", 41): "nested too deep",
	} {
		_, err := loadText(t, "# first\n"+line)
		if want == "" {
			assert.NoError(t, err, line)
			continue
		}
		require.Error(t, err, line)
		var se *SyntaxError
		require.ErrorAs(t, err, &se, line)
		assert.Equal(t, 2, se.Pos.Line, line)
		assert.ErrorContains(t, err, want, line)
	}
}

func TestScalarsRepeat(t *testing.T) {
	_, err := loadText(t, "learn=a\nexpose-ro=/x\nlearn=b")
	assert.ErrorContains(t, err, ":3:1: learn is set twice, first at ")
	p, err := loadText(t, "expose-ro=/x\nexpose-ro=/x\neval-timeout:a=1s\neval-timeout:b=2s")
	require.NoError(t, err)
	assert.Len(t, p.Rules, 4)
}

func TestEncodings(t *testing.T) {
	p, err := loadText(t, "\ufeffexpose-ro=/a\r\n# end\r\nexpose-ro=/ü\r\n")
	require.NoError(t, err)
	assert.Equal(t, []string{"expose-ro=[/a]", "expose-ro=[/ü]"}, values(p))
	for text, want := range map[string]string{
		"\xff\xfee\x00":                    "1:1: the file is UTF-16",
		"# caf\xe9":                        "1:6: the line is not valid UTF-8",
		"# ok\n# a\x00b":                   "2:4: the line holds a NUL byte",
		"expose-ro=/a\x1b[2K":              "1:13: the line holds the control character U+001B",
		"expose-ro=/a\rignore=x":           "control character U+000D",
		"# \u202e#":                        "1:3: the line holds the invisible character U+202E",
		"# a\u2028expose-ro=/":             "invisible character U+2028",
		"a\ufeff=b":                        "invisible character",
		"# " + strings.Repeat("x", 70<<10): "longer than 64 KiB",
		"python-import=" + strings.Repeat("a,", 5000): "too many items",
	} {
		_, err := loadText(t, text)
		assert.ErrorContains(t, err, want, "%.40q", text)
		assert.NotContains(t, err.Error(), "\x1b")
	}
	long, err := loadText(t, "os-sandbox="+strings.Repeat("x", 5000))
	assert.Nil(t, long)
	for _, l := range strings.Split(err.Error(), "\n")[1:3] {
		assert.Less(t, len(l), 200)
	}
}

func TestBadFiles(t *testing.T) {
	dir := t.TempDir()
	path := func(n string) string { return filepath.Join(dir, n) }
	require.NoError(t, os.Mkdir(path("folder"), 0o700))
	require.NoError(t, syscall.Mkfifo(path("fifo"), 0o600))
	require.NoError(t, os.Symlink("loop", path("loop")))
	require.NoError(t, os.Symlink("nowhere", path("dangling")))
	require.NoError(t, os.WriteFile(path("big"), make([]byte, maxFile+1), 0o600))
	for name, want := range map[string]string{
		"folder": "is a folder", "fifo": "is a FIFO", "loop": "too many levels", "dangling": "no such file", "absent": "no such file", "big": "larger than 4 MiB",
	} {
		for _, o := range []Options{{Path: path(name), Cwd: dir}, {Path: path("including"), Cwd: dir}} {
			require.NoError(t, os.WriteFile(path("including"), []byte(`include "./`+name+`"`), 0o600))
			done := make(chan error, 1)
			go func() { _, err := Load(o); done <- err }()
			select {
			case err := <-done:
				if o.Path == path("including") && (name == "absent" || name == "dangling") {
					assert.NoError(t, err, "a missing include is ignored")
					continue
				}
				assert.ErrorContains(t, err, want, name)
				assert.ErrorContains(t, err, path(name))
			case <-time.After(10 * time.Second):
				t.Fatal("loading a", name, "hangs")
			}
		}
	}
	_, err := Load(Options{Path: path("absent")})
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Load(Options{Path: "/dev/zero"})
	assert.ErrorContains(t, err, "is a device")
}

func TestIncludes(t *testing.T) {
	dir := t.TempDir()
	write := func(n, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, n)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, n), []byte(text), 0o600))
	}
	load := func(o ...Override) (*Profile, error) {
		return Load(Options{Path: filepath.Join(dir, "main"), Home: filepath.Join(dir, "home"), Cwd: "/", Platform: "linux", Overrides: o})
	}
	write("main", "include 'a'\nlimit-cpu=1s\ninclude-platform=linux \"sub/b\" # why\ninclude-platform=win32 \"w\"\ninclude ~/h\n")
	write("a", "limit-cpu=2s\nlimit-processes=2\nlimit-memory=2MB\nlimit-open-files=2\ninclude './c'")
	write("c", "limit-open-files=3\nlimit-result=3\n")
	write("sub/b", "limit-processes=4\nlimit-result=4\ninclude './d'")
	write("sub/d", "limit-memory=5MB\nexpose-ro=x\n")
	write("w", "this is not read")
	write("home/h", "eval-timeout=6s")
	p, err := load()
	require.NoError(t, err)
	for key, want := range map[string]string{
		"limit-cpu": "1s", "limit-processes": "4", "limit-memory": "5MB", "limit-open-files": "2", "limit-result": "4", "eval-timeout": "6s",
	} {
		r, ok := p.Scalar(key)
		require.True(t, ok, key)
		assert.Equal(t, want, r.Value, key)
	}
	_, ok := p.Scalar("learn")
	assert.False(t, ok)
	for _, r := range p.Rules {
		if r.Key == "expose-ro" {
			assert.Equal(t, filepath.Join(dir, "sub/d")+":2", r.Pos.String())
			assert.Equal(t, OriginInclude, r.Origin)
			assert.Equal(t, 2, r.Depth)
		}
	}
	for _, n := range []string{"main", "a", "c", "sub/b", "sub/d", "home/h"} {
		assert.Contains(t, p.Protected, filepath.Join(dir, n))
	}
	p, err = load(Override{"limit-cpu", "9s", OriginCommandLine})
	require.NoError(t, err)
	r, _ := p.Scalar("limit-cpu")
	assert.Equal(t, "9s", r.Value)
	assert.Equal(t, "command line", r.Pos.String())

	write("c", "include './a'")
	_, err = load()
	assert.ErrorContains(t, err, "circle: "+dir+"/a -> "+dir+"/c -> "+dir+"/a")
	write("c", "nonsense=1")
	_, err = load()
	assert.ErrorContains(t, err, dir+"/c:1:1: unknown key")
	for i := range 20 {
		write("deep"+string(rune('a'+i)), "include './deep"+string(rune('b'+i))+"'")
	}
	write("main", "include './deepa'")
	_, err = load()
	assert.ErrorContains(t, err, "deep")
	write("main", strings.Repeat("include './e'\n", 300))
	write("e", "")
	_, err = load()
	assert.ErrorContains(t, err, "more than 256 files")
}

func TestLock(t *testing.T) {
	over := func(o *Options) { o.Overrides = []Override{{"expose-ro", "/etc", OriginCommandLine}} }
	_, err := loadText(t, "learn=false", over)
	assert.ErrorContains(t, err, ":1:")
	assert.ErrorContains(t, err, "locks the profile, so --expose-ro=/etc, given by the command line, is refused")
	p, err := loadText(t, "learn=False", over, func(o *Options) { o.IgnoreOverridesLock = true })
	require.NoError(t, err)
	assert.True(t, p.Locked)
	p, err = loadText(t, "learn=false")
	require.NoError(t, err)
	assert.True(t, p.Locked)
	p, err = loadText(t, "learn=x", over)
	require.NoError(t, err)
	assert.False(t, p.Locked)
	_, err = loadText(t, "learn=false", func(o *Options) { o.Overrides = []Override{{"learn", "x", OriginCode}} })
	assert.Error(t, err, "the lock cannot be taken off from outside")
	for _, origin := range []Origin{OriginCommandLine, OriginCode} {
		p, err = loadText(t, "expose-ro=/a", func(o *Options) { o.Overrides = []Override{{"learn", "false", origin}, {"expose-ro", "/b", origin}} })
		require.NoError(t, err, "who locks may add what belongs to the same start")
		assert.True(t, p.Locked, "%s locks too", origin)
	}
	p, err = loadText(t, "", func(o *Options) {
		o.Overrides = []Override{{"learn", "false", OriginCommandLine}, {"learn", "x", OriginCode}}
	})
	require.NoError(t, err)
	assert.True(t, p.Locked, "a lock from anywhere holds")
}

func TestOverrides(t *testing.T) {
	load := func(o ...Override) (*Profile, error) {
		return Load(Options{Overrides: o, Env: map[string]string{"H": "h"}})
	}
	p, err := load(Override{"env", "A=#fff ${H}", OriginCommandLine}, Override{"net", "ALLOW|TCP|x|80|OUT", OriginCode})
	require.NoError(t, err)
	assert.Equal(t, []Variable{{"A", "#fff h"}}, p.Rules[0].Env)
	assert.Equal(t, "code", p.Rules[1].Pos.String())
	p, err = load(Override{"learn", "b", OriginCommandLine}, Override{"learn", "a", OriginCode})
	require.NoError(t, err)
	r, _ := p.Scalar("learn")
	assert.Equal(t, "a", r.Value, "code is the strongest")
	for want, o := range map[string]Override{
		"command line: unknown key exposero": {"exposero", "x", OriginCommandLine},
		"code: this is not a rule":           {"", "x", OriginCode},
		"control character":                  {"expose-ro", "a\nignore=b", OriginCode},
		"unknown key include":                {"include", "x", OriginCode},
	} {
		_, err := load(o)
		assert.ErrorContains(t, err, want)
	}
	_, err = load(Override{"learn", "a", OriginCommandLine}, Override{"learn", "b", OriginCommandLine})
	assert.ErrorContains(t, err, "set twice")
}

func TestPortIsAcceptedAndWarnedOf(t *testing.T) {
	p, err := loadText(t, "port=8080")
	require.NoError(t, err)
	require.Len(t, p.Warnings, 1)
	assert.Contains(t, p.Warnings[0].Text, "no effect")
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	pkg, cwd := filepath.Join(dir, "pkg"), filepath.Join(dir, "cwd")
	for _, d := range []string{pkg, cwd} {
		require.NoError(t, os.Mkdir(d, 0o700))
	}
	path, searched, err := Find("", pkg, cwd)
	require.NoError(t, err)
	assert.Empty(t, path)
	assert.Equal(t, []string{pkg + "/" + Name, cwd + "/" + Name}, searched)
	require.NoError(t, os.Symlink("nowhere", cwd+"/"+Name))
	path, _, err = Find("", pkg, cwd)
	require.NoError(t, err)
	assert.Equal(t, cwd+"/"+Name, path, "a dangling link is found, so that it is no reason to learn")
	require.NoError(t, os.WriteFile(pkg+"/"+Name, nil, 0o600))
	path, _, _ = Find("", pkg, cwd)
	assert.Equal(t, pkg+"/"+Name, path)
	path, _, err = Find("../pkg/"+Name, "", cwd)
	require.NoError(t, err)
	assert.Equal(t, pkg+"/"+Name, path)
	_, searched, err = Find("gone", pkg, cwd)
	assert.True(t, errors.Is(err, fs.ErrNotExist))
	assert.Equal(t, []string{cwd + "/gone"}, searched)
}

func TestQuoteReadsBack(t *testing.T) {
	for _, s := range []string{"plain", "/a b", "", " x ", "a,b", "a|b", "#", "a # b", "${X}", "$", "it's", `"q"`, `back\slash`, "new\nline", "\r\t\x01", "caf\xe9", "\u202e", "é", "~", "*"} {
		q, ok := Quote(s)
		require.True(t, ok)
		assert.NotContains(t, q, "\n")
		for _, key := range []string{"expose-ro", "ignore"} {
			p, err := loadText(t, key+"="+q+",x # comment")
			if s == "" || key == "ignore" {
				continue
			}
			require.NoError(t, err, "%q as %s", s, q)
			assert.Equal(t, []string{s, "x"}, p.Rules[0].Items)
		}
	}
	_, ok := Quote("a\x00b")
	assert.False(t, ok)
}

func TestPathsMayBeOdd(t *testing.T) {
	for _, path := range []string{" ", ",", "|"} {
		p, err := loadText(t, `expose-ro="`+path+`"`)
		require.NoError(t, err, "%q", path)
		assert.Equal(t, []string{path}, p.Rules[0].Items)
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{"", Template(), "env=A=${B:-${C}}\nnet=ALLOW|*|*|*|*", `expose-ro="a\x41, b",'c' # d`, "include \"./x\"", "\xff", "learn=false\nlearn=a", "env=*_K=${*_K}", "python-import=\"a,b\", ${X:-c}"} {
		f.Add(s, "value")
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text, value string) {
		path := filepath.Join(dir, Name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		p, err := Load(Options{Path: path, Home: dir, Cwd: dir, Platform: "linux", Env: map[string]string{"X": value, "A_K": value}})
		if err != nil {
			require.Nil(t, p)
			require.NotEmpty(t, err.Error())
			return
		}
		for _, r := range p.Rules {
			require.NotContains(t, r.Value, "\x00")
			require.NotZero(t, r.Pos.Line)
		}
		q, ok := Quote(value)
		require.Equal(t, !strings.Contains(value, "\x00"), ok)
		if !ok || value == "" {
			return
		}
		p, err = Load(Options{Overrides: []Override{{"expose-ro", q, OriginCode}}})
		require.NoError(t, err)
		require.Equal(t, value, p.Rules[0].Items[0])
	})
}
