package control

import (
	"io"
	"os"
	"sync"
	"time"
)

// streams carry what native code of a sandbox writes to its descriptors 1 and 2 to the application's own: the sandbox gets pipes
// and never the application's terminal. (What Python code prints goes with the calls.)
type streams struct {
	once   sync.Once
	write  [2]*os.File // the sandbox's ends
	copied sync.WaitGroup
}

// lingering bounds the wait for the last output: something that outlives the sandbox may hold a pipe open.
const lingering = time.Second

func newStreams() (*streams, error) {
	s := &streams{}
	for i, to := range []*os.File{os.Stdout, os.Stderr} {
		read, write, err := os.Pipe()
		if err != nil {
			s.close()
			return nil, err
		}
		s.write[i] = write
		s.copied.Add(1)
		go func() {
			defer s.copied.Done()
			defer read.Close()
			defer func() { _ = recover() }() // losing output is better than ending the application
			if _, err := io.Copy(to, read); err != nil {
				_, _ = io.Copy(io.Discard, read) // the application's stream is closed; the sandbox must not block on its own
			}
		}()
	}
	return s, nil
}

// stdio is what a child gets: nothing to read.
func (s *streams) stdio() [3]*os.File { return [3]*os.File{nil, s.write[0], s.write[1]} }

// close ends the pipes and waits for what is in them. Closing twice is no error.
func (s *streams) close() {
	s.once.Do(func() {
		for _, file := range s.write {
			if file != nil {
				_ = file.Close()
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.copied.Wait()
		}()
		timer := time.NewTimer(lingering)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		}
	})
}
