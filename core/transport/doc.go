// Package transport carries calls to a sandboxed process over one stream socket, and never trusts what comes back.
//
//	c, err := transport.New(fd, transport.Options{Mode: unpickle.DataOnly, Guard: true, Version: version})
//	_, err = c.Ready(30 * time.Second)
//	id, err := c.Begin(payload)
//	for {
//		ev, err := c.Next(id, -1) // on the calling thread, by plain system calls
//		...                       // ErrInterrupted: look at your signals, call Next again
//	}
//
// There is no goroutine and no channel on the way of a call. The thread that waits for an answer reads the socket itself when nobody
// else does (the leader); the others (followers) sleep on a futex of their own until their event has come or the reader's
// role is free. An event loop has a face of its own (Loop): one descriptor to watch, and nothing that blocks.
// Nothing blocks while the lock is held: what the socket does not take at once is queued, and whoever waits sends it on.
//
// # What is trusted
//
// The socket's other end belongs to code that may be hostile. A frame that is not exactly one of the table in frame.go, of a
// call that was never made or has ended, too long, or part of a flood, ends the connection with a *DeadError around a *ProtocolError;
// the parent goes on. A result leaves this package only after unpickle has accepted it, an exception only as a
// descriptor that was decoded within bounds, and in its rich form only where unpickle accepts that.
//
// # Ends
//
// End of file alone says little about why, so the calls in flight wait a moment for Fail, by which the one who watches the process gives the
// reason. What had arrived before is still given out. In a forked copy of the application every method refuses with ErrForked.
package transport
