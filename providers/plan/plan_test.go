package plan

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestPlanSurvivesTheWay(t *testing.T) {
	p := &Plan{Version: Version, Path: "/a\xff b", Argv: []string{"x", ""}, Env: []string{"N=\xfe"}, Keep: []int{5},
		Boundary: &Boundary{Rules: []Rule{{Path: "/etc", Access: Read | Execute, Optional: true}}}}
	f, err := p.Seal()
	require.NoError(t, err)
	defer f.Close()
	got, err := Open(int(f.Fd()))
	require.NoError(t, err)
	assert.Equal(t, p, got)

	_, err = f.WriteAt([]byte("x"), 0)
	assert.ErrorIs(t, err, unix.EPERM, "a sealed plan cannot be changed")
}

func TestPlanOfAnotherVersionIsRefused(t *testing.T) {
	f, err := (&Plan{Version: Version + 1}).Seal()
	require.NoError(t, err)
	defer f.Close()
	_, err = Open(int(f.Fd()))
	assert.ErrorContains(t, err, "install it again")
}

func TestPlanThatIsNoneIsRefused(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	_, err = Open(int(f.Fd()))
	assert.ErrorIs(t, err, ErrNone, "a file that could change")
	_, err = Open(1 << 20)
	assert.ErrorIs(t, err, ErrNone, "nothing")

	fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("no plan"))
	require.NoError(t, err)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	require.NoError(t, err)
	_, err = Open(fd)
	assert.ErrorContains(t, err, "decode")
}

func pair(t *testing.T) (int, int) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(p[0]) })
	return p[0], p[1]
}

func TestMessages(t *testing.T) {
	a, b := pair(t)
	require.NoError(t, Send(b, Message{Kind: Ready, Notes: []string{"n"}}))
	require.NoError(t, Send(b, Message{Kind: Listener}, b))
	require.NoError(t, Send(b, Message{Kind: Failed, Text: strings.Repeat("x", 1<<20)}))

	m, fd, err := Receive(a)
	require.NoError(t, err)
	assert.Equal(t, Message{Kind: Ready, Notes: []string{"n"}}, m)
	assert.Equal(t, -1, fd)

	m, fd, err = Receive(a)
	require.NoError(t, err)
	assert.Equal(t, Listener, m.Kind)
	require.GreaterOrEqual(t, fd, 0)
	unix.Close(fd)

	m, _, err = Receive(a)
	require.NoError(t, err)
	assert.Len(t, m.Text, maxMessage/2, "a long text is cut, not lost")

	unix.Close(b)
	_, _, err = Receive(a)
	assert.ErrorIs(t, err, io.EOF)
	assert.Error(t, Send(a, Message{Kind: Taken}), "no SIGPIPE, an error")
}

func TestMessagesThatAreNone(t *testing.T) {
	a, b := pair(t)
	defer unix.Close(b)
	require.NoError(t, unix.Sendmsg(b, []byte("\xc1"), nil, nil, 0))
	_, _, err := Receive(a)
	assert.ErrorContains(t, err, "decode")

	require.NoError(t, Send(b, Message{Kind: Listener}, b, b))
	_, _, err = Receive(a)
	assert.ErrorContains(t, err, "2 descriptors")
}
