package control

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/daemon"
	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

func TestARequestWithAnUnknownKeyIsRefused(t *testing.T) {
	var r openRequest
	require.NoError(t, read(`{"profile":null,"rules":[["env","A"]],"python_args":["-c","x"],"cwd":"/\udcff"}`, &r))
	assert.Nil(t, r.Profile)
	assert.Equal(t, "/\xff", string(r.Cwd))
	for _, bad := range []string{``, `[]`, `{"profil":"x"}`, `{} {}`, `{"rules":[["a","b"]],"env":[]}`, `{"cwd":1}`} {
		assert.ErrorContains(t, read(bad, &openRequest{}), "malformed", bad)
	}
}

func TestTheFormsOfLearn(t *testing.T) {
	no := false
	for raw, want := range map[string]daemon.LearnMode{
		``:             {},
		`null`:         {},
		`false`:        {},
		`true`:         {On: true},
		`"/p/profile"`: {On: true, File: "/p/profile"},
	} {
		got, err := openRequest{Learn: json.RawMessage(raw), LearnIfMissing: &no}.learning()
		require.NoError(t, err)
		assert.Equal(t, want, got, raw)
	}
	for _, raw := range []string{`1`, `""`, `["x"]`} {
		_, err := openRequest{Learn: json.RawMessage(raw)}.learning()
		assert.ErrorContains(t, err, "learn", raw)
	}
}

func TestTasksRunOnceAtATimeAndShareTheirOutcome(t *testing.T) {
	var (
		all    tasks
		runs   int
		wait   sync.WaitGroup
		finish = make(chan struct{})
	)
	run := func() (int, error) {
		runs++ // one at a time: the race detector watches
		<-finish
		return 7, nil
	}
	_, err := all.do("same", run)
	require.ErrorIs(t, err, border.ErrPending)
	for range 4 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for {
				value, err := all.do("same", run)
				if !errors.Is(err, border.ErrPending) {
					assert.NoError(t, err)
					assert.Equal(t, 7, value)
					return
				}
			}
		}()
	}
	close(finish)
	wait.Wait()
	assert.GreaterOrEqual(t, runs, 1)
}

func TestATaskThatPanicsIsAFault(t *testing.T) {
	var all tasks
	_, err := all.do("Broken", func() (int, error) { panic("boom") })
	for errors.Is(err, border.ErrPending) {
		_, err = all.do("Broken", func() (int, error) { panic("boom") })
	}
	var fault *border.Fault
	require.ErrorAs(t, err, &fault)
	assert.Contains(t, string(fault.Message), "Broken")
}

func TestASandboxThatWasNeverOpened(t *testing.T) {
	s := &Sandbox{}
	_, err := s.Ensure()
	assert.ErrorIs(t, err, daemon.ErrClosed)
	assert.ErrorIs(t, s.Reload(0), daemon.ErrClosed)
	_, err = s.Another()
	assert.ErrorIs(t, err, daemon.ErrClosed)
	assert.NoError(t, s.Stop(true, 0))
	assert.NoError(t, s.Stop(true, 0), "twice")
	_, err = s.Provider()
	assert.ErrorIs(t, err, daemon.ErrClosed)
	assert.Zero(t, s.Pid())
	for _, get := range []func() (string, error){s.Stats, s.Notices, s.Denials} {
		text, err := get()
		require.NoError(t, err)
		assert.True(t, json.Valid([]byte(text)), text)
	}
	assert.Empty(t, s.LearnReport())
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	for request, want := range map[string]string{
		`{`:                         "malformed",
		`{"learn":7}`:               "learn is neither",
		`{"interpreter":"python3"}`: "absolute",
	} {
		_, err := Open(request)
		assert.ErrorContains(t, err, want)
	}
}

// The kinds by which Python chooses the exception class.
func TestKindsOfFaults(t *testing.T) {
	syntax := &profile.SyntaxError{Pos: profile.Position{File: "/p", Line: 3, Col: 1}, Message: "unknown key"}
	fault := border.AsFault(syntax)
	assert.Equal(t, border.KindConfig, fault.Kind)
	assert.EqualValues(t, "/p", fault.File)
	assert.Equal(t, 3, fault.Line)
	assert.Equal(t, border.KindConfig, border.AsFault(&daemon.MissingProfileError{Searched: []string{"/p"}}).Kind)
	assert.Equal(t, border.KindSandBox, border.AsFault(daemon.ErrClosed).Kind)
}

func TestStreamsCarryOutputAndNeverBlock(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	was := os.Stdout
	os.Stdout = write
	s, err := newStreams()
	os.Stdout = was
	require.NoError(t, err)
	stdout, _ := s.Files()
	_, err = stdout.WriteString("from native code\n")
	require.NoError(t, err)
	s.close()
	s.close()
	require.NoError(t, write.Close())
	data, err := io.ReadAll(read)
	require.NoError(t, err)
	assert.Equal(t, "from native code\n", string(data))
}

func TestOutputForAClosedStreamIsDropped(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	was := os.Stdout
	os.Stdout = write
	s, err := newStreams()
	os.Stdout = was
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		stdout, _ := s.Files()
		_, err := stdout.Write(make([]byte, 1<<20)) // more than a pipe holds
		done <- err
	}()
	select {
	case err := <-done:
		assert.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the sandbox blocks on an output that nobody takes")
	}
	s.close()
}

func TestALearningRunEndsWithOneLine(t *testing.T) {
	report := daemon.LearnReport{Path: "/p/.py-sandboxes"}
	assert.Equal(t, "pysandboxes: nothing new was learned; /p/.py-sandboxes is unchanged\n", learnText(report, nil, false, 100))
	report.Changed = true
	report.Result.Lines = []learn.Learned{{Family: learn.FamilyImport, Line: "python-import=json", Count: 1}}
	text := learnText(report, nil, false, 100)
	assert.Contains(t, text, "python-import=json")
	assert.True(t, strings.HasSuffix(text, "\npysandboxes: learned 1 rule; check this file: /p/.py-sandboxes\n"), text)
	text = learnText(report, errors.New("no space left"), false, 100)
	assert.Contains(t, text, "python-import=json", "what was learned is shown though it could not be written")
	assert.NotContains(t, text, "check this file")
}
