// Package none is the absence of a sandbox: functions are called directly in the application. It exists for
// development, holds nothing, and starts nothing.
package none

import (
	"errors"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/contract"
)

// Provider is os-sandbox=none.
type Provider struct{}

// ErrDirect: there is no child to start.
var ErrDirect = errors.New("os-sandbox=none starts no process: functions are called directly, without any sandbox; use os-sandbox=auto to run a program")

// Name is "none".
func (Provider) Name() string { return "none" }

// Probe finds it usable everywhere.
func (Provider) Probe() contract.Report {
	return contract.Report{Name: "none", Usable: true, Gaps: []string{"os-sandbox=none runs the code in the application itself: no rule of the profile is held"}}
}

// Holds nothing.
func (Provider) Holds() contract.Holds { return contract.Holds{} }

// Gaps is empty: the report says that nothing at all is held.
func (Provider) Gaps(*policy.Policy) []contract.Gap { return nil }

// Prepare always returns ErrDirect.
func (Provider) Prepare(*policy.Policy, contract.Child) (contract.Command, error) {
	return contract.Command{}, ErrDirect
}
