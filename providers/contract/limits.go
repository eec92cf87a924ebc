package contract

import (
	"time"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// interpreterData is room for what an interpreter maps privately before the program's first line (VmData of CPython
// 3.11 to 3.13: 5 to 8 MiB, without the guard). RLIMIT_DATA counts it, a person who writes limit-memory= does not
// mean it.
const interpreterData = 16 << 20

// LimitsOf translates the limits that resource limits can hold.
func LimitsOf(p *policy.Policy) plan.Limits {
	l := p.Limits()
	out := plan.Limits{}
	if l.CPU > 0 {
		out.CPUSeconds = uint64((l.CPU + time.Second - 1) / time.Second)
	}
	if l.OpenFiles > 0 {
		out.OpenFiles = uint64(l.OpenFiles)
	}
	if l.Processes > 0 {
		out.Processes = uint64(l.Processes)
	}
	if l.Memory > 0 {
		out.Data = uint64(l.Memory) + interpreterData
	}
	return out
}

// LimitGaps says where a resource limit is less than the rule (getrlimit(2)).
func LimitGaps(p *policy.Policy, root bool) []Gap {
	var gaps []Gap
	l := p.Limits()
	if l.Memory > 0 {
		gaps = append(gaps, Gap{Text: "limit-memory holds each process by itself and misses shared memory and memfd: there is no control group for this sandbox"})
	}
	switch {
	case l.Processes > 0 && root:
		gaps = append(gaps, Gap{Text: "limit-processes is not held: the kernel spares root from it"})
	case l.Processes > 0:
		gaps = append(gaps, Gap{Text: "limit-processes counts all processes of this user, also those outside the sandbox"})
	}
	if l.CPU > 0 {
		gaps = append(gaps, Gap{Text: "limit-cpu holds each process by itself"})
	}
	return gaps
}
