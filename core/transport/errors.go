package transport

import (
	"errors"
	"fmt"
)

var (
	// ErrInterrupted: a signal came in, or a fifth of a second has passed without event; look for signals and call again.
	ErrInterrupted = errors.New("transport: the wait was interrupted")
	// ErrTimeout: the wait ended before an event came. The call goes on; Cancel ends it.
	ErrTimeout = errors.New("transport: no event within the time given")
	// ErrForked: this process is a forked copy of the one that started the sandbox.
	ErrForked = errors.New("this process is a fork of the one that started the sandbox and cannot use its sandbox; start one here")
	// ErrNoCall: the id was never given out, or its last event has been taken, or it was cancelled.
	ErrNoCall = errors.New("transport: no such call")
	// ErrBusy: another thread waits for this call.
	ErrBusy = errors.New("transport: another thread waits for this call")
	// ErrStopping is the reason of a call that comes after Stop. The child has not got it.
	ErrStopping = errors.New("the sandbox finishes its last calls and takes no more")
	// ErrClosed is the reason of a connection that was closed from this side.
	ErrClosed = errors.New("the sandbox was stopped")
)

var errHungUp = errors.New("the sandbox process closed its connection")

// DeadError ends every call of a connection: the child has died, was stopped, or broke the protocol. Err says how.
type DeadError struct{ Err error }

func (e *DeadError) Error() string { return "the call has no answer: " + e.Err.Error() }
func (e *DeadError) Unwrap() error { return e.Err }

// ProtocolError is what a child did that the protocol does not allow. The connection is over; its process has to be killed.
type ProtocolError struct {
	Who  string // the process, in words; "" is the sandbox
	What string
}

func (e *ProtocolError) Error() string {
	who := e.Who
	if who == "" {
		who = "the sandbox"
	}
	return who + " broke the call protocol: " + e.What
}

// LimitError is a result over limit-result=. Only its call fails.
type LimitError struct {
	Size  int64 // bytes, at least
	Limit int64
	Rule  string // the line that sets it and its place; "" where the limit is the default
}

func (e *LimitError) Error() string {
	if e.Rule != "" {
		return fmt.Sprintf("the result has %d bytes, more than the %d of %s. Make that:\n    limit-result=%d", e.Size, e.Limit, e.Rule, e.Size)
	}
	return fmt.Sprintf("the result has %d bytes, more than the limit of %d. Add:\n    limit-result=%d", e.Size, e.Limit, e.Size)
}
