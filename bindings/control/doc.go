// Package control is the control plane that Python sees: open a sandbox, ask it, stop it, and the questions of the
// `pysandboxes` command. gopy wraps every exported name here, so this package is a list of doors and holds no logic.
//
// Only what crosses the border safely is exported: strings, ints, bools, errors and the one handle type Sandbox, whose
// fields are unexported. Structured data is one JSON string each way, which costs less than a list of strings and lets
// both sides add fields. bindings/core/regen.py refuses to generate anything for a signature outside of this set: gopy
// would leave it out without a word.
//
// Every error's text is a JSON object, see border.Fault. JSON carries paths that are not UTF-8 in Python's way, see
// border.Text.
//
// It trusts its caller, the application's own process; it never takes a byte from a sandboxed program.
package control
