package landlock

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// atMost is a kernel whose Landlock is no newer.
func atMost(t *testing.T, abi int) {
	t.Helper()
	was := newestABI
	newestABI = strconv.Itoa(abi)
	t.Cleanup(func() { newestABI = was })
	have, err := ABI()
	require.NoError(t, err)
	if have != abi {
		t.Skipf("this kernel has Landlock ABI %d", have)
	}
}

func TestWhatAnOlderKernelLacksIsSaidAtTheStart(t *testing.T) {
	for abi, want := range map[int][]string{
		1: {"signals reach", "of ioctl", "are not emptied", "moving files"},
		4: {"signals reach", "of ioctl"},
		5: {"signals reach"},
		6: nil,
	} {
		t.Run(strconv.Itoa(abi), func(t *testing.T) {
			atMost(t, abi)
			cmd, err := Provider{}.Prepare(compile(t), child())
			require.NoError(t, err)
			require.Len(t, cmd.Gaps, len(want))
			for i, g := range cmd.Gaps {
				assert.False(t, g.Standing)
				assert.True(t, strings.HasPrefix(g.Text, "Landlock ABI "+strconv.Itoa(abi)), g.Text)
				assert.Contains(t, g.Text, want[i])
			}
			assert.Equal(t, abi, cmd.Boundary.ABI)
			assert.Equal(t, abi >= 6, Provider{}.Holds().Signals)
			for _, w := range want {
				assert.Contains(t, strings.Join(Provider{}.Probe().Gaps, "\n"), w)
			}
		})
	}
}

func TestOlderThanLandlock(t *testing.T) {
	was := newestABI
	newestABI = "no number"
	defer func() { newestABI = was }()
	abi, err := ABI()
	require.NoError(t, err)
	assert.Positive(t, abi, "what is no number bounds nothing")
}

func TestWhatIsWritableLetsDatagramsAndDevicesBe(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer l.Close()
	for line, want := range map[string]writable{
		"expose-rw=" + dir:       {any: true, socket: true},
		"expose-rw=" + path:      {any: true, socket: true},
		"expose-ro=" + path:      {},
		"expose-rw=/dev/null":    {any: true, device: true},
		"expose-rw=/dev/pts":     {any: true, device: true},
		"expose-rw=/no/such/one": {any: true},
	} {
		assert.Equal(t, want, writableOf(compile(t, line)), line)
	}
}
