// Package interpreter finds the Python that a sandbox runs and learns what it needs to run: its runtime set.
//
//	exe, err := interpreter.Find(os.Args[0])
//	in, err := interpreter.Probe(exe, nil)
//
// The runtime set has to be known before the boundary stands, so the interpreter is asked once, outside of it, by a script
// that runs no code but the standard library's: no site, no sitecustomize, and of `.pth` files only the folders they name,
// never the lines that execute. The answer is cached by the interpreter and by the times of every file that could change it.
//
// The package trusts the interpreter and the standard library. It does not trust the cache: a file that is not the user's
// own, that others may write, or that does not parse is ignored.
package interpreter
