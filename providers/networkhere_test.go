package providers_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/providers"
)

func TestNetworkHere(t *testing.T) {
	for _, c := range []struct {
		word                    string
		namespaces, descriptors bool
		want                    string
	}{
		{"unwalled", true, true, "unwalled (PYSANDBOXES_NETWORK=unwalled)"},
		{"unwalled", false, true, "walled cannot be had"},
		{"walled", true, true, "a network of its own"},
		{"walled", false, true, "does not start"},
		{"walled", true, false, "pidfd_getfd is not permitted here: a profile with network rules does not start"},
		{"", true, false, "pidfd_getfd is not permitted here"},
		{"", true, true, "the default"},
	} {
		got, err := providers.NetworkHere(c.word, c.namespaces, c.descriptors)
		require.NoError(t, err)
		assert.Contains(t, got, c.want)
	}
	_, err := providers.NetworkHere("open", true, true)
	assert.ErrorContains(t, err, "PYSANDBOXES_NETWORK=open")
}
