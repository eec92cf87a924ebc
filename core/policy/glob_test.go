package policy

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPathGlobs(t *testing.T) {
	for _, c := range []struct {
		glob, path string
		hides      bool
	}{
		{"/a/b", "/a/b", true}, {"/a/b", "/a/b/c", true}, {"/a/b", "/a/bc", false}, {"/a/b", "/a", false},
		{"/a/*", "/a/x", true}, {"/a/*", "/a/x/y", true}, {"/a/*", "/a", false}, {"/a/*/c", "/a/b/d/c", false},
		{"/a/**", "/a", false}, {"/a/**", "/a/b", true}, {"/a/**/c", "/a/c", true}, {"/a/**/c", "/a/b/d/c/e", true}, {"/a/**/c", "/a/b", false},
		{"/a/**/b/c", "/a/b/b/c", true}, {"/a/**/b/c", "/a/b/x/c", false}, {"/**/b/**/d", "/x/b/y/b/d", true}, {"/**/b/**/d", "/x/d/b", false},
		{"**/*.key", "/x/y.key", true}, {"**/*.key", "/y.key/z", true}, {"**/*.key", "/x/key", false},
		{"rel/*.log", "/base/rel/x.log", true}, {"rel/*.log", "/rel/x.log", false}, {"/a/[bc]", "/a/c", true}, {"/a/?", "/a/bc", false},
	} {
		var g globs
		require.NoError(t, g.add(c.glob, "/base", 1), c.glob)
		assert.Equal(t, c.hides, g.match(c.path) == 1, "%s for %s", c.glob, c.path)
	}
}

// A program chooses the path that it asks about; the answer must not take longer than that path is long.
func TestMatchingALongPathIsQuick(t *testing.T) {
	var g globs
	require.NoError(t, g.add("/**/a/**/a/**/a/**/b", "/", 1))
	long := strings.Repeat("/a", 2000)
	start := time.Now()
	assert.Zero(t, g.match(long))
	assert.Less(t, time.Since(start), time.Second)
}

// slowly is the definition that matchTree is held against.
func slowly(parts []string, names []string) bool {
	switch {
	case len(parts) == 0:
		return true
	case len(names) == 0:
		return false
	case parts[0] == "**":
		return slowly(parts[1:], names) || slowly(parts, names[1:])
	}
	ok, _ := path.Match(parts[0], names[0])
	return ok && slowly(parts[1:], names[1:])
}

func FuzzGlob(f *testing.F) {
	for _, s := range []string{"*.key", "/a/**/b", "**/.env", "a/[b-c]?", "/a/\\*", "[", "/", "**", "./x/../y", "/**/a/**/a"} {
		f.Add(s, "/a/b/c.key")
	}
	f.Fuzz(func(t *testing.T, glob, asked string) {
		var g globs
		if err := g.add(glob, "/base", 1); err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		if !clean(asked) || len(asked) > 200 {
			return
		}
		hidden := g.match(asked) > 0
		if hidden && asked != "/" {
			require.Positive(t, g.match(asked+"/beneath"), "what lies beneath a hidden folder is hidden")
		}
		for _, pg := range slices.Concat(slices.Collect(maps.Values(g.paths))...) {
			want := slowly(pg.parts, strings.Split(strings.TrimPrefix(asked, "/"), "/"))
			if asked == "/" {
				want = len(pg.parts) == 0
			}
			require.Equal(t, want, matchTree(pg.parts, strings.TrimPrefix(asked, "/")), "%q for %q", pg.parts, asked)
			require.Equal(t, want, hidden, "%q for %q by its folder", pg.parts, asked)
		}
	})
}
