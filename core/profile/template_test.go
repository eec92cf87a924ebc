package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTemplateLoads(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	require.NoError(t, os.WriteFile(path, []byte(Template()), 0o600))
	p, err := Load(Options{Path: path, Home: dir, Cwd: dir, Platform: "linux"})
	require.NoError(t, err)
	got := []string{}
	for _, r := range p.Rules {
		got = append(got, r.Key+"="+r.Value)
	}
	assert.Equal(t, []string{"os-sandbox=auto", "net=DENY|*|@metadata|*|OUT"}, got)
	assert.Contains(t, p.Protected, filepath.Join(dir, ".local.py-sandboxes"), "an include that does not exist is protected")
	assert.Len(t, p.Protected, 4)
}

// Everything that the template offers must hold once the # is taken away.
func TestTemplateExamplesLoad(t *testing.T) {
	for _, s := range sections {
		for _, line := range append(s.try, s.live...) {
			_, err := loadText(t, line)
			assert.NoError(t, err, line)
			assert.Contains(t, Template(), line)
		}
	}
	for _, k := range Keys {
		if k.Example != "" {
			_, err := loadText(t, k.Example)
			assert.NoError(t, err, k.Example)
		}
	}
}

func TestTemplateHoldsTheLearnedBlocksOnce(t *testing.T) {
	for _, b := range Blocks {
		assert.Equal(t, 1, strings.Count(Template(), "\n# <"+b.Tag+">\n# </"+b.Tag+">\n"), b.Tag)
	}
}

func TestKeysAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range append(append([]Key{}, Keys...), ProviderKeys...) {
		assert.False(t, seen[k.Name], "%s stands twice", k.Name)
		seen[k.Name] = true
		assert.NotEmpty(t, k.Family, k.Name)
		assert.NotEmpty(t, k.Grammar, k.Name)
		assert.NotEmpty(t, k.Meaning, k.Name)
		assert.Equal(t, k.Kind == Choice, len(k.Choices) > 0, k.Name)
	}
}

func loadText(t *testing.T, text string, set ...func(*Options)) (*Profile, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	o := Options{Path: path, Home: dir, Cwd: dir, Platform: "linux", Env: map[string]string{"HOST": "h", "EMPTY": "", "A_KEY": "1", "B_KEY": "2", "COMMA": "a,b", "BAR": "TCP|x"}}
	for _, f := range set {
		f(&o)
	}
	return Load(o)
}
