//go:build psbtest

package control

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/pysandboxes/pysandboxes/bindings/border"
	"github.com/pysandboxes/pysandboxes/core/transport"
)

// The functions of this file exist in test builds only (tag psbtest): each provokes one way in which the border between
// Go and Python can break. tests/test_gopy_faults.py calls them.

// FaultPanic panics in a function without an error result.
func FaultPanic() string { panic("forced") }

// FaultNil reads through a nil pointer, which the Go runtime meets as SIGSEGV.
func FaultNil() (string, error) {
	var missing *struct{ name string }
	return missing.name, nil
}

// FaultFail fails, unless message is empty.
func FaultFail(message string) error {
	if message == "" {
		return nil
	}
	return border.AsFault(errors.New(message))
}

// FaultEcho gives its argument back.
func FaultEcho(text string) string { return text }

// FaultBytes reads JSON with one path in it, and gives the path's bytes in hexadecimal digits and as JSON again.
func FaultBytes(spec string) (string, error) {
	var in struct {
		Path border.Text `json:"path"`
	}
	if err := json.Unmarshal([]byte(spec), &in); err != nil {
		return "", border.AsFault(err)
	}
	return border.JSON(map[string]any{"hex": hex.EncodeToString([]byte(in.Path)), "path": in.Path})
}

// FaultNot negates: a bool each way.
func FaultNot(value bool) bool { return !value }

// FaultAdd adds one: an int each way.
func FaultAdd(value int) int { return value + 1 }

// FaultWrite writes to the standard output.
func FaultWrite() error {
	_, err := os.Stdout.WriteString("written\n")
	return err
}

// FaultOpen gives a handle, or fails.
func FaultOpen(fail bool) (*Sandbox, error) {
	if fail {
		return nil, border.AsFault(errors.New("not opened"))
	}
	return &Sandbox{}, nil
}

// FaultConnect gives a sandbox whose child is whoever holds the other end of the socket fd.
func FaultConnect(fd int) (*Sandbox, error) {
	conn, err := transport.New(fd, transport.Options{})
	if err != nil {
		return nil, err
	}
	s := &Sandbox{}
	return s, s.Calls.Use(1, conn)
}

// FaultForever never ends, a slice at a time.
func (s *Sandbox) FaultForever() error {
	_, err := s.tasks.do("FaultForever", func() (int, error) { select {} })
	return err
}

// FaultTask runs a task that gives 7, fails or panics.
func (s *Sandbox) FaultTask(how string) (int, error) {
	return s.tasks.do(how, func() (int, error) {
		switch how {
		case "fail":
			return 0, errors.New("the task failed")
		case "panic":
			panic("forced in a task")
		}
		time.Sleep(3 * slice) // longer than a door stays shut
		return 7, nil
	})
}

// FaultPanic panics in a method.
func (s *Sandbox) FaultPanic() (string, error) { panic("forced in a method") }

// FaultFail fails in a method with an error result only.
func (s *Sandbox) FaultFail(fail bool) error {
	if fail {
		return border.AsFault(errors.New("failed"))
	}
	return nil
}

// FaultName gives a constant: a method without an error result.
func (s *Sandbox) FaultName() string { return "sandbox" }
