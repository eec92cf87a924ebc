//go:build linux && (amd64 || arm64)

package seccomp

import "golang.org/x/sys/unix"

// compensation are the rules that depend on what this kernel's Landlock covers: where it lacks a right, the call
// is narrowed here instead.
func compensation(n Needs) []Rule {
	return append(signalRules(n), makingRules(n)...)
}

// signalRules: before ABI 6 Landlock has no signal scope, so a signal may go only to the process itself. A program
// that makes processes can then not signal its own children either.
func signalRules(n Needs) []Rule {
	calls := []Call{
		{unix.SYS_KILL, "kill"},
		{unix.SYS_TGKILL, "tgkill"},
		{unix.SYS_RT_SIGQUEUEINFO, "rt_sigqueueinfo"},
		{unix.SYS_RT_TGSIGQUEUEINFO, "rt_tgsigqueueinfo"},
	}
	others := []Call{
		// Their target is a thread number or a descriptor, which a filter cannot tell apart.
		{unix.SYS_TKILL, "tkill"},
		{unix.SYS_PIDFD_SEND_SIGNAL, "pidfd_send_signal"},
	}
	const why = "signals stay inside the sandbox"
	var r []Rule
	for _, c := range calls {
		rule := Rule{Call: c, Why: why, Verdict: Allow}
		if n.NoSignalScope {
			rule.Tests, rule.Verdict = selfOnly(n), refuse
		}
		r = append(r, rule)
	}
	r = append(r, ownerRule(n))
	for _, c := range others {
		rule := Rule{Call: c, Why: why, Verdict: Allow}
		if n.NoSignalScope {
			rule.Verdict = refuse
		}
		r = append(r, rule)
	}
	return r
}

// ownerRule: a descriptor sends its owner a signal when it becomes readable, which needs no kill. F_SETOWN_EX keeps
// the owner in memory, where a filter cannot read.
func ownerRule(n Needs) Rule {
	r := Rule{Call: Call{unix.SYS_FCNTL, "fcntl"}, Why: "a descriptor's owner gets signals, which stay inside", Verdict: Allow}
	if n.NoSignalScope {
		r.Tests = []Test{
			{[]Match{is(1, unix.F_SETOWN), is(2, n.Self)}, Allow},
			{[]Match{is(1, unix.F_SETOWN)}, refuse},
			{[]Match{is(1, unix.F_SETOWN_EX)}, refuse},
		}
	}
	return r
}

// selfOnly is selfTests without 0, which means the whole process group for kill.
func selfOnly(n Needs) []Test {
	return []Test{{[]Match{is(0, n.Self)}, Allow}}
}
