package broker

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func streamSocket(t *testing.T) int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// What the kernel has no cookie for before Linux 5.14 is told by the namespace's file.
func TestSocketsOfTwoNetworks(t *testing.T) {
	here := streamSocket(t)
	there := make(chan int)
	go func() {
		defer close(there)
		runtime.LockOSThread() // never unlocked: its namespace goes with it
		if unix.Unshare(unix.CLONE_NEWNET) == nil {
			there <- streamSocket(t)
		}
	}()
	other, made := <-there
	if !made {
		t.Skip("no network namespace can be made here")
	}
	for _, number := range []func(int) uint64{networkOf, networkFileOf} {
		assert.NotZero(t, number(other))
		assert.Equal(t, number(here), number(here))
		assert.NotEqual(t, number(here), number(other))
	}
	before := descriptors(t)
	networkFileOf(here)
	assert.Equal(t, before, descriptors(t))
}

func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}
