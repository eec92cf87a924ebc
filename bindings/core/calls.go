package main

// #include "calls.h"
import "C"

import (
	"errors"
	"sync"
	"time"
	"unsafe"

	"github.com/go-python/gopy/gopyh"

	"github.com/pysandboxes/pysandboxes/bindings/calls"
	"github.com/pysandboxes/pysandboxes/bindings/control"
	"github.com/pysandboxes/pysandboxes/core/transport"
)

// The Go half of calls.c. Each function runs on the calling thread, without the GIL, and may block there in plain system calls.

// tableOf finds the calls of the sandbox that control_Open gave handle for.
func tableOf(handle C.longlong) (*calls.Table, error) {
	found, err := gopyh.VarFromHandleTry(gopyh.CGoHandle(handle), "*control.Sandbox")
	if err != nil {
		return nil, badHandle(err)
	}
	sandbox, ok := found.(*control.Sandbox)
	if !ok || sandbox == nil {
		return nil, badHandle(errors.New("the handle is of something else"))
	}
	return &sandbox.Calls, nil
}

// memory is that of a Python object, which the calling thread keeps alive until the exported function returns.
func memory(at unsafe.Pointer, length C.longlong) []byte {
	if at == nil || length <= 0 {
		return nil
	}
	return unsafe.Slice((*byte)(at), int(length))
}

//export psbCallBegin
func psbCallBegin(handle C.longlong, data unsafe.Pointer, length C.longlong, fail **C.char) (id C.longlong) {
	defer recoverTo(fail, "call_begin")
	table, err := tableOf(handle)
	if err != nil {
		*fail = failure(err)
		return 0
	}
	begun, err := table.Begin(memory(data, length))
	if err != nil {
		*fail = failure(err)
		return 0
	}
	return C.longlong(begun)
}

//export psbCallNext
func psbCallNext(handle, id, wait C.longlong, into unsafe.Pointer, length C.longlong, out *C.psb_event, fail **C.char) (status C.int) {
	defer recoverTo(fail, "call_next")
	table, err := tableOf(handle)
	if err != nil {
		*fail = failure(err)
		return C.PSB_NOTHING
	}
	event, err := table.NextInto(int64(id), time.Duration(wait), memory(into, length))
	switch {
	case err == nil && event.Kind == transport.KindBuffer:
		wanted := event.Buffers[0]
		out.data_len, out.index, out.writable = C.int64_t(wanted.Size), C.int64_t(event.Index), 0
		if wanted.Writable {
			out.writable = 1
		}
		return C.PSB_ROOM
	case err == nil:
		give(event, out)
		return C.PSB_EVENT
	case errors.Is(err, transport.ErrInterrupted):
		return C.PSB_INTERRUPTED
	case errors.Is(err, transport.ErrTimeout):
		return C.PSB_NOTHING
	}
	*fail = failure(err)
	return C.PSB_NOTHING
}

//export psbCallCancel
func psbCallCancel(handle, id C.longlong, fail **C.char) {
	defer recoverTo(fail, "call_cancel")
	table, err := tableOf(handle)
	if err == nil {
		err = table.Cancel(int64(id))
	}
	if err != nil {
		*fail = failure(err)
	}
}

// Events that are too large for psb_event, until C has made room for them.
var (
	ticketsMu sync.Mutex
	tickets   = map[C.longlong]transport.Event{}
	lastOne   C.longlong
)

// give puts event into out, or keeps it under a ticket.
func give(event transport.Event, out *C.psb_event) {
	parts := [3][]byte{event.Data, event.Rich, event.Descriptor}
	lengths := [3]*C.int64_t{&out.data_len, &out.rich_len, &out.descriptor_len}
	total := 0
	for i, part := range parts {
		*lengths[i] = C.int64_t(len(part))
		if part == nil {
			*lengths[i] = -1
		}
		total += len(part)
	}
	out.kind, out.ticket, out.buffers = C.int32_t(event.Kind), 0, C.int64_t(len(event.Buffers))
	if total <= C.PSB_SMALL && len(event.Buffers) == 0 {
		to := unsafe.Slice((*byte)(unsafe.Pointer(&out.small[0])), C.PSB_SMALL)
		for _, part := range parts {
			to = to[copy(to, part):]
		}
		event.Release()
		return
	}
	ticketsMu.Lock()
	defer ticketsMu.Unlock()
	lastOne++
	tickets[lastOne] = event
	out.ticket = C.int64_t(lastOne)
}

// psbEventBuffer describes a buffer of the event that has the ticket.
//
//export psbEventBuffer
func psbEventBuffer(ticket, index C.longlong, size *C.int64_t, writable *C.int32_t) {
	b := bufferOf(ticket, index)
	*size, *writable = C.int64_t(b.Size), 0
	if b.Writable {
		*writable = 1
	}
}

// psbEventFill copies what is missing in the memory that was made for a buffer.
//
//export psbEventFill
func psbEventFill(ticket, index C.longlong, to unsafe.Pointer) {
	b := bufferOf(ticket, index)
	b.CopyTo(unsafe.Slice((*byte)(to), int(b.Size)))
}

func bufferOf(ticket, index C.longlong) *transport.Buffer {
	ticketsMu.Lock()
	defer ticketsMu.Unlock()
	return tickets[ticket].Buffers[index]
}

// psbEventTake copies the parts of the event that has the ticket to where C made room for them, and forgets it. A nil target
// skips its part. It calls nothing that can fail.
//
//export psbEventTake
func psbEventTake(ticket C.longlong, data, rich, descriptor unsafe.Pointer) {
	ticketsMu.Lock()
	event := tickets[ticket]
	delete(tickets, ticket)
	ticketsMu.Unlock()
	for _, part := range []struct {
		to   unsafe.Pointer
		from []byte
	}{{data, event.Data}, {rich, event.Rich}, {descriptor, event.Descriptor}} {
		if part.to != nil && len(part.from) > 0 {
			copy(unsafe.Slice((*byte)(part.to), len(part.from)), part.from)
		}
	}
	event.Release()
}
