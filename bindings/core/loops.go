package main

// #include "calls.h"
import "C"

import (
	"unsafe"

	"github.com/pysandboxes/pysandboxes/core/transport"
)

// The Go half of loops.c: calls of an event loop. Nothing here waits, but for the moment that psbLoopSend looks.

//export psbLoopOpen
func psbLoopOpen(handle C.longlong, fd *C.int, fail **C.char) (loop C.longlong) {
	defer recoverTo(fail, "loop_open")
	table, err := tableOf(handle)
	if err != nil {
		*fail = failure(err)
		return 0
	}
	number, watch, err := table.OpenLoop()
	if err != nil {
		*fail = failure(err)
		return 0
	}
	*fd = C.int(watch)
	return C.longlong(number)
}

//export psbLoopClose
func psbLoopClose(handle, loop C.longlong, fail **C.char) {
	defer recoverTo(fail, "loop_close")
	table, err := tableOf(handle)
	if err == nil {
		err = table.CloseLoop(int64(loop))
	}
	if err != nil {
		*fail = failure(err)
	}
}

//export psbLoopSend
func psbLoopSend(handle, loop C.longlong, data unsafe.Pointer, length C.longlong, look C.int, id *C.longlong, out *C.psb_event, fail **C.char) (status C.int) {
	defer recoverTo(fail, "loop_send")
	table, err := tableOf(handle)
	if err != nil {
		*fail = failure(err)
		return C.PSB_NOTHING
	}
	begun, event, ok, err := table.BeginOn(int64(loop), memory(data, length), look != 0)
	return loopEvent(begun, event, ok, err, id, out, fail)
}

//export psbLoopTake
func psbLoopTake(handle, loop C.longlong, pump C.int, id *C.longlong, out *C.psb_event, fail **C.char) (status C.int) {
	defer recoverTo(fail, "loop_take")
	table, err := tableOf(handle)
	if err != nil {
		*fail = failure(err)
		return C.PSB_NOTHING
	}
	taken, event, ok, err := table.Take(int64(loop), pump != 0)
	return loopEvent(taken, event, ok, err, id, out, fail)
}

// loopEvent gives out what a call of an event loop has come to: an event, nothing yet, or with an id its failure.
func loopEvent(number int64, event transport.Event, ok bool, err error, id *C.longlong, out *C.psb_event, fail **C.char) C.int {
	*id = C.longlong(number)
	switch {
	case err != nil:
		*fail = failure(err)
	case ok:
		give(event, out)
		return C.PSB_EVENT
	}
	return C.PSB_NOTHING
}
