package main

// #include <stdlib.h>
import "C"

import (
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/pysandboxes/pysandboxes/bindings/border"
)

// Without this the runtime would end the application on a write to a closed standard output, even where Python ignores SIGPIPE
// (process.c gives the signal's disposition itself back to what it was).
func init() { signal.Ignore(syscall.SIGPIPE) }

// psbReady does nothing; that it returns says that the Go runtime has started.
//
//export psbReady
func psbReady() {}

// failure gives err for C to raise and to free; "" is border.ErrPending (psb_pending in module.c).
func failure(err error) *C.char {
	if errors.Is(err, border.ErrPending) {
		return C.CString("")
	}
	return C.CString(border.AsFault(err).Error())
}

// badHandle words what gopy says about a handle that it does not know.
func badHandle(err error) error {
	return fmt.Errorf("this sandbox is closed or was never open (%w)", err)
}

// recoverTo turns a panic of the calling function into a failure. It must be deferred directly.
func recoverTo(fail **C.char, operation string) {
	if value := recover(); value != nil {
		*fail = C.CString(border.PanicFault(operation, value).Error())
	}
}
