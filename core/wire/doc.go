// Package wire is the language between a supervisor and the guard of a sandboxed interpreter: the boot data that a child
// is born with, the questions it asks and the answers it gets. It knows the bytes and nothing of sockets.
//
// A question comes from a child that may be hostile. [DecodeQuestion] therefore accepts exactly the shapes of
// docs/implementation.md, never panics, and never allocates more than the message itself is long; whatever else arrives is
// an error, and the caller closes that socket. An answer and the boot data are made by us; they are bounded all the same,
// because a path or a message can be as long as the child wishes.
package wire

// Protocol is the version of the boot data and of the questions. Guard and supervisor refuse each other on a difference.
const Protocol = 1

// MaxMessage is the longest question or answer, in bytes.
const MaxMessage = 64 << 10

// Version is the version of the product. The build sets it with -ldflags "-X …/core/wire.Version=…".
var Version = "0.0.0.dev0"
