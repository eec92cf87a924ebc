package unpickle

import (
	"fmt"
	"strings"
)

// RefusedError says that a well-formed stream holds something that the mode or a budget does not let through.
type RefusedError struct {
	Type   string // what was met: "app.models.User", "cycle", "integer of 3000000 bits"
	Path   string // where, as far as known: result['rows'][3]
	Reason string // why, as half a sentence; may be empty
	Add    string // the profile line that would accept it; empty where no mode would
}

// Error names the type, the path, the reason, and ends with the line to add.
func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the result is refused: %s is %s", e.Path, e.Type)
	if e.Reason != "" {
		b.WriteString(", ")
		b.WriteString(e.Reason)
	}
	if e.Add != "" {
		b.WriteString(". Add:\n    ")
		b.WriteString(e.Add)
	}
	return b.String()
}

// MalformedError says that the bytes are no pickle that CPython's pickler writes at protocols 2 to 5.
type MalformedError struct {
	Offset int    // of the instruction
	What   string // what is wrong with it
}

func (e *MalformedError) Error() string {
	return fmt.Sprintf("the result is not a valid pickle: %s at byte %d", e.What, e.Offset)
}
