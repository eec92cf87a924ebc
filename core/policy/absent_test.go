package policy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAbsent(t *testing.T) {
	w := newWorld(t)
	dir := w.dir
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "there/deep"), 0o755))
	p := w.policy(t, "expose-rw=./out.json", "expose-rw=./there/new", "expose-rw=./there/deep/new", "expose-rw=./there/deep", "expose-rw=./made/",
		"expose-ro=./missing")
	for path, want := range map[string]string{
		"out.json":       "own folder",
		"there/new":      "expose-rw=./there",
		"there/new/x":    "expose-rw=./there",
		"there/deep/new": "", // its folder is there, and exposed
		"there/deep/x":   "",
		"made":           "",
		"made/x":         "",
		"missing":        "", // no rule for writing
		"other":          "",
	} {
		d, absent := p.Absent(filepath.Join(dir, path), "open")
		assert.Equal(t, want != "", absent, path)
		if !absent {
			continue
		}
		assert.False(t, d.Allow)
		assert.Contains(t, d.Message(), "was not there when the sandbox started")
		if want == "own folder" { // the profile lies beside it
			want = "expose-rw=./output/"
		}
		assert.Equal(t, []string{want}, d.Add, path)
		assert.Contains(t, d.Message(), "\n    "+want)
	}
}

func TestAbsentWhereNoFolderCanBeExposed(t *testing.T) {
	p := newWorld(t).policy(t, "expose-rw=/etc/no-such-file-here")
	d, absent := p.Absent("/etc/no-such-file-here", "open")
	require.True(t, absent)
	assert.Empty(t, d.Add)
	assert.Contains(t, d.Message(), "Make it before the start.")
	assert.NotContains(t, d.Message(), "To allow it")
}
