package control

import (
	"os"
	"time"

	"github.com/pysandboxes/pysandboxes/core/transport"
)

// streams carry what native code of a sandbox writes to its descriptors 1 and 2 to the call that runs, or to the application's own:
// the sandbox gets pipes and never the application's terminal. (What Python code prints goes with the calls.)
type streams struct{ *transport.Native }

// lingering bounds the wait for the last output: something that outlives the sandbox may hold a pipe open.
const lingering = time.Second

func newStreams() (*streams, error) {
	n, err := transport.NewNative(os.Stdout, os.Stderr)
	if err != nil {
		return nil, err
	}
	return &streams{n}, nil
}

// close ends the pipes and waits for what is in them. Closing twice is no error.
func (s *streams) close() {
	s.CloseWrite()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Wait()
	}()
	timer := time.NewTimer(lingering)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
