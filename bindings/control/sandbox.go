package control

import "github.com/pysandboxes/pysandboxes/bindings/calls"

// Sandbox is one open sandbox.
type Sandbox struct {
	// Calls is for bindings/core, which serves the path of a call by hand. No field is a door for Python.
	Calls calls.Table
}
