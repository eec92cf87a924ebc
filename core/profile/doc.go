// Package profile reads `.py-sandboxes`: lines, quotes, includes, `${}` substitution, located errors.
//
//	p, err := profile.Load(profile.Options{Path: ".py-sandboxes", Env: env, Platform: "linux", Home: home, Cwd: cwd})
//
// A profile loads whole or not at all; what cannot be read exactly is an error with file, line, caret and a way to mend
// it. The package knows the grammar of every key (the table [Keys]) and the values of scalars; what a rule *means* is
// decided by core/policy.
//
// It trusts the host environment it is given and the person who wrote the file; it does not trust the file to be a
// file: directories, FIFOs, endless lines, other encodings and hidden control characters are refused. It never
// writes, never resolves a name on the network and never starts a program.
package profile
