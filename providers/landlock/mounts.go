package landlock

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/contract"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// sharedMemory is where the C library keeps semaphores and shared memory by name.
const sharedMemory = "/dev/shm"

// mountsOf is the mount namespace that a policy needs, nil for most: a start with one takes longer.
func mountsOf(pol *policy.Policy) (*plan.Mounts, error) {
	m := &plan.Mounts{}
	if err := pol.CheckProtected(); err != nil {
		held, err2 := pol.HoldProtected()
		if err2 != nil {
			return nil, err2
		}
		m.ReadOnly, m.Pinned, m.Needed = held.ReadOnly, held.Pinned, err.Error()
	}
	if err := conceal(pol, m); err != nil {
		return nil, err
	}
	if private(pol) {
		m.Private = []plan.Private{{Path: sharedMemory, Size: uint64(pol.Limits().Memory)}}
		m.Without = append(m.Without, "what the program keeps in "+sharedMemory+" is the host's and stays there, and what others keep there is exposed")
	}
	if m.ReadOnly == nil && m.Hidden == nil && m.Private == nil && m.Needed == "" {
		return nil, nil
	}
	return m, nil
}

// conceal plans what hides the files that ignore rules name. Landlock grants whole trees and cannot take a part out again.
func conceal(pol *policy.Policy, m *plan.Mounts) error {
	ig, e, ok := pol.Concealable()
	if !ok {
		return nil
	}
	inWay := fmt.Errorf("%s: ignore=%s cannot be held by the kernel inside %s (exposed at %s): Landlock cannot take a part out of an exposed folder.\nExpose the folders beside it one by one, or accept that the Python layer alone holds it, which native code can step around:\n    ignore-best-effort=true",
		ig.Pos, ig.Glob, e.Source, e.Pos)
	best := pol.Switches().IgnoreBestEffort
	hidden, err := pol.Conceal()
	switch {
	case err != nil && !best:
		return fmt.Errorf("%w\n(%w)", inWay, err)
	case err != nil:
		return nil // said in Gaps
	case best:
		m.Without = append(m.Without, fmt.Sprintf("%s: what ignore= hides is held by the Python layer only", ig.Pos))
	case m.Needed == "":
		m.Needed = inWay.Error()
	}
	m.Hidden = hidden.Paths
	for _, path := range hidden.Pinned {
		if !slices.Contains(m.Pinned, path) {
			m.Pinned = append(m.Pinned, path)
		}
	}
	slices.Sort(m.Pinned)
	return nil
}

// unconcealed is what a profile accepts to have held by the Python layer alone, where there is too much of it to be hidden.
func unconcealed(pol *policy.Policy) []contract.Gap {
	ig, _, ok := pol.Concealable()
	if !ok || !pol.Switches().IgnoreBestEffort {
		return nil // else Prepare refuses it
	}
	if _, err := pol.Conceal(); err != nil {
		return []contract.Gap{{Rule: ig.Pos, Text: fmt.Sprintf("what ignore= hides is held by the Python layer only: %v", err)}}
	}
	return nil
}

// private tells that the folder of shared memory is exposed as a whole, and nothing in it by a rule of its own, which would
// mean the host's.
func private(pol *policy.Policy) bool {
	whole := false
	for _, e := range pol.Exposures() {
		whole = whole || e.Write && e.Source == sharedMemory
		if e.Source != sharedMemory && beneath(e.Source, sharedMemory) {
			return false
		}
	}
	if !whole {
		return false
	}
	var st unix.Stat_t
	return unix.Stat(sharedMemory, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}
