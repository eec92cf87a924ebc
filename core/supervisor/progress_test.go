package supervisor

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pysandboxes/pysandboxes/core/learn"
)

func TestWhatALearningRunHasSeenSoFar(t *testing.T) {
	assert.Equal(t, "nothing", counts(nil))
	assert.Equal(t, "1 file, 2 imports", counts(map[string]int{learn.FamilyImport: 2, learn.FamilyFile: 1}))
	assert.Equal(t, "30 files, 1 network address, 4 calls", counts(map[string]int{learn.FamilyCall: 4, learn.FamilyNet: 1, learn.FamilyFile: 30, learn.FamilyEnv: 9}))
}
