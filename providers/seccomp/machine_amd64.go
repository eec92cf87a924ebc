//go:build linux

package seccomp

import "golang.org/x/sys/unix"

// machineMetadataCalls are the older forms of metadataCalls.
var machineMetadataCalls = []Call{
	{unix.SYS_CHMOD, "chmod"},
	{unix.SYS_CHOWN, "chown"},
	{unix.SYS_LCHOWN, "lchown"},
	{unix.SYS_UTIME, "utime"},
	{unix.SYS_UTIMES, "utimes"},
	{unix.SYS_FUTIMESAT, "futimesat"},
}

// machineRules are the older calls of this architecture that depend on the policy.
func machineRules(n Needs) []Rule {
	fork := refuse
	if n.Fork {
		fork = Allow
	}
	var open []Test
	if n.NoTruncate {
		open = []Test{{[]Match{masked(1, unix.O_TRUNC|unix.O_ACCMODE, unix.O_TRUNC)}, denied}}
	}
	return []Rule{
		{Call: Call{unix.SYS_FORK, "fork"}, Why: "making processes", Verdict: fork},
		{Call: Call{unix.SYS_VFORK, "vfork"}, Why: "making processes", Verdict: fork},
		{Call: Call{unix.SYS_OPEN, "open"}, Why: "opening to read must not empty", Tests: open, Verdict: Allow},
	}
}
