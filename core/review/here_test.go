package review

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// opened gives what each grant of a profile opens, the folder of the test named.
func (p *place) opened(t *testing.T, lines ...string) []string {
	t.Helper()
	s := p.subject(t, lines...)
	here, grants := NewHere(s), Grants(s)
	var out []string
	for i := range grants {
		out = append(out, p.plain(strings.Join(here.Opens(&grants[i]), "; ")))
	}
	return out
}

func TestWhatAnExposureOpensIsCounted(t *testing.T) {
	p := newPlace(t)
	for name, text := range map[string]string{"data/a.csv": "12345", "data/deep/b.pem": "k", "data/deep/.env": "k", "one.txt": "x"} {
		require.NoError(t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
	}
	served, err := net.Listen("unix", filepath.Join(p.dir, "out", "s"))
	require.NoError(t, err)
	defer served.Close()
	assert.Equal(t, []string{
		"3 files in 2 folders, 7 bytes; names that look like secrets: deep/b.pem",
		"0 files in 1 folder, 0 bytes; 1 socket: whoever serves one acts outside the sandbox",
		"a socket: whoever serves it acts outside the sandbox",
		"a file of 1 byte",
		"nothing is there now",
		"",
	}, p.opened(t, "expose-ro={dir}/data", "expose-rw={dir}/out", "expose-rw={dir}/out/s", "expose-ro={dir}/one.txt", "expose-rw={dir}/gone/", "ignore=.env"),
		"what an ignore rule hides is not told as open")
}

func TestAFolderWithoutEndIsLookedAtForAWhile(t *testing.T) {
	p := newPlace(t)
	for i := range mostEntries/100 + 1 {
		sub := filepath.Join(p.dir, "data", number(int64(i)))
		require.NoError(t, os.Mkdir(sub, 0o700))
		for j := range 100 {
			require.NoError(t, os.Symlink("/", filepath.Join(sub, number(int64(j))))) // links are not followed
		}
	}
	assert.Regexp(t, `^at least 1\d{4} files in \d+ folders, 0 bytes$`, p.opened(t, "expose-ro={dir}/data")[0])
}

func TestWhatNamesOpen(t *testing.T) {
	p := newPlace(t)
	p.env = map[string]string{"APP_A": "1", "APP_B": "2", "APP_KEY": "3"}
	got := p.opened(t, "env=APP_*=${APP_*}", "unenv=*_KEY", "env=APP_A=${APP_A}", "env=GONE=${GONE}",
		"net=ALLOW|TCP|@link-local|80|OUT", "net=ALLOW|TCP|192.0.2.1|80|OUT", "net=DENY|*|@private|*|*",
		"python-api=ALLOW:threads", "python-api=ALLOW:os.system", "python-api=DENY:native")
	assert.Equal(t, []string{"set here: APP_A, APP_B", "", "set here", "not set here"}, got[:4], "no value, and nothing that unenv takes")
	assert.Equal(t, []string{"the networks 169.254.0.0/16, fe80::/10", "", ""}, got[4:7])
	assert.Regexp(t, `^\d+ functions: .*_thread\.start_new_thread`, got[7])
	assert.Equal(t, []string{"", ""}, got[8:])
}

func TestWhereAModuleLies(t *testing.T) {
	p := newPlace(t)
	site := filepath.Join(p.dir, "site")
	for _, name := range []string{"fast/__init__.py", "fast/core.cpython-311-x86_64-linux-gnu.so", "fast.libs/libx.so.1", "slow.py",
		"single.abi3.so", "Fast-1.2.dist-info/RECORD", "space/part/x.py"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(site, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(site, name), []byte("fast/__init__.py,,\n"), 0o600))
	}
	s := p.subject(t, "python-import=fast, slow, single, space.part, nowhere, DENY:slow, *")
	pol, _, err := policy.Compile(s.Profile, policy.Context{Runtime: policy.Runtime{Site: []string{site}}})
	require.NoError(t, err)
	s.Policy = pol
	here, grants := NewHere(s), Grants(s)
	var out []string
	for i := range grants {
		out = append(out, p.plain(strings.Join(here.Opens(&grants[i]), "; ")))
	}
	assert.Equal(t, []string{
		"from Fast 1.2: {dir}/site/fast; with 1 native library, which only the OS layer holds",
		"{dir}/site/slow.py",
		"{dir}/site/single.abi3.so; with 1 native library, which only the OS layer holds",
		"{dir}/site/space/part",
		"", "", "",
	}, out)
}

func TestACommentIsWhatStandsBehindTheRule(t *testing.T) {
	p := newPlace(t)
	s := p.subject(t, `expose-ro="{dir}/a # b"  # app.py:3; twice # told`, "python-import=json # x", "python-import=csv", "env=A=b#c")
	var out []string
	for _, r := range s.Profile.Rules {
		out = append(out, r.Comment)
	}
	assert.Equal(t, []string{"app.py:3; twice # told", "x", "", ""}, out)
}
