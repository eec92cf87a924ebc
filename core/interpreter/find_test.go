package interpreter

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree makes files and links below a temporary folder: "x" a program, "-> target" a link, else the content.
func tree(t *testing.T, entries map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for name, content := range entries {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch {
		case content == "x":
			require.NoError(t, os.WriteFile(path, nil, 0o755))
		case len(content) > 3 && content[:3] == "-> ":
			target := content[3:]
			if target[0] == '/' {
				target = root + target
			}
			require.NoError(t, os.Symlink(target, path))
		default:
			require.NoError(t, os.WriteFile(path, []byte(content), 0o755))
		}
	}
	return root
}

func TestFindFollowsEachWayOfInstalling(t *testing.T) {
	for name, tc := range map[string]struct {
		entries map[string]string
		want    string
	}{
		"virtual environment": {map[string]string{"bin/python-sb": "x", "bin/python": "x", "bin/python3.11": "x", "pyvenv.cfg": "home=/x"}, "bin/python3.11"},
		"uv tool or pipx: a link into the environment, another Python beside the link": {map[string]string{
			"local/bin/python-sb": "-> ../../tools/sb/bin/python-sb", "local/bin/python3.12": "x",
			"tools/sb/bin/python-sb": "x", "tools/sb/bin/python": "x", "tools/sb/pyvenv.cfg": "home=/x"}, "tools/sb/bin/python"},
		"link mode: the environment's own file is a link into a cache": {map[string]string{
			"env/bin/python-sb": "-> /cache/a1/python-sb", "env/bin/python3": "x", "env/pyvenv.cfg": "home=/x", "cache/a1/python-sb": "x"}, "env/bin/python3"},
		"conda: a prefix that is no virtual environment": {map[string]string{"bin/python-sb": "x", "bin/python": "x", "bin/python3.13": "x"}, "bin/python3.13"},
		"two versions beside it: the one that python3 is": {map[string]string{
			"bin/python-sb": "x", "bin/python3": "x", "bin/python3.11": "x", "bin/python3.13": "x"}, "bin/python3"},
		"not executable, a folder, a config script": {map[string]string{"bin/python-sb": "x", "bin/python3.11-config": "x", "bin/python3/x": "x", "bin/python": "x"}, "bin/python"},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, tc.entries)
			for _, self := range []string{"bin/python-sb", "local/bin/python-sb", "env/bin/python-sb"} {
				if _, err := os.Lstat(filepath.Join(root, self)); err == nil {
					got, err := Find(filepath.Join(root, self))
					require.NoError(t, err)
					assert.Equal(t, filepath.Join(root, tc.want), got)
				}
			}
		})
	}
}

func TestFindReadsTheSiblingScript(t *testing.T) {
	root := tree(t, map[string]string{"opt/bin/python3.11": "x", "home/bin/python-sb": "x", "home/bin/python3.13": "x"})
	exe := filepath.Join(root, "opt/bin/python3.11")
	for name, first := range map[string]string{
		"plain":             "#!" + exe + "\nimport sys\n",
		"long path":         "#!/bin/sh\n'''exec' " + exe + " \"$0\" \"$@\"\n' '''\n",
		"long and spaced":   "#!/bin/sh\n'''exec' \"" + exe + "\" \"$0\" \"$@\"\n' '''\n",
		"trailing carriage": "#! " + exe + " \n",
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(filepath.Join(root, "home/bin/pysandboxes"), []byte(first), 0o755))
			got, err := Find(filepath.Join(root, "home/bin/python-sb"))
			require.NoError(t, err)
			assert.Equal(t, exe, got, "the script knows better than what happens to lie beside")
		})
	}
}

func TestFindIgnoresAScriptThatNamesNoInterpreter(t *testing.T) {
	for _, first := range []string{"", "#!/usr/bin/env python3\n", "#!/does/not/exist\n", "#!relative/python\n", "\x7fELF\x00", "#!/bin/sh\necho\n"} {
		root := tree(t, map[string]string{"bin/python-sb": "x", "bin/pysandboxes": first + " "})
		_, err := Find(filepath.Join(root, "bin/python-sb"))
		var missing *NotFoundError
		require.ErrorAs(t, err, &missing, "%q", first)
		assert.Contains(t, missing.Looked, filepath.Join(root, "bin/pysandboxes (its first line)"))
		assert.Contains(t, missing.Looked, filepath.Join(root, "bin/python3.N, python3, python"))
		assert.Contains(t, err.Error(), "uv tool install python-sb")
	}
}

func TestFindEndsOnALinkLoop(t *testing.T) {
	root := tree(t, map[string]string{"bin/python-sb": "-> python-sb"})
	_, err := Find(filepath.Join(root, "bin/python-sb"))
	assert.ErrorContains(t, err, "no Python interpreter belongs to")
}

func TestLibraryFolders(t *testing.T) {
	for _, folder := range []string{"/lib", "/lib64", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"} {
		assert.True(t, libraryFolder(folder), folder)
	}
	for _, folder := range []string{"/", "/usr", "/usr/local", "/libx", "/opt/lib", "/usr/lib/ssl", "/usr/lib/x86_64-linux-gnu/x", "/usr/lib/git-core", "/home/lib"} {
		assert.False(t, libraryFolder(folder), folder)
	}
}
