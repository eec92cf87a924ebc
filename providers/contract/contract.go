// Package contract is what every provider of the OS layer implements. Package providers, which chooses among them
// and starts what they prepare, offers the same names; this one exists so that a provider imports neither its
// siblings nor the code that starts children.
//
// A provider translates a policy into a plan for init (providers/plan). It starts nothing itself, and what it cannot
// hold it says: as a Gap where the rest still stands, as an error where a rule would silently be dropped.
package contract

import (
	"os"

	"github.com/pysandboxes/pysandboxes/core/broker"
	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/resolver"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// Report says whether a provider works here.
type Report struct {
	Name     string
	Usable   bool
	Why      string   // not usable: what is missing
	How      string   // not usable: how to get it
	Enforces []string // what the kernel holds, for people
	Gaps     []string // what it does not hold on this machine, whatever the policy says
}

// Holds says which families the kernel enforces, so that the Python layer knows what it must decide by itself.
type Holds struct {
	Files    bool // opening, making and removing files
	Mounts   bool // what lies beneath an exposed folder and may not be written, or not be seen, where a mount namespace is to be had
	Metadata bool // stat, chmod and the like
	Exec     bool // running programs
	Sockets  bool // socket families and types
	Network  bool // hosts and ports
	Signals  bool // no signal leaves the sandbox
}

// Gap is a rule of the policy, or a part of one, that the provider cannot hold. It is warned of once.
type Gap struct {
	Rule profile.Position // zero: no single rule
	Text string
	// Standing: it is so wherever this provider holds such a profile, and nothing about this start. `check` says it, a
	// start does not.
	Standing bool
}

// Child is what is to run.
type Child struct {
	Path string // the program; "" runs Argv[0]
	Argv []string
	// Env is the program's environment. What the guard needs is added at the start.
	Env []string
	Dir string // working directory, "" keeps the supervisor's

	Stdin, Stdout, Stderr *os.File // nil: /dev/null
	Boot, Announce        *os.File // the guard's; nil together where there is no guard
	Call                  *os.File // nil where nothing is called

	Guard, Preload string // paths of the guard and of the object that loads it; "" together
	Setsid         bool   // a session of its own (partial mode)
	InitPath       string // the static binary that plays init

	Network Network // how network rules are held, where there are any; "" is Either
}

// Network is how network rules are held.
type Network string

const (
	// Either takes Walled where it can be had, else Unwalled.
	Either Network = "either"
	// Walled: the child lives in a network namespace of its own.
	Walled Network = "walled"
	// Unwalled: the child lives in the supervisor's, and each call on an address is the supervisor's to decide.
	Unwalled Network = "unwalled"
)

// Command is a child with its boundary, ready for providers.Start.
type Command struct {
	Provider string
	Child    Child
	Limits   Limits
	Boundary *plan.Boundary // nil: no kernel boundary
	Gaps     []Gap          // what the provider cannot hold of this policy

	// LooksUp: some rule lets names be looked up.
	LooksUp bool
	// Judge decides the network calls that the boundary puts to the supervisor; nil refuses them.
	Judge broker.Judge
	// Resolver answers the sandbox's DNS queries, where the boundary leads them to it; nil where no rule needs the network.
	Resolver *resolver.Resolver
	// Files decides changes of what a file is; nil refuses them.
	Files broker.FileJudge
	// Denied takes what was refused to native code, before the caller has its answer; it must not block. Note takes
	// what a person should know of that service. Both are the caller's of Prepare to set, and may be nil.
	Denied func(broker.Denial)
	Note   func(string)

	// Saw takes what a learning run's native code does, where there is no boundary; nil: nobody looks. It must not block.
	Saw func(learn.Observation)

	// Network says how the boundary holds network rules; "" where there are none.
	Network Network
	// Serves: some rule lets the sandbox be reached from outside.
	Serves bool
	// LocalUDP: some rule lets datagrams be sent to this host's own addresses.
	LocalUDP bool
}

// Provider is one way to put a kernel boundary around a child.
type Provider interface {
	// Name is the word in os-sandbox=.
	Name() string
	// Probe tries whether the provider works here. It changes nothing.
	Probe() Report
	// Holds says what the kernel enforces.
	Holds() Holds
	// Gaps lists what of this policy the provider cannot hold.
	Gaps(*policy.Policy) []Gap
	// Prepare translates the policy. An error means that the provider must not be used for it; it says which
	// rule is in the way and how to mend it.
	Prepare(*policy.Policy, Child) (Command, error)
}
