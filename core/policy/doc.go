// Package policy is the compiled, immutable engine: what may be read, reached, imported, called.
//
//	pol, warnings, err := policy.Compile(p, policy.Context{Runtime: rt})
//	d := pol.File("/etc/passwd", policy.Read, "open")
//	if !d.Allow { return d.Message() }
//
// Every answer is a [Decision]: allow or refuse, the rule that decided (file:line) and the lines that would allow it,
// narrowest first. Deny is the default and DENY wins. A family stands in one file.
//
// The package trusts the profile and the runtime set that it was compiled with. It trusts nothing of a question: any
// bytes are a path, any string a host. It never touches the file system or the network after Compile, and a *Policy may
// be used by many goroutines at once.
package policy
