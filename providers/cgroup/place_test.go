package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLocate(t *testing.T) {
	const mount = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	for name, c := range map[string]struct{ mounts, groups, root, own, err string }{
		"unified":              {mount, "0::/user.slice/x.scope\n", "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/x.scope", ""},
		"at the top":           {mount, "0::/\n", "/sys/fs/cgroup", "/sys/fs/cgroup", ""},
		"beside version 1":     {mount, "4:memory:/a\n0::/b\n", "/sys/fs/cgroup", "/sys/fs/cgroup/b", ""},
		"a part is mounted":    {strings.Replace(mount, " / /", " /box /", 1), "0::/box/in\n", "/sys/fs/cgroup", "/sys/fs/cgroup/in", ""},
		"another part":         {strings.Replace(mount, " / /", " /box /", 1), "0::/boxes\n", "", "", "lies outside"},
		"of a namespace above": {mount, "0::/../x\n", "", "", "lies outside"},
		"version 1 alone":      {"30 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "4:memory:/a\n", "", "", "no cgroup v2"},
		"not mounted":          {"21 1 0:5 / /proc rw - proc proc rw\n", "0::/\n", "", "", "not mounted"},
		"a strange line":       {"x - cgroup2\n", "0::/\n", "", "", "not mounted"},
	} {
		t.Run(name, func(t *testing.T) {
			root, own, err := locate(c.mounts, c.groups)
			assert.Equal(t, [2]string{c.root, c.own}, [2]string{root, own})
			if c.err == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.err)
			}
		})
	}
}

// A tree of plain folders stands for the kernel's: which place is taken is decided by what its files say.
func TestPlace(t *testing.T) {
	const both, none = "cpu memory pids\n", ""
	group := func(controllers, divides, procs string, more ...string) map[string]string {
		files := map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": divides, "cgroup.procs": procs}
		for _, m := range more {
			name, value, _ := strings.Cut(m, "=")
			files[name] = value + "\n"
		}
		return files
	}
	for name, c := range map[string]struct {
		top, middle, own map[string]string
		want, err        string
		moved            bool
	}{
		"it divides already":        {group(both, both, ""), group(both, both, ""), group(both, both, "7\n8\n"), "top/middle/own", "", false},
		"alone in its group":        {group(both, none, ""), group(both, none, ""), group(both, none, "7\n"), "top/middle/own", "", true},
		"alone, one is missing":     {group(both, none, ""), group(both, none, ""), group("cpu pids\n", none, "7\n"), "", "memory and pids", false},
		"the group above":           {group(both, both, ""), group(both, both, ""), group(both, none, "7\n8\n"), "top/middle", "", false},
		"the one above that":        {group(both, both, ""), group(both, none, ""), group(both, none, "7\n8\n", "memory.max=max"), "top", "", false},
		"bounded itself":            {group(both, both, ""), group(both, both, ""), group(both, none, "7\n8\n", "memory.max=1000"), "", "escape its memory.max", false},
		"bounded on the way":        {group(both, both, ""), group(both, none, "", "pids.max=9"), group(both, none, "7\n8\n"), "", "escape its pids.max", false},
		"nobody divides":            {group(both, none, ""), group(both, none, ""), group(both, none, "7\n8\n"), "", "no control group with the controllers memory and pids", false},
		"memory is not handed down": {group(both, "pids\n", ""), group(both, "cpu pids\n", ""), group(both, none, "7\n8\n"), "", "no control group", false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			own := filepath.Join(root, "top", "middle", "own")
			require.NoError(t, os.MkdirAll(own, 0o755))
			for dir, files := range map[string]map[string]string{"top": c.top, "top/middle": c.middle, "top/middle/own": c.own} {
				for file, text := range files {
					require.NoError(t, os.WriteFile(filepath.Join(root, dir, file), []byte(text), 0o644))
				}
			}
			// The kernel makes the files of a new group; here the test has to.
			below := filepath.Join(own, leaf)
			require.NoError(t, os.Mkdir(below, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(below, "cgroup.procs"), nil, 0o644))

			h := host{root: filepath.Join(root, "top"), own: own, pid: 7}
			for _, change := range []bool{false, true} {
				p, err := h.place(change)
				if c.err != "" {
					require.ErrorContains(t, err, c.err)
					continue
				}
				require.NoError(t, err)
				assert.Equal(t, filepath.Join(root, c.want), p.String())
				moved, err := os.ReadFile(filepath.Join(below, "cgroup.procs"))
				require.NoError(t, err)
				assert.Equal(t, change && c.moved, string(moved) == "7", "only who is alone, and only for a start")
			}
			divides, err := os.ReadFile(filepath.Join(own, "cgroup.subtree_control"))
			require.NoError(t, err)
			assert.Equal(t, c.moved, strings.HasPrefix(string(divides), "+memory +pids"))
		})
	}
}
