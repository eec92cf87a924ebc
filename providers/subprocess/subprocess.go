// Package subprocess runs the child as a process of its own, without a kernel boundary: the Python layer alone
// holds the rules. Native code in the child can do what the user can do. Resource limits, closed descriptors and
// the end with the supervisor are those of every provider.
package subprocess

import (
	"os"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/contract"
)

// Provider is os-sandbox=subprocess.
type Provider struct{}

// NoBoundary is what is said at each start.
const NoBoundary = "os-sandbox=subprocess has no kernel boundary: the Python layer alone holds the rules, and native code in the sandbox can do what this user can do"

// Name is "subprocess".
func (Provider) Name() string { return "subprocess" }

// Probe finds it usable everywhere.
func (Provider) Probe() contract.Report {
	return contract.Report{Name: "subprocess", Usable: true, Enforces: []string{"resource limits"}, Gaps: []string{NoBoundary}}
}

// Holds nothing.
func (Provider) Holds() contract.Holds { return contract.Holds{} }

// Gaps is what resource limits cannot do; that there is no boundary at all is in the report.
func (Provider) Gaps(p *policy.Policy) []contract.Gap {
	return contract.LimitGaps(p, os.Geteuid() == 0)
}

// Prepare takes the limits along; DEST of an expose rule needs a mount namespace and is refused.
func (s Provider) Prepare(p *policy.Policy, c contract.Child) (contract.Command, error) {
	if err := contract.RefuseDomains(p, s.Name()); err != nil {
		return contract.Command{}, err
	}
	if err := contract.RefuseMoved(p, s.Name()); err != nil {
		return contract.Command{}, err
	}
	return contract.Command{Provider: s.Name(), Child: c, Limits: contract.LimitsOf(p), Gaps: s.Gaps(p)}, nil
}
