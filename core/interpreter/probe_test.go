package interpreter

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// systemPython is any interpreter of a supported version.
func systemPython(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3.11", "python3.12", "python3.13"} {
		if path, err := exec.LookPath(name); err == nil && exec.Command(path, "-c", "pass").Run() == nil {
			out, err := exec.Command(path, "-c", "import sys; print(sys.executable, end='')").Output()
			require.NoError(t, err)
			return string(out)
		}
	}
	t.Skip("no Python 3.11, 3.12 or 3.13 on PATH")
	return ""
}

// venv makes a virtual environment without pip and gives its python and its site-packages.
func venv(t *testing.T) (exe, site string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	out, err := exec.Command(systemPython(t), "-m", "venv", "--without-pip", root).CombinedOutput()
	if err != nil {
		t.Skipf("no virtual environment to be had: %s", out)
	}
	sites, err := filepath.Glob(filepath.Join(root, "lib/python3.*/site-packages"))
	require.NoError(t, err)
	require.Len(t, sites, 1)
	return filepath.Join(root, "bin/python"), sites[0]
}

func home(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	return map[string]string{"HOME": dir, "XDG_CACHE_HOME": filepath.Join(dir, "cache")}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func TestProbeOfAVirtualEnvironment(t *testing.T) {
	exe, site := venv(t)
	in, err := Probe(exe, home(t))
	require.NoError(t, err)
	root := filepath.Dir(filepath.Dir(exe))
	assert.Equal(t, exe, in.Executable, "the link is kept: it says which environment it is")
	assert.Contains(t, in.Prefixes, root)
	assert.Equal(t, []string{site}, in.Runtime.Site)
	assert.Contains(t, in.Path, site)
	assert.Contains(t, in.Runtime.Read, filepath.Join(root, "lib"))
	assert.Contains(t, in.Runtime.Read, filepath.Join(root, "pyvenv.cfg"))
	assert.NotContains(t, in.Runtime.Read, root, "an environment may lie in the root of a project")
	real, err := filepath.EvalSymlinks(exe)
	require.NoError(t, err)
	assert.Contains(t, in.Runtime.Executables, real)
	assert.Contains(t, in.Runtime.Read, "/dev/null")
	assert.NotEmpty(t, in.Runtime.Stdlib)
	assert.Less(t, len(in.Runtime.Read), 60, "each entry costs every start a little")
	for _, wide := range []string{"/", "/usr", "/etc", "/home", "/root", "/etc/passwd", "/etc/ssl", "/etc/ssl/private"} {
		assert.NotContains(t, in.Runtime.Read, wide)
	}
	for _, path := range in.Runtime.Read {
		assert.True(t, filepath.IsAbs(path))
	}
	assert.Empty(t, in.Package)
	assert.ErrorContains(t, in.CheckInstalled("1.2.3"), "-m pip install pysandboxes==1.2.3")
}

func TestProbeRunsNothingOfTheEnvironment(t *testing.T) {
	exe, site := venv(t)
	mark := filepath.Join(t.TempDir(), "ran")
	write(t, filepath.Join(site, "evil.pth"), "import os; open("+`"`+mark+`"`+", 'w')\n")
	write(t, filepath.Join(site, "sitecustomize.py"), "open('"+mark+"', 'w')\n")
	write(t, filepath.Join(site, "pysandboxes/__init__.py"), "open('"+mark+"', 'w')\n")
	in, err := Probe(exe, home(t))
	require.NoError(t, err)
	assert.NoFileExists(t, mark)
	assert.Equal(t, filepath.Join(site, "pysandboxes"), in.Package)
	compiled, err := filepath.Glob(filepath.Join(site, "pysandboxes", "__pycache__", "__init__.*.pyc"))
	require.NoError(t, err)
	assert.Len(t, compiled, 1, "the package is compiled once, outside of the sandbox that could not keep it")
	assert.ErrorContains(t, in.CheckInstalled("1"), "holds no guard for Python "+in.Version)
	require.NoError(t, exec.Command(exe, "-c", "pass").Run())
	assert.FileExists(t, mark, "negative control: a plain start runs it")
}

func TestProbeReadsWherePthLinesLead(t *testing.T) {
	exe, site := venv(t)
	project := tree(t, map[string]string{"src/tool/__init__.py": "", "src/mod.py": "", "src/.env": "", "src/data/x": "", "one.py": "", "pkg/__init__.py": ""})
	write(t, filepath.Join(site, "a.pth"), project+"/src\n# a comment\n/does/not/exist\n/\n")
	write(t, filepath.Join(site, "__editable__.x.pth"), "import __editable___x_finder; __editable___x_finder.install()\n")
	write(t, filepath.Join(site, "__editable___x_finder.py"),
		"from __future__ import annotations\nMAPPING: dict[str, str] = {'pkg': '"+project+"/pkg', 'one': '"+project+"/one'}\nNAMESPACES: dict[str, list[str]] = {}\n")
	in, err := Probe(exe, home(t))
	require.NoError(t, err)
	assert.Contains(t, in.Path, project+"/src")
	assert.Subset(t, in.Runtime.Read, []string{project + "/src/tool", project + "/src/mod.py", project + "/pkg", project + "/one.py"})
	for _, closed := range []string{project, project + "/src", project + "/src/.env", project + "/src/data"} {
		assert.NotContains(t, in.Runtime.Read, closed, "only what can be imported")
	}
	assert.NotContains(t, in.Runtime.Read, "/")
	assert.Equal(t, []string{site}, in.Runtime.Site, "a project under work is no installed library")
}

func TestProbeIsCachedUntilSomethingChanges(t *testing.T) {
	exe, site := venv(t)
	env := home(t)
	first, err := Probe(exe, env)
	require.NoError(t, err)
	store := cacheFor(exe, env)
	require.Equal(t, first, store.load())
	info, err := os.Stat(store.path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	project := tree(t, map[string]string{"src/x.py": ""})
	t.Run("a new pth file", func(t *testing.T) {
		write(t, filepath.Join(site, "a.pth"), project+"/src\n")
		require.Nil(t, store.load())
		in, err := Probe(exe, env)
		require.NoError(t, err)
		assert.Contains(t, in.Path, project+"/src")
	})
	t.Run("the environment's settings", func(t *testing.T) {
		require.NotNil(t, store.load())
		later := time.Now().Add(time.Hour)
		require.NoError(t, os.Chtimes(filepath.Join(filepath.Dir(filepath.Dir(exe)), "pyvenv.cfg"), later, later))
		assert.Nil(t, store.load())
		_, err := Probe(exe, env)
		require.NoError(t, err)
	})
	t.Run("others may write it", func(t *testing.T) {
		require.NotNil(t, store.load())
		require.NoError(t, os.Chmod(store.path, 0o622))
		assert.Nil(t, store.load())
		require.NoError(t, os.Chmod(store.path, 0o600))
	})
	t.Run("it does not parse", func(t *testing.T) {
		for _, content := range []string{"", "{", "[]", `{"Key":"x"}`, "\x00"} {
			require.NoError(t, os.WriteFile(store.path, []byte(content), 0o600))
			assert.Nil(t, store.load(), "%q", content)
		}
	})
	t.Run("it is a link", func(t *testing.T) {
		require.NoError(t, os.Remove(store.path))
		require.NoError(t, os.Symlink("/dev/zero", store.path))
		assert.Nil(t, store.load())
	})
}

func TestProbeSaysWhatIsWrong(t *testing.T) {
	root := tree(t, map[string]string{
		"dies": "#!/bin/sh\necho oh no >&2\nexit 3\n", "chats": "#!/bin/sh\necho hello\n",
		"old": "#!/bin/sh\necho '{\"version\":\"3.9\",\"full_version\":\"3.9.18\"}'\n",
	})
	for name, says := range map[string]string{
		"dies": "oh no", "chats": "did not answer as a CPython does", "old": "is Python 3.9.18; 3.11 or newer is needed", "absent": "no such file",
	} {
		_, err := Probe(filepath.Join(root, name), home(t))
		assert.ErrorContains(t, err, says)
		assert.ErrorContains(t, err, filepath.Join(root, name))
	}
	_, err := Probe("python3", nil)
	assert.ErrorContains(t, err, "an absolute path is needed")
}

func TestModuleFindsFilesWithoutImporting(t *testing.T) {
	root := tree(t, map[string]string{
		"one.py": "", "pkg/__init__.py": "", "pkg/__main__.py": "", "pkg/sub.py": "", "pkg/deep/__init__.py": "",
		"space/inner.py": "", "later/space/x.py": "", "ext.cpython-311-x86_64-linux-gnu.so": "", "pkg.py": "",
	})
	in := &Interpreter{Suffixes: []string{".py", ".pyc", ".cpython-311-x86_64-linux-gnu.so"}}
	for name, want := range map[string][]string{
		"one":         {"one.py"},
		"pkg":         {"pkg/__init__.py", "pkg/__main__.py"},
		"pkg.sub":     {"pkg/__init__.py", "pkg/sub.py"},
		"pkg.deep":    {"pkg/__init__.py", "pkg/deep/__init__.py"},
		"space.inner": {"space/inner.py"},
		"ext":         {"ext.cpython-311-x86_64-linux-gnu.so"},
		"absent":      nil,
		"one.x":       {"one.py"},
		"":            nil,
		"..":          nil,
		"a/../one":    nil,
	} {
		var paths []string
		for _, file := range want {
			paths = append(paths, filepath.Join(root, file))
		}
		assert.Equal(t, paths, in.Module(name, []string{filepath.Join(root, "nothing"), root}), name)
	}
}

func TestNetworkFilesComeOnlyWithANetworkRule(t *testing.T) {
	in := &Interpreter{}
	assert.NotContains(t, in.RuntimeFor(false).Read, "/etc/hosts")
	assert.Contains(t, in.RuntimeFor(true).Read, "/etc/hosts")
}
