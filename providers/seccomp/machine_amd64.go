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
	return []Rule{
		{Call: Call{unix.SYS_FORK, "fork"}, Why: "making processes", Verdict: fork},
		{Call: Call{unix.SYS_VFORK, "vfork"}, Why: "making processes", Verdict: fork},
		{Call: Call{unix.SYS_OPEN, "open"}, Why: "opening to read must not empty, and makes nothing that lends rights", Tests: openTests(1, n), Verdict: Allow},
		{Call: Call{unix.SYS_CREAT, "creat"}, Why: "makes nothing that lends rights", Tests: modeTests(1, n), Verdict: Allow},
		{Call: Call{unix.SYS_MKNOD, "mknod"}, Why: "makes nothing that lends rights", Tests: modeTests(1, n), Verdict: Allow},
	}
}
