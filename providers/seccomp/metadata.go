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
	{unix.SYS_REMOVEXATTR, "removexattr"},
	{unix.SYS_LREMOVEXATTR, "lremovexattr"},
	{unix.SYS_FREMOVEXATTR, "fremovexattr"},
}

// newMetadataCalls are younger forms, which no library needs: without them it takes the ones above.
var newMetadataCalls = []Call{
	{unix.SYS_SETXATTRAT, "setxattrat"},
	{unix.SYS_REMOVEXATTRAT, "removexattrat"},
	{unix.SYS_FILE_SETATTR, "file_setattr"},
}

// metadataRules put metadata changes to the supervisor, which makes them where the policy lets the file be written; where
// nothing is writable they are refused at once.
func metadataRules(n Needs) []Rule {
	verdict := denied
	if n.Metadata {
		verdict = Notify
	}
	var r []Rule
	for _, c := range append(metadataCalls, machineMetadataCalls...) {
		r = append(r, Rule{Call: c, Why: "changes a file's mode, owner, times or attributes", Verdict: verdict})
	}
	for _, c := range newMetadataCalls {
		r = append(r, Rule{Call: c, Why: "changes a file's attributes, by a younger call", Verdict: notPresent})
	}
	return r
}
