package calls

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/transport"
)

// fake is a connection whose events are laid out beforehand.
type fake struct {
	last      uint64
	async     int
	events    map[uint64][]transport.Event
	err       error // of Next and Poll
	pump      error
	wantWrite bool
	cancelled []uint64
}

func (f *fake) Begin([]byte) (uint64, error) {
	if f.err != nil {
		return 0, f.err
	}
	f.last++
	return f.last, nil
}

func (f *fake) BeginAsync(payload []byte) (uint64, error) {
	f.async++
	return f.Begin(payload)
}

func (f *fake) Next(id uint64, _ time.Duration) (transport.Event, error) {
	event, ok, err := f.Poll(id)
	if err == nil && !ok {
		err = transport.ErrTimeout
	}
	return event, err
}

func (f *fake) NextInto(id uint64, wait time.Duration, _ []byte) (transport.Event, error) {
	return f.Next(id, wait)
}

func (f *fake) Poll(id uint64) (transport.Event, bool, error) {
	if f.err != nil {
		return transport.Event{}, false, f.err
	}
	if len(f.events[id]) == 0 {
		return transport.Event{}, false, nil
	}
	event := f.events[id][0]
	f.events[id] = f.events[id][1:]
	return event, true, nil
}

func (f *fake) Pump() error     { return f.pump }
func (f *fake) WantWrite() bool { return f.wantWrite }
func (f *fake) FDs() (int, int) { return 7, 8 }
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
	first, err := table.Begin(nil, false)
	require.NoError(t, err)
	fresh := &fake{events: map[uint64][]transport.Event{1: {result}}}
	require.NoError(t, table.Use(2, fresh))
	second, err := table.Begin(nil, true)
	require.NoError(t, err)
	assert.NotEqual(t, first, second)
	assert.Equal(t, 1, fresh.async)
	assert.Equal(t, Counts{Begun: 2, Pending: 2}, table.Counts())

	event, err := table.Next(first, -1)
	require.NoError(t, err)
	assert.Equal(t, output.Kind, event.Kind)
	assert.Equal(t, 2, table.Counts().Pending)
	_, err = table.Next(first, -1)
	require.NoError(t, err)
	_, ok, err := table.Poll(second)
	require.NoError(t, err)
	assert.True(t, ok)
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
	_, err := table.Begin(nil, false)
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
		id, err := table.Begin(nil, false)
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
	id, err := table.Begin(nil, false)
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
		_, _, err = table.Poll(id)
		assert.Error(t, err)
		assert.Error(t, table.Cancel(id))
	}
}

func TestBeforeTheFirstConnection(t *testing.T) {
	var table Table
	_, err := table.Begin(nil, false)
	assert.ErrorIs(t, err, errNotOpen)
	_, _, err = table.FDs()
	assert.ErrorIs(t, err, errNotOpen)
	_, _, err = table.Pump()
	assert.ErrorIs(t, err, errNotOpen)
}

func TestPumpSaysWhatToWatch(t *testing.T) {
	dead := &transport.DeadError{Err: errors.New("gone")}
	for _, c := range []struct {
		conn             fake
		wantWrite, ended bool
		err              error
	}{
		{fake{}, false, false, nil},
		{fake{wantWrite: true}, true, false, nil},
		{fake{wantWrite: true, pump: transport.ErrEnded}, false, true, nil},
		{fake{wantWrite: true, pump: dead}, false, false, dead},
	} {
		var table Table
		require.NoError(t, table.Use(1, &c.conn))
		wantWrite, ended, err := table.Pump()
		assert.Equal(t, c.err, err)
		assert.Equal(t, c.wantWrite, wantWrite)
		assert.Equal(t, c.ended, ended)
	}
}
