// Package review is what lets a person trust a profile: it grades each rule, finds rules that do not do what they seem
// to, answers questions about what is allowed and compares two profiles.
//
//	s := review.Subject{Profile: p, Policy: pol}
//	findings := review.Lint(s)
//	verdict, err := review.Explain(s, kernel, "open /etc/passwd")
//	changes := review.Diff(before, after)
//
// Everything it says is data; texts for a terminal are made by the command. It asks the compiled policy wherever a
// verdict is needed, so that it cannot disagree with what is enforced. It trusts the profile as core/policy does, reads
// nothing but what the policy was compiled with, and changes nothing.
package review

import (
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// Subject is a profile under review.
type Subject struct {
	Profile *profile.Profile
	Policy  *policy.Policy
}
