package providers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/providers"
	"github.com/pysandboxes/pysandboxes/providers/none"
)

func TestChoose(t *testing.T) {
	p, notices, err := providers.Choose("subprocess")
	require.NoError(t, err)
	assert.Equal(t, "subprocess", p.Name())
	require.Len(t, notices, 1)
	assert.Contains(t, notices[0], "no kernel boundary")
	assert.False(t, p.Holds().Files)

	p, notices, err = providers.Choose("none")
	require.NoError(t, err)
	assert.NotEmpty(t, notices)
	_, err = p.Prepare(nil, providers.Child{})
	assert.ErrorIs(t, err, none.ErrDirect)

	_, _, err = providers.Choose("landlok")
	assert.ErrorContains(t, err, "did you mean landlock?")
}

// auto takes a kernel boundary or refuses with the line that does without.
func TestAutoNeverFallsBelowAKernelBoundary(t *testing.T) {
	p, notices, err := providers.Choose("auto")
	if err != nil {
		assert.True(t, strings.HasSuffix(err.Error(), "os-sandbox=subprocess"), "%v", err)
		return
	}
	assert.True(t, p.Holds().Files)
	assert.Empty(t, notices)
}

func TestReportsSayWhatIsNotHeld(t *testing.T) {
	for _, r := range providers.Reports() {
		if r.Usable {
			assert.NotEmpty(t, r.Gaps, r.Name)
		} else {
			assert.NotEmpty(t, r.Why, r.Name)
			assert.NotEmpty(t, r.How, r.Name)
		}
	}
}
