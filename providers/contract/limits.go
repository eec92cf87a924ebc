package contract

import (
	"os"
	"time"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/cgroup"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// interpreterData is room for what an interpreter maps privately before the program's first line (VmData of CPython
// 3.11 to 3.13: 5 to 8 MiB, without the guard). The kernel counts it, a person who writes limit-memory= does not
// mean it.
const interpreterData = 16 << 20

// Limits bound a child. What a control group bounds is not bounded by resource limits as well: those count what is mapped and
// never used, and each process by itself.
type Limits struct {
	plan.Limits
	Group *cgroup.Limits // nil: no control group
	place *cgroup.Place
}

// HoldsProcesses reports whether limit-processes, where it is set, is held.
func (l Limits) HoldsProcesses() bool {
	return l.Group != nil && l.Group.Processes > 0 || l.Processes > 0 && os.Geteuid() != 0
}

// MakeGroup makes the control group, nil where there is none to make.
func (l Limits) MakeGroup() (*cgroup.Group, error) {
	if l.Group == nil {
		return nil, nil
	}
	return l.place.Make(*l.Group)
}

// LimitsOf translates the limits of a policy: by a control group where this process may make one, else by resource limits.
func LimitsOf(p *policy.Policy) Limits {
	l := p.Limits()
	out := Limits{}
	if l.CPU > 0 {
		out.CPUSeconds = uint64((l.CPU + time.Second - 1) / time.Second)
	}
	if l.OpenFiles > 0 {
		out.OpenFiles = uint64(l.OpenFiles)
	}
	if l.Memory <= 0 && l.Processes <= 0 {
		return out
	}
	place, err := cgroup.Here()
	if err == nil {
		out.place, out.Group = place, &cgroup.Limits{Processes: uint64(max(l.Processes, 0))}
		if l.Memory > 0 {
			out.Group.Memory = uint64(l.Memory) + interpreterData
		}
		return out
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
	gap := func(key, text string) {
		gaps = append(gaps, Gap{Rule: p.LimitPosition(key), Text: text})
	}
	if l.CPU > 0 {
		gap("limit-cpu", "limit-cpu holds each process by itself")
	}
	if l.Memory <= 0 && l.Processes <= 0 {
		return gaps
	}
	_, err := cgroup.Here()
	if err == nil {
		return gaps
	}
	if l.Memory > 0 {
		gap("limit-memory", "limit-memory is partial: it holds each process by itself and misses shared memory and memfd, since there is no control group for this sandbox ("+err.Error()+")")
	}
	switch {
	case l.Processes > 0 && root:
		gap("limit-processes", "limit-processes is not held: the kernel spares root from it, and there is no control group for this sandbox ("+err.Error()+")")
	case l.Processes > 0:
		gap("limit-processes", "limit-processes is partial: it counts all processes of this user, also those outside the sandbox, since there is no control group for it ("+err.Error()+")")
	}
	return gaps
}
