package daemon

import (
	"fmt"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/wire"
)

// learnVariable is the one variable of the host's environment that forbids learning, with the value "never".
const learnVariable = "PYSANDBOXES_LEARN"

// MissingProfileError is a start without a profile where nothing may be learned.
type MissingProfileError struct {
	Searched []string
	Former   string // the record of a former run that used a profile there, "" where there is none
	Mode     string
	Never    bool // PYSANDBOXES_LEARN=never
}

func (e *MissingProfileError) Error() string {
	var b strings.Builder
	if e.Former != "" {
		fmt.Fprintf(&b, "the profile %s was used on this machine before and is gone", e.Searched[len(e.Searched)-1])
	} else {
		fmt.Fprintf(&b, "no profile was found; looked for:\n    %s", strings.Join(e.Searched, "\n    "))
	}
	learn := "python-sb --learn …"
	if e.Mode == wire.ModePartial {
		learn = `learn="FILE" (with sandboxes(learn=".py-sandboxes"): …)`
	}
	switch {
	case e.Former != "":
		fmt.Fprintf(&b, "\nPut it back, or learn a new one on code that you trust: %s", learn)
		fmt.Fprintf(&b, "\nTo forget that it was there: rm %s", e.Former)
	case e.Never:
		fmt.Fprintf(&b, "\n%s=never forbids learning one; write it by hand", learnVariable)
	default:
		fmt.Fprintf(&b, "\nLearn one on code that you trust: %s", learn)
	}
	return b.String()
}

// LearnForbiddenError is a learning run that was asked for where none may be.
type LearnForbiddenError struct{ Reason string }

func (e *LearnForbiddenError) Error() string { return "learning is forbidden: " + e.Reason }
