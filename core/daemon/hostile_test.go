package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/transport"
)

// open counts this process's descriptors.
func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// A child that breaks the protocol of calls, or closes its end, is ended, and the error says which process and why.
func TestAChildThatBreaksTheCallProtocolIsEnded(t *testing.T) {
	for act, says := range map[string]string{
		"garbage":                  "broke the call protocol: a frame of 1195725856 bytes (at most 1048640)",
		"ready twice":              "broke the call protocol: READY a second time",
		"an answer to no question": "broke the call protocol: a frame of kind 14 for call 1073741824, which was never made",
		"closes":                   "the sandbox process closed its connection",
		"passes descriptors":       "broke the call protocol: a frame of 0 bytes (at most 1048640)",
	} {
		t.Run(act, func(t *testing.T) {
			before := openDescriptors(t)
			w := newWorld(t, subprocess, "hostile on the call channel", act)
			w.spec.WithCalls = true
			s, err := Open(context.Background(), w.spec)
			if err != nil { // it was quicker than our look at READY
				assert.ErrorContains(t, err, says)
				return
			}
			child := s.Child()
			for !isOver(child) { // as a caller would, who reads
				id, err := child.Conn().Begin(nil)
				if err != nil {
					continue
				}
				for err == nil || err == transport.ErrInterrupted {
					_, err = child.Conn().Next(id, -1)
				}
				assert.ErrorContains(t, err, says)
			}
			<-child.Done()
			assert.ErrorContains(t, child.Ended(), says)
			assert.ErrorContains(t, child.Ended(), "process ")
			require.NoError(t, s.Stop(true, time.Minute))
			w.output()
			assert.LessOrEqual(t, openDescriptors(t), before+6, "no descriptor that the child passed, and none of the sandbox's")
		})
	}
}

func isOver(c *Child) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// A child that announces question sockets without end gets answers on the first few hundred, and takes no more than they.
func TestAChildWithTenThousandQuestionSockets(t *testing.T) {
	before, routines := openDescriptors(t), runtime.NumGoroutine()
	w := newWorld(t, subprocess, "many sockets")
	c := w.start()
	most := 0
	for !isOver(c) {
		most = max(most, openDescriptors(t)-before)
		c.server.mu.Lock()
		if len(c.server.open) > maxSockets+1 {
			t.Errorf("%d sockets", len(c.server.open))
		}
		c.server.mu.Unlock()
		if most > maxSockets/2 {
			break
		}
	}
	require.NoError(t, c.Stop(false, 0))
	assert.LessOrEqual(t, most, maxSockets+20)
	w.output()
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= routines+4 }, 10*time.Second, 10*time.Millisecond)
	assert.LessOrEqual(t, openDescriptors(t), before+6)
}

func TestASandboxTakesAQuarterOfTheDescriptorsAtMost(t *testing.T) {
	for limit, want := range map[uint64]int{20: 16, 256: 64, 1024: 256, 1 << 20: maxSockets} {
		assert.Equal(t, want, socketsFor(limit), limit)
	}
}

// Notes and refusals without end take no memory to speak of.
func TestAFloodOfNotesAndRefusals(t *testing.T) {
	w := newWorld(t, subprocess, "floods")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := w.start()
	out, code, _ := w.finish()
	assert.Equal(t, 0, code, out)
	assert.Contains(t, out, "file allow=false")
	assert.Equal(t, 2001, c.denials.counts())
	assert.Len(t, c.Denials(), maxDenials)
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(32<<20), "with 1024 refusals of 3000 bytes, thrice worded")
}

// What a learning run misses it says, whatever is asked to be logged: the profile would lack rules, and nothing would tell.
func TestABrokenProtocolWhileLearningIsAnError(t *testing.T) {
	for learns, level := range map[bool]string{true: "ERROR", false: "WARN"} {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		var recorder *learn.Recorder
		if learns {
			recorder = learn.New(learn.Options{})
		}
		var log bytes.Buffer
		s := newServer(nil, recorder, slog.New(slog.NewTextHandler(&log, nil)))
		_, err = unix.Write(fds[1], []byte("garbage"))
		require.NoError(t, err)
		s.questions(&socket{fds[0]})
		unix.Close(fds[0])
		unix.Close(fds[1])
		assert.Contains(t, log.String(), "level="+level)
		assert.Equal(t, learns, strings.Contains(log.String(), "not learned"), log.String())
	}
}
