package contract

import (
	"fmt"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// RefuseMoved is the error for an expose rule with a DEST, under a provider that has no mount namespace to put it in.
func RefuseMoved(p *policy.Policy, provider string) error {
	for _, e := range p.Exposures() {
		if e.Dest != "" && e.Dest != e.Source {
			return fmt.Errorf("%s: %s cannot be shown as %s: os-sandbox=%s has no mount namespace; expose it at its own place", e.Pos, e.Source, e.Dest, provider)
		}
	}
	return nil
}
