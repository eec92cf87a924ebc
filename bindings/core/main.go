// Command core is the extension module pysandboxes._core: the one door between CPython and the Go engine, built with
// -buildmode=c-shared. No other package of ours imports "C" for Python.
//
// How it is put together:
//
//	gopy.go, gopy_wrappers.h   generated from bindings/control by regen.py: the control plane
//	calls.go, calls.c          by hand: the path of a call, where microseconds count
//	loops.go, loops.c          the same for event loops
//	process.c                  what a Go runtime changes in a process, and how that is undone
//	module.c                   the module: method table, multi-phase initialisation
//
// Go never calls Python here. Python's C code calls Go without the GIL and gets plain values back: numbers, C strings that it
// frees, bytes that it copies. Every exported function recovers from panics and says so through its last parameter. So
// the C files alone need Python's headers. They have the build tag pyext, and `go vet ./...` works on a machine without Python.
package main

// main is needed by -buildmode=c-shared and never runs.
func main() {}
