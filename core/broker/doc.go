// Package broker answers the system calls that a sandbox's seccomp filter puts to the supervisor: exec where no grant
// allows it, and the network calls of native code, which are judged by host, port and protocol with no privilege and no
// helper program.
//
//	b, err := broker.Serve(broker.Config{Listener: fd, Judge: policy, Denied: record})
//	…
//	b.Stop()
//
// One broker serves one listener, and one thread of its own serves the broker: it takes a call, looks, acts and answers,
// in that order, and what may take long waits beside (pending.go) without holding up the next call.
//
// Nothing of a caller is trusted, and nothing of it is looked at twice. Its memory is copied, its descriptor is
// fetched, then the kernel is asked whether the caller still waits, and all that follows is done on these copies by this
// process: a call that carries an address is never let go on in the caller, whose other threads could have changed that
// address meanwhile. What cannot be read, decided or done is refused, and where this process is gone the kernel refuses.
package broker
