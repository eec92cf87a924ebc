package contract

import (
	"fmt"
	"strings"

	"github.com/pysandboxes/pysandboxes/core/policy"
)

// Mediating are the providers that answer the sandbox's look-ups while it runs, so that rules for a domain hold.
var Mediating = []string{"landlock"}

// RefuseDomains is the error for a net rule with a domain, under a provider that sees no look-up: which names are below
// the domain cannot be listed when the profile is loaded.
func RefuseDomains(p *policy.Policy, provider string) error {
	rules := p.DomainRules()
	if len(rules) == 0 {
		return nil
	}
	return fmt.Errorf("%s: names below %s can only be held where names are mediated live, which os-sandbox=%s does not (os-sandbox=%s does)\nName the hosts one by one",
		rules[0].Pos, rules[0].Domain, provider, strings.Join(Mediating, ", "))
}
