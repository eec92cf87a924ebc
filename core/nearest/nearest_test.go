package nearest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWord(t *testing.T) {
	known := []string{"expose-ro", "expose-rw", "python-import", "net", "env"}
	for word, want := range map[string]string{
		"pyton-import": "python-import", "EXPOSE-RO": "expose-ro", "expose-or": "expose-ro", "expose-r": "expose-ro", "nte": "net",
		"vne": "", "completely-else": "", "": "", strings.Repeat("x", 300): "", "net": "net", "enf": "env",
	} {
		assert.Equal(t, want, Word(word, known), word)
	}
	assert.Empty(t, Word("net", nil))
}
