//go:build linux && (amd64 || arm64)

package initproc

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// The trial succeeds where it must fail: in the network of the host itself.
func TestTellsTheNetworkOfTheHost(t *testing.T) {
	file := plan.NetworkFile()
	assert.NotZero(t, file)
	assert.NoError(t, sameNetwork(&plan.Network{File: file}))
	assert.Equal(t, unix.ENOENT, sameNetwork(&plan.Network{File: file + 1}))
	assert.Equal(t, unix.ENODATA, sameNetwork(&plan.Network{}), "what cannot be told proves nothing")
	assert.Equal(t, unix.ENOENT, sameNetwork(&plan.Network{Cookie: ^uint64(0), File: file}))
}
