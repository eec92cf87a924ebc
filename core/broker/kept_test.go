package broker

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// keeping has a copy of each socket, as if it had made them. The program is this process.
func keeping(t *testing.T, fds ...int) *kept {
	k := &kept{sockets: map[uint64]int{}, unsettled: map[uint64]bool{}, listening: map[uint64]bool{}}
	for _, fd := range fds {
		inode, e := inodeOf(fd)
		require.Zero(t, e)
		copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		require.NoError(t, err)
		k.sockets[inode] = copied
	}
	t.Cleanup(k.close)
	return k
}

// asks is what the program would put to the supervisor.
func asks(nr int32) seccomp.Notification {
	return seccomp.Notification{NR: nr, Thread: uint32(os.Getpid())}
}

func loopbackBound(t *testing.T, fd int) unix.Sockaddr {
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	at, err := unix.Getsockname(fd)
	require.NoError(t, err)
	return at
}

func TestACopyIsOfTheSocketUnderTheNumber(t *testing.T) {
	one, two := streamSocket(t), streamSocket(t)
	k := keeping(t, one, two)
	for _, fd := range []int{one, two} {
		copied, e := k.fetch(asks(unix.SYS_CONNECT), int32(fd))
		require.Zero(t, e)
		assert.Equal(t, cookieOf(fd), cookieOf(copied))
		unix.Close(copied)
	}
	moved, err := unix.FcntlInt(uintptr(one), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(t, err)
	copied, e := k.fetch(asks(unix.SYS_CONNECT), int32(moved))
	require.Zero(t, e)
	assert.Equal(t, cookieOf(one), cookieOf(copied), "a number of the program's own making")
	unix.Close(copied)
	unix.Close(moved)

	_, e = k.fetch(asks(unix.SYS_CONNECT), int32(moved))
	assert.Equal(t, unix.EBADF, e)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	_, e = k.fetch(asks(unix.SYS_CONNECT), int32(null.Fd()))
	assert.Equal(t, unix.ENOTSOCK, e)
	other := streamSocket(t)
	for nr, want := range map[int32]unix.Errno{
		unix.SYS_CONNECT: unix.EISCONN, unix.SYS_BIND: unix.EINVAL, unix.SYS_LISTEN: unix.EINVAL, unix.SYS_SENDTO: unix.EACCES,
	} {
		_, e = k.fetch(asks(nr), int32(other))
		assert.Equal(t, want, e, "one that was not made here, or given up")
	}
}

func TestCopiesAreGivenUpInTime(t *testing.T) {
	server, made, waits, idle := streamSocket(t), streamSocket(t), streamSocket(t), streamSocket(t)
	k := keeping(t, server, made, waits, idle)
	at := loopbackBound(t, server)
	touch := func(fd int) {
		copied, e := k.fetch(asks(unix.SYS_CONNECT), int32(fd))
		require.Zero(t, e)
		unix.Close(copied)
	}
	assert.Equal(t, -1, k.patience(-1), "nothing was done")
	touch(idle)
	assert.Equal(t, 20, k.patience(-1))
	assert.Equal(t, 5, k.patience(5))
	k.settle()
	assert.Equal(t, -1, k.patience(-1), "it is neither connected nor on its way")
	assert.Len(t, k.sockets, 4)

	touch(server)
	require.NoError(t, unix.Listen(server, 0))
	k.settle()
	assert.Len(t, k.sockets, 3)
	_, e := k.fetch(asks(unix.SYS_LISTEN), int32(server))
	assert.Equal(t, isListening, e)

	touch(made)
	require.NoError(t, unix.Connect(made, at))
	k.settle()
	assert.Len(t, k.sockets, 2)
	_, e = k.fetch(asks(unix.SYS_CONNECT), int32(made))
	assert.Equal(t, unix.EISCONN, e)

	for range 4 { // until it takes nobody more
		filler := streamSocket(t)
		require.NoError(t, unix.SetNonblock(filler, true))
		_ = unix.Connect(filler, at)
	}
	touch(waits)
	require.NoError(t, unix.SetNonblock(waits, true))
	require.Equal(t, unix.EINPROGRESS, unix.Connect(waits, at))
	k.settle()
	assert.Equal(t, 20, k.patience(-1), "on its way: it is looked at again")
	assert.Len(t, k.sockets, 2)
}

// A copy of what no process of the sandbox has any more is closed, so that a port is free again.
func TestCopiesOfClosedSocketsAreSwept(t *testing.T) {
	held, gone := streamSocket(t), streamSocket(t)
	k := keeping(t, held, gone)
	handed, err := unix.FcntlInt(uintptr(held), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(t, err)
	file := os.NewFile(uintptr(handed), "held")
	defer file.Close()
	program := exec.Command("sleep", "60")
	program.ExtraFiles = []*os.File{file}
	if err := program.Start(); err != nil {
		t.Skip(err)
	}
	defer program.Wait() //nolint:errcheck // it was killed
	defer program.Process.Kill()
	assert.True(t, k.sweep(program.Process.Pid))
	inode, e := inodeOf(held)
	require.Zero(t, e)
	assert.Len(t, k.sockets, 1)
	assert.Contains(t, k.sockets, inode)
	assert.False(t, k.sweep(program.Process.Pid), "what is there stays")
	assert.WithinDuration(t, time.Now(), k.swept, time.Minute)
	k.sweep(-1)
	assert.Len(t, k.sockets, 1, "what cannot be told is kept")
}
