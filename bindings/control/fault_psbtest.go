//go:build psbtest

package control

import (
	"errors"

	"github.com/pysandboxes/pysandboxes/bindings/border"
)

// The functions of this file exist in test builds only (tag psbtest): each provokes one way in which the border between
// Go and Python can break. tests/test_gopy_faults.py calls them.

// FaultPanic panics in a function without an error result.
func FaultPanic() string { panic("forced") }

// FaultNil reads through a nil pointer, which the Go runtime meets as SIGSEGV.
func FaultNil() (string, error) {
	var s *Sandbox
	return s.faultField(), nil
}

// FaultFail fails.
func FaultFail(message string) error {
	if message == "" {
		return nil
	}
	return border.AsFault(errors.New(message))
}

// FaultEcho gives its argument back.
func FaultEcho(text string) string { return text }

// FaultNot negates: a bool each way.
func FaultNot(value bool) bool { return !value }

// FaultAdd adds one: an int each way.
func FaultAdd(value int) int { return value + 1 }

// FaultOpen gives a handle, or fails.
func FaultOpen(fail bool) (*Sandbox, error) {
	if fail {
		return nil, border.AsFault(errors.New("not opened"))
	}
	return &Sandbox{}, nil
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

func (s *Sandbox) faultField() string { return s.name }
