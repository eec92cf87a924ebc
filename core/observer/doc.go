// Package observer sees, in a learning run, what native code does: the files it opens and changes, the programs it starts,
// the addresses it reaches and serves. A filter puts those calls to it (providers/seccomp), it looks, lets each go on as it was
// made, and reports it:
//
//	o, err := observer.Serve(observer.Config{Listener: fd, Saw: recorder.Add})
//	…
//	o.Stop()
//
// It holds nothing, and must not: a learning run is for code that is trusted, and what was looked at may be another thing by the
// time the kernel uses it. Whatever it cannot make out it lets go on unseen; a fault of its own costs one observation.
package observer
