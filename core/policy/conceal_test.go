package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// relative takes the world's folder off the paths.
func (w *world) relative(paths []string) []string {
	out := []string{}
	for _, p := range paths {
		out = append(out, strings.TrimPrefix(strings.TrimPrefix(p, w.dir), "/"))
	}
	return out
}

func TestProfileBeneathAWritableFolderIsHeldByMounts(t *testing.T) {
	w := newWorld(t)
	w.file(t, "app/deep/inc", "")
	w.folder(t, "app/kept")
	w.ctx.Trusted = []Trusted{{Path: filepath.Join(w.dir, "app/kept"), What: "which is trusted", Made: true}}
	held, err := w.policy(t, "expose-rw=.", `include "./app/deep/inc"`).HoldProtected()
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{".py-sandboxes", "app/deep/inc", "app/kept"}, w.relative(held.ReadOnly))
	assert.Equal(t, []string{"app", "app/deep"}, w.relative(held.Pinned), "what lies above them could be renamed")

	held, err = w.policy(t, "expose-rw=./app/deep", `include "./app/deep/inc"`).HoldProtected()
	require.NoError(t, err)
	assert.Empty(t, held.Pinned, "the exposed folder itself cannot be renamed from inside")
}

func TestATrustedFolderThatIsMissingIsMadeToBeHeld(t *testing.T) {
	w := newWorld(t)
	w.folder(t, "work")
	w.ctx.Trusted = []Trusted{{Path: filepath.Join(w.dir, "work/kept"), What: "which is trusted", Made: true}}
	pol := w.policy(t, "expose-rw=./work")
	assert.Equal(t, []string{"work/kept"}, w.relative(pol.ToMake()))
	held, err := pol.HoldProtected()
	require.NoError(t, err)
	assert.Equal(t, []string{"work/kept"}, w.relative(held.ReadOnly))
	assert.Empty(t, w.policy(t, "expose-ro=./work").ToMake())
	w.folder(t, "work/kept")
	w.ctx.Trusted[0].Made = false
	_, err = w.policy(t, "expose-rw=./work").HoldProtected()
	assert.ErrorContains(t, err, "which is trusted", "an environment that may be written is not held by its package alone")
}

func TestWhatNothingCanBeMountedOnIsNotHeld(t *testing.T) {
	w := newWorld(t)
	w.folder(t, "work")
	_, err := w.policy(t, "expose-rw=./work", `include "./work/absent"`).HoldProtected()
	assert.ErrorContains(t, err, "work/absent is not there")
	assert.ErrorContains(t, err, "an empty file will do")
	w.file(t, "real", "")
	require.NoError(t, os.Symlink("../real", filepath.Join(w.dir, "work/link")))
	_, err = w.policy(t, "expose-rw=./work", `include "./work/link"`).HoldProtected()
	assert.ErrorContains(t, err, "is a link")
	held, err := w.policy(t, "expose-rw=./work", "expose-ro=.").HoldProtected()
	assert.NoError(t, err)
	assert.Empty(t, held)
	_, err = w.policy(t, "expose-rw=./work", "expose-ro=./work/link").HoldProtected()
	assert.ErrorContains(t, err, "goes over the link", "no mount holds a link")
}

func TestWhatIgnoreRulesHideIsFound(t *testing.T) {
	w := newWorld(t)
	for _, f := range []string{"data/a.key", "data/in/b.key", "data/in/c", "data/secret/x", "data/secret/y/z", "else/d.key", "data/venv/lib/os.py", "data/venv/x"} {
		w.file(t, f, "")
	}
	require.NoError(t, os.Symlink("in/c", filepath.Join(w.dir, "data/link.key")))
	w.ctx.Runtime.Stdlib = []string{filepath.Join(w.dir, "data/venv/lib")}
	found := func(lines ...string) Concealed {
		c, err := w.policy(t, lines...).Conceal()
		require.NoError(t, err)
		return c
	}
	c := found("expose-ro=./data", "ignore=*.key", "ignore=secret")
	assert.Equal(t, []string{"data/a.key", "data/in/b.key", "data/secret"}, w.relative(c.Paths))
	assert.Empty(t, c.Pinned)
	c = found("expose-rw=./data", "ignore=./data/**/*.key")
	assert.Equal(t, []string{"data/a.key", "data/in/b.key"}, w.relative(c.Paths))
	assert.Equal(t, []string{"data/in"}, w.relative(c.Pinned), "renamed, it would hide nothing at the next start")
	c = found("expose-ro=./data", "ignore=venv")
	assert.Equal(t, []string{"data/venv/x"}, w.relative(c.Paths), "not what the interpreter needs")
	c = found("expose-ro=./data", "expose-ro=./data/in", "ignore=in")
	assert.Equal(t, []string{"data/in"}, w.relative(c.Paths))
	assert.Empty(t, found("expose-ro=./data", "ignore=/elsewhere/*").Paths)
	_, _, may := w.policy(t, "expose-ro=./data", "ignore=/elsewhere/*").Concealable()
	assert.False(t, may)
	_, e, may := w.policy(t, "expose-ro=./data", "ignore=./data/in/c").Concealable()
	assert.True(t, may)
	assert.Equal(t, filepath.Join(w.dir, "data"), e.Source)
}

func TestHidingThousandsOneByOneIsRefused(t *testing.T) {
	w := newWorld(t)
	w.folder(t, "data")
	for i := range maxHidden + 1 {
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, "data", strings.Repeat("x", i%200+1)+strings.Repeat("y", i/200)+".key"), nil, 0o600))
	}
	_, err := w.policy(t, "expose-ro=./data", "ignore=*.key").Conceal()
	assert.ErrorContains(t, err, "name folders")
}
