//go:build linux && (amd64 || arm64)

package seccomp

import "golang.org/x/sys/unix"

// lending are the bits of a mode by which whoever starts a program gets its owner's rights, or its group's. A file that is made
// with them needs no chmod, which the supervisor judges (core/metadata).
const lending = unix.S_ISUID | unix.S_ISGID

// tmpFile is __O_TMPFILE: with O_CREAT, what makes open take a mode.
const tmpFile = unix.O_TMPFILE &^ unix.O_DIRECTORY

// makingRules: opening to make a file may give it no rights to lend. Before ABI 3 of Landlock truncation needs no right, by path or by
// opening with O_TRUNC for reading.
func makingRules(n Needs) []Rule {
	truncate, openat2 := Allow, Allow
	if n.NoTruncate {
		truncate = refuse
	}
	if n.NoTruncate || n.Metadata {
		openat2 = notPresent // its flags and its mode are in memory
	}
	return []Rule{
		{Call: Call{unix.SYS_TRUNCATE, "truncate"}, Why: "empties a file by its path", Verdict: truncate},
		{Call: Call{unix.SYS_OPENAT2, "openat2"}, Why: "open with flags in memory", Verdict: openat2},
		{Call: Call{unix.SYS_OPENAT, "openat"}, Why: "opening to read must not empty, and makes nothing that lends rights", Tests: openTests(2, n), Verdict: Allow},
		{Call: Call{unix.SYS_MKNODAT, "mknodat"}, Why: "makes nothing that lends rights", Tests: modeTests(2, n), Verdict: Allow},
	}
}

// openTests look at the flags of an open, and at the mode behind them.
func openTests(flags int, n Needs) []Test {
	var t []Test
	if n.NoTruncate {
		t = append(t, Test{[]Match{masked(flags, unix.O_TRUNC|unix.O_ACCMODE, unix.O_TRUNC)}, denied})
	}
	if n.Metadata { // else Landlock lets nothing be made
		t = append(t, Test{[]Match{anyOf(flags, unix.O_CREAT|tmpFile), anyOf(flags+1, lending)}, refuse})
	}
	return t
}

// modeTests look at the mode of what is made in any case.
func modeTests(mode int, n Needs) []Test {
	if !n.Metadata {
		return nil
	}
	return []Test{{[]Match{anyOf(mode, lending)}, refuse}}
}
