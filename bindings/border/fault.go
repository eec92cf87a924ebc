package border

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
)

// Kinds of a fault: the names of the exception classes that pysandboxes raises for them.
const (
	KindConfig   = "ConfigSyntaxError"         // a profile that does not parse or cannot be enforced
	KindSandBox  = "SandBoxError"              // everything that has no class of its own
	KindProtocol = "SandBoxProtocolError"      // the child's end of a stream: dead, or outside of the protocol
	KindResult   = "RestrictedUnpicklingError" // a result that is refused
)

// Fault is an error on its way to Python. Its text is JSON, because an exception that C raises carries one string.
type Fault struct {
	Kind    string `json:"kind"`
	Message Text   `json:"message"` // for people; ends with how to mend it
	File    Text   `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Stack   string `json:"stack,omitempty"` // of a Go panic
}

// Error gives the JSON text.
func (f *Fault) Error() string {
	data, err := json.Marshal(f)
	if err != nil { // cannot be: Text encodes any bytes
		return `{"kind":"SandBoxError","message":"an error without a text"}`
	}
	return string(data)
}

// PanicFault words a Go panic that was caught at the border while operation ran.
func PanicFault(operation string, value any) *Fault {
	return &Fault{
		Kind:    KindSandBox,
		Message: Text(fmt.Sprintf("%s failed inside the Go engine (panic: %v). This is a bug in pysandboxes; please report it with the stack.", operation, value)),
		Stack:   string(debug.Stack()),
	}
}
