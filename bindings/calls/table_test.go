package calls

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/transport"
)

// fake is a connection whose events are laid out beforehand.
type fake struct {
	last      uint64
	events    map[uint64][]transport.Event
	err       error // of Next
	cancelled []uint64
}

func (f *fake) Begin([]byte) (uint64, error) {
	if f.err != nil {
		return 0, f.err
	}
	f.last++
	return f.last, nil
}

func (f *fake) Next(id uint64, _ time.Duration) (transport.Event, error) {
	if f.err != nil {
		return transport.Event{}, f.err
	}
	if len(f.events[id]) == 0 {
		return transport.Event{}, transport.ErrTimeout
	}
	event := f.events[id][0]
	f.events[id] = f.events[id][1:]
	return event, nil
}

func (f *fake) NextInto(id uint64, wait time.Duration, _ []byte) (transport.Event, error) {
	return f.Next(id, wait)
}

func (f *fake) NewLoop() (*transport.Loop, error) { return nil, errors.New("a fake has no loops") }
func (f *fake) Cancel(id uint64) error {
	f.cancelled = append(f.cancelled, id)
	return nil
}

var (
	output = transport.Event{Kind: transport.KindStdout, Data: []byte("x")}
	result = transport.Event{Kind: transport.KindResult, Data: []byte("N.")}
)

func TestCallsOfAnOldConnectionAreStillFound(t *testing.T) {
	var table Table
	old := &fake{events: map[uint64][]transport.Event{1: {output, result}}}
	require.NoError(t, table.Use(1, old))
	first, err := table.Begin(nil)
	require.NoError(t, err)
	fresh := &fake{events: map[uint64][]transport.Event{1: {result}}}
	require.NoError(t, table.Use(2, fresh))
	second, err := table.Begin(nil)
	require.NoError(t, err)
	assert.NotEqual(t, first, second)
	assert.Equal(t, Counts{Begun: 2, Pending: 2}, table.Counts())

	event, err := table.Next(first, -1)
	require.NoError(t, err)
	assert.Equal(t, output.Kind, event.Kind)
	assert.Equal(t, 2, table.Counts().Pending)
	_, err = table.Next(first, -1)
	require.NoError(t, err)
	_, err = table.Next(second, 0)
	require.NoError(t, err)
	assert.Equal(t, Counts{Begun: 2}, table.Counts())

	require.NoError(t, table.Use(3, &fake{}))
	_, err = table.Next(first, -1)
	assert.ErrorContains(t, err, "no call", "a connection without calls is forgotten")
}

func TestUseOfANumberThatIsNotNewerChangesNothing(t *testing.T) {
	var table Table
	first, other := &fake{}, &fake{}
	require.NoError(t, table.Use(2, first))
	for _, number := range []uint64{1, 2} {
		require.NoError(t, table.Use(number, other))
	}
	_, err := table.Begin(nil)
	require.NoError(t, err)
	assert.EqualValues(t, 1, first.last)
	assert.Zero(t, other.last)
	assert.ErrorContains(t, table.Use(maxGeneration+1, other), "open a new one")
}

func TestWhatEndsACallAndWhatDoesNot(t *testing.T) {
	for _, c := range []struct {
		err  error
		over bool
	}{
		{transport.ErrInterrupted, false},
		{transport.ErrTimeout, false},
		{transport.ErrBusy, false},
		{&transport.DeadError{Err: errors.New("gone")}, true},
		{&transport.LimitError{Size: 2, Limit: 1}, true},
	} {
		var table Table
		conn := &fake{}
		require.NoError(t, table.Use(1, conn))
		id, err := table.Begin(nil)
		require.NoError(t, err)
		conn.err = c.err
		_, err = table.Next(id, 0)
		assert.ErrorIs(t, err, c.err)
		assert.Equal(t, !c.over, table.Counts().Pending == 1, "%v", c.err)
	}
}

func TestCancelReachesTheConnectionAndForgets(t *testing.T) {
	var table Table
	conn := &fake{}
	require.NoError(t, table.Use(5, conn))
	id, err := table.Begin(nil)
	require.NoError(t, err)
	require.NoError(t, table.Cancel(id))
	assert.Equal(t, []uint64{1}, conn.cancelled)
	assert.Zero(t, table.Counts().Pending)
}

func TestUnknownCalls(t *testing.T) {
	var table Table
	require.NoError(t, table.Use(1, &fake{}))
	for _, id := range []int64{-1, 0, 1, 2<<idBits | 1, 1<<63 - 1, -1 << 63} {
		_, err := table.Next(id, 0)
		assert.ErrorContains(t, err, "no call", "%d", id)
		_, _, _, err = table.Take(id, true)
		assert.ErrorContains(t, err, "no event loop", "%d", id)
		assert.Error(t, table.CloseLoop(id))
		assert.Error(t, table.Cancel(id))
	}
}

func TestBeforeTheFirstConnection(t *testing.T) {
	var table Table
	_, err := table.Begin(nil)
	assert.ErrorIs(t, err, errNotOpen)
	_, _, err = table.OpenLoop()
	assert.ErrorIs(t, err, errNotOpen)
}

// connection is a real one whose child, the returned file, has said READY.
func connection(t *testing.T) (*transport.Conn, *os.File) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	conn, err := transport.New(fds[0], transport.Options{})
	require.NoError(t, err)
	child := os.NewFile(uintptr(fds[1]), "child")
	t.Cleanup(func() { conn.Close(); child.Close() })
	_, err = child.Write([]byte{0, 0, 0, 10, 0x95, 10, 0, 0xa1, '1', 1, 0xa3, '3', '.', '1'})
	require.NoError(t, err)
	_, err = conn.Ready(10 * time.Second)
	require.NoError(t, err)
	return conn, child
}

func TestALoopStaysWithItsConnection(t *testing.T) {
	var table Table
	old, child := connection(t)
	require.NoError(t, table.Use(1, old))
	number, fd, err := table.OpenLoop()
	require.NoError(t, err)
	assert.Positive(t, fd)
	id, _, ok, err := table.BeginOn(number, nil, false)
	require.NoError(t, err)
	assert.False(t, ok)
	fresh, _ := connection(t)
	require.NoError(t, table.Use(2, fresh))
	assert.Equal(t, Counts{Begun: 1, Pending: 1}, table.Counts())

	_, err = child.Write([]byte{0, 0, 0, 9, 0x93, 14, 1, 0xc4, 4, 0x80, 5, 'N', '.'})
	require.NoError(t, err)
	got, event, ok, err := table.Take(number, true)
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, id, got)
	assert.Equal(t, []byte("\x80\x05N."), event.Data)
	assert.Zero(t, table.Counts().Pending)

	_, _, _, err = table.BeginOn(number, nil, false)
	require.NoError(t, err)
	require.NoError(t, table.CloseLoop(number))
	assert.Zero(t, table.Counts().Pending, "a closed loop waits for nothing")
	_, _, _, err = table.BeginOn(number, nil, false)
	assert.ErrorContains(t, err, "no event loop")
}
