//go:build linux && (amd64 || arm64)

package seccomp

import "golang.org/x/sys/unix"

// metadataCalls change what a file is rather than what it holds. Landlock judges none of them.
var metadataCalls = []Call{
	{unix.SYS_FCHMOD, "fchmod"},
	{unix.SYS_FCHMODAT, "fchmodat"},
	{unix.SYS_FCHMODAT2, "fchmodat2"},
	{unix.SYS_FCHOWN, "fchown"},
	{unix.SYS_FCHOWNAT, "fchownat"},
	{unix.SYS_UTIMENSAT, "utimensat"},
	{unix.SYS_SETXATTR, "setxattr"},
	{unix.SYS_LSETXATTR, "lsetxattr"},
	{unix.SYS_FSETXATTR, "fsetxattr"},
	{unix.SYS_SETXATTRAT, "setxattrat"},
	{unix.SYS_REMOVEXATTR, "removexattr"},
	{unix.SYS_LREMOVEXATTR, "lremovexattr"},
	{unix.SYS_FREMOVEXATTR, "fremovexattr"},
	{unix.SYS_REMOVEXATTRAT, "removexattrat"},
	{unix.SYS_FILE_SETATTR, "file_setattr"},
}

// metadataRules refuse metadata changes to a policy in which nothing is writable.
func metadataRules(n Needs) []Rule {
	verdict := denied
	if n.Metadata {
		verdict = Allow
	}
	var r []Rule
	for _, c := range append(metadataCalls, machineMetadataCalls...) {
		r = append(r, Rule{Call: c, Why: "changes a file's mode, owner, times or attributes", Verdict: verdict})
	}
	return r
}
