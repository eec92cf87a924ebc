package reference

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/audit"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

func TestPagesAreCurrent(t *testing.T) {
	for name, page := range Pages {
		on, err := os.ReadFile(filepath.Join("../../docs/reference", name))
		require.NoError(t, err, "run make gen")
		assert.Equal(t, page(), string(on), "%s is not what the tables say: run make gen", name)
	}
}

func TestPagesNameEverything(t *testing.T) {
	text := Profile()
	for _, k := range append(append([]profile.Key{}, profile.Keys...), profile.ProviderKeys...) {
		assert.Contains(t, text, "`"+k.Name, k.Name)
	}
	calls := Calls()
	for _, c := range audit.Calls {
		assert.Contains(t, calls, "| `"+c.Name+"` |")
	}
	for _, c := range audit.Categories {
		assert.NotEmpty(t, opens[c], c)
	}
}

// A bar inside of a cell would end it: every row of a table has the cells of its head.
func TestRowsHaveTheCellsOfTheirHead(t *testing.T) {
	for name, page := range Pages {
		width := 0
		for _, line := range strings.Split(page(), "\n") {
			if !strings.HasPrefix(line, "|") {
				width = 0
				continue
			}
			n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
			if width == 0 {
				width = n
			}
			assert.Equal(t, width, n, "%s: %s", name, line)
		}
	}
}
