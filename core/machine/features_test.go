package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

func TestFeaturesAreSaidOnceAndChangeNothing(t *testing.T) {
	first := Features()
	assert.Equal(t, first, Features())
	seen := map[string]bool{}
	for _, f := range first {
		assert.NotEmpty(t, f.Value, f.Name)
		assert.NotEmpty(t, f.Meaning, f.Name)
		assert.False(t, seen[f.Name], f.Name)
		seen[f.Name] = true
	}
	assert.Contains(t, Kernel(), "Linux")
}

func TestWhatIsNotThereIsSaid(t *testing.T) {
	there, why := device("/dev/no-such-device")()
	assert.False(t, there)
	assert.Contains(t, why, "/dev/no-such-device")
	unknown := uint32(0x12340000)
	assert.ErrorIs(t, seccompAvailable(&unknown), unix.EOPNOTSUPP)
	assert.Empty(t, text("/no/such/file"))
}
