package policy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The way that remembers folders gives what the plain one gives, for links of every kind.
func TestRememberedFoldersResolveAlike(t *testing.T) {
	w := newWorld(t)
	w.file(t, "real/deep/x", "")
	w.file(t, "file", "")
	for link, target := range map[string]string{"link": "real", "real/up": "..", "real/self": ".", "dangling": "gone/further", "real/out": "../file", "round": "round", "tofile": "file",
		"absolute": filepath.Join(w.dir, "real/deep"), "twice": "link", "dangling2": "dangling"} {
		require.NoError(t, os.Symlink(target, filepath.Join(w.dir, link)))
	}
	c := &compiler{Policy: &Policy{}}
	for _, name := range []string{"", "real", "real/deep/x", "link/deep/x", "link/new", "link/new/er", "real/up/real/x", "real/self/self", "dangling", "dangling/x", "dangling2/x/y", "real/out", "real/out/x",
		"round", "round/x", "file/x", "tofile", "tofile/x", "absolute/x", "twice/deep", "no/such/folder", "real/../file", "link/../file"} {
		for range 2 { // the second time from memory
			path := filepath.Join(w.dir, name)
			want, wantErr := canonical(path)
			got, err := c.canonical(path)
			assert.Equal(t, want, got, name)
			assert.Equal(t, wantErr == nil, err == nil, name)
		}
	}
	for _, path := range []string{"/", "/proc/self/status", "/dev/fd/3", "/dev/stdin", "/dev/null", "/proc/self", "/etc/passwd/x", "/usr"} {
		want, _ := canonical(path)
		got, err := c.canonical(path)
		require.NoError(t, err)
		assert.Equal(t, want, got, path)
	}
}
