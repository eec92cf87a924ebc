package border

import (
	"errors"

	"github.com/pysandboxes/pysandboxes/core/daemon"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/transport"
	"github.com/pysandboxes/pysandboxes/core/unpickle"
)

// ErrPending is no failure: the operation goes on, and the same call is to be made again. C looks for signals in between, so
// that Ctrl-C interrupts a long start.
var ErrPending = errors.New("the operation is still going on")

// AsFault gives err as a Fault, with the kind that its type stands for. What has no kind of its own is a SandBoxError.
func AsFault(err error) *Fault {
	var fault *Fault
	if errors.As(err, &fault) {
		return fault
	}
	fault = &Fault{Kind: KindSandBox, Message: Text(err.Error())}
	var (
		syntax   *profile.SyntaxError
		missing  *daemon.MissingProfileError
		refused  *unpickle.RefusedError
		broken   *unpickle.MalformedError
		limit    *transport.LimitError
		dead     *transport.DeadError
		protocol *transport.ProtocolError
	)
	switch {
	case errors.As(err, &syntax):
		fault.Kind, fault.File, fault.Line = KindConfig, Text(syntax.Pos.File), syntax.Pos.Line
	case errors.As(err, &missing):
		fault.Kind = KindConfig
	case errors.As(err, &refused), errors.As(err, &broken), errors.As(err, &limit):
		fault.Kind = KindResult
	case errors.As(err, &dead), errors.As(err, &protocol):
		fault.Kind = KindProtocol
	}
	return fault
}
