package policy

import (
	"errors"

	"github.com/pysandboxes/pysandboxes/core/audit"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// Policy is a compiled profile.
type Policy struct{}

// Compile makes a policy.
func Compile(p *profile.Profile, c Context) (*Policy, []profile.Warning, error) {
	return nil, nil, errors.New("not ready")
}
func (d Decision) Message() string                               { return d.Note }
func (p *Policy) File(path string, a Access, op string) Decision { return Decision{} }
func (p *Policy) Import(name string, hint string) Decision       { return Decision{} }
func (p *Policy) Call(names []string, event string) Decision     { return Decision{} }
func (p *Policy) Net(q NetQuestion) Decision                     { return Decision{} }
func (p *Policy) Eval(kind string) Decision                      { return Decision{} }
func (p *Policy) Env(name string) Decision                       { return Decision{} }
func (p *Policy) Environ() []string                              { return nil }
func (p *Policy) Exposures() []Exposure                          { return nil }
func (p *Policy) Ignores() []Ignore                              { return nil }
func (p *Policy) Runtime() Runtime                               { return Runtime{} }
func (p *Policy) Target() []string                               { return nil }
func (p *Policy) Switches() Switches                             { return Switches{} }
func (p *Policy) Limits() Limits                                 { return Limits{} }
func (p *Policy) Options(provider string) map[string]string      { return nil }
func (p *Policy) NetNeeded() bool                                { return false }
func (p *Policy) GrantsExec() bool                               { return false }
func (p *Policy) Grants(c audit.Category) bool                   { return false }
func (p *Policy) Snapshot() Snapshot                             { return Snapshot{} }
func (p *Policy) Protected() []string                            { return nil }
func (p *Policy) CheckProtected() error                          { return nil }
