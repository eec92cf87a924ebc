//go:build linux && (amd64 || arm64)

package seccomp

import (
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The filter of a learning run refuses nothing: it puts to the supervisor what a rule could name, so that the supervisor can
// look and let it go on. What is not in this table is not seen.

// observed are the calls that are looked at. Reading what a file is (stat) is none of them: no kernel layer holds it, and a
// program does it more often than all else together.
var observed = []Rule{
	watch(unix.SYS_OPENAT, "openat", notPathOnly(2)...),
	watch(unix.SYS_OPENAT2, "openat2"), // its flags are in memory
	watch(unix.SYS_UNLINKAT, "unlinkat"),
	watch(unix.SYS_RENAMEAT2, "renameat2"),
	watch(unix.SYS_MKDIRAT, "mkdirat"),
	watch(unix.SYS_LINKAT, "linkat"),
	watch(unix.SYS_SYMLINKAT, "symlinkat"),
	watch(unix.SYS_MKNODAT, "mknodat"),
	watch(unix.SYS_TRUNCATE, "truncate"),
	watch(unix.SYS_FCHMODAT, "fchmodat"),
	watch(unix.SYS_FCHMODAT2, "fchmodat2"),
	watch(unix.SYS_FCHOWNAT, "fchownat"),
	watch(unix.SYS_UTIMENSAT, "utimensat", Test{[]Match{is(1, 0), isHigh(1, 0)}, Allow}), // by descriptor: it was opened before
	watch(unix.SYS_SETXATTR, "setxattr"),
	watch(unix.SYS_LSETXATTR, "lsetxattr"),
	watch(unix.SYS_REMOVEXATTR, "removexattr"),
	watch(unix.SYS_LREMOVEXATTR, "lremovexattr"),
	watch(unix.SYS_EXECVE, "execve"),
	watch(unix.SYS_EXECVEAT, "execveat"),
	watch(unix.SYS_CONNECT, "connect"),
	watch(unix.SYS_BIND, "bind"),
	watch(unix.SYS_LISTEN, "listen"),
	{Call: Call{unix.SYS_SENDTO, "sendto"}, Why: "with an address, or as the C library asks a name server",
		Tests: append(slices.Clone(addressTests), Test{[]Match{is(3, unix.MSG_NOSIGNAL), masked(2, ^uint32(0x1ff), 0)}, Notify}), Verdict: Allow},
	watch(unix.SYS_SENDMSG, "sendmsg"), // its address is in memory
	watch(unix.SYS_SENDMMSG, "sendmmsg"),
}

// watch has a call looked at, but for what the tests let pass.
func watch(nr uint32, name string, tests ...Test) Rule {
	return Rule{Call: Call{nr, name}, Tests: tests, Verdict: Notify}
}

// notPathOnly lets an open pass that gives no access to what is opened.
func notPathOnly(flags int) []Test { return []Test{{[]Match{anyOf(flags, unix.O_PATH)}, Allow}} }

func isHigh(arg int, v uint32) Match { return Match{Arg: arg, Mask: ^uint32(0), Value: v, High: true} }

// ObserveFilter assembles the program for a learning run. Calls of another architecture or ABI pass unseen.
func ObserveFilter() ([]unix.SockFilter, error) { return assembled(observing()) }

func observing() []bpf.Instruction {
	all := append(slices.Clone(observed), machineObserved...)
	slices.SortFunc(all, func(a, b Rule) int { return int(a.NR) - int(b.NR) })
	code := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		ret(Allow),
		bpf.LoadAbsolute{Off: offsetNR, Size: 4},
	}
	if foreignABI != 0 {
		code = append(code, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: foreignABI, SkipFalse: 1}, ret(Allow))
	}
	return tree(code, spans(all, Allow, Allow))
}
