// Package providers is the OS layer: it chooses a provider, and starts the child that the provider prepared.
//
// A child starts through init (providers/initproc), a small program that puts up the boundary around itself, proves
// it and then becomes the interpreter. This package makes the process, takes init's outcome, answers the exec calls
// that a sandbox without a grant makes, and watches for the end. It works inside an application as well as in a
// program of its own: it installs no signal handler and leaves no descriptor behind.
//
// It trusts init until init becomes the interpreter, and nothing of the process after that.
package providers

import "github.com/pysandboxes/pysandboxes/providers/contract"

// The contract of a provider, by the names that users of this package need.
type (
	Provider = contract.Provider
	Report   = contract.Report
	Holds    = contract.Holds
	Gap      = contract.Gap
	Child    = contract.Child
	Command  = contract.Command
	Limits   = contract.Limits
	Network  = contract.Network
)

// How network rules are held.
const (
	Either   = contract.Either
	Walled   = contract.Walled
	Unwalled = contract.Unwalled
)
