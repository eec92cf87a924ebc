//go:build linux && (amd64 || arm64)

package seccomp

import "golang.org/x/sys/unix"

// Namespace flags of clone (linux/sched.h). CLONE_NEWTIME is for clone3 and unshare only: in clone its bit belongs
// to the exit signal.
const cloneNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

var (
	refuse     = Errno(unix.EPERM)  // not permitted to anyone here
	denied     = Errno(unix.EACCES) // not granted by this policy
	done       = Errno(0)           // as if it had been made
	notPresent = Errno(unix.ENOSYS) // makes libraries take their older way
)

// rules are the calls that need a look at the arguments, or whose verdict depends on the policy.
func rules(n Needs) []Rule {
	r := []Rule{
		{Call: Call{unix.SYS_CLONE, "clone"}, Why: "threads always, processes by grant; never a namespace, never a child of the supervisor's own",
			Tests: cloneTests(n), Verdict: Allow},
		{Call: Call{unix.SYS_PERSONALITY, "personality"}, Why: "the values that change nothing of the protection", Tests: []Test{
			{[]Match{is(0, 0)}, Allow},
			{[]Match{is(0, 0xffffffff)}, Allow},
			{[]Match{is(0, 0x0008)}, Allow},  // PER_LINUX32
			{[]Match{is(0, 0x20000)}, Allow}, // UNAME26
			{[]Match{is(0, 0x20008)}, Allow},
		}, Verdict: refuse},
		{Call: Call{unix.SYS_PRLIMIT64, "prlimit64"}, Why: "limits of the caller only; that of core files stays", Tests: append(coreTests(n), selfTests(0, n)...), Verdict: Notify},
		{Call: Call{unix.SYS_SETRLIMIT, "setrlimit"}, Why: "the same", Tests: []Test{{[]Match{is(0, unix.RLIMIT_CORE)}, done}}, Verdict: Allow},
		{Call: Call{unix.SYS_SCHED_SETAFFINITY, "sched_setaffinity"}, Why: "the caller only", Tests: selfTests(0, n), Verdict: Notify},
		{Call: Call{unix.SYS_SCHED_SETSCHEDULER, "sched_setscheduler"}, Why: "the caller only", Tests: selfTests(0, n), Verdict: Notify},
		{Call: Call{unix.SYS_SCHED_SETPARAM, "sched_setparam"}, Why: "the caller only", Tests: selfTests(0, n), Verdict: Notify},
		{Call: Call{unix.SYS_SCHED_SETATTR, "sched_setattr"}, Why: "the caller only", Tests: selfTests(0, n), Verdict: Notify},
		{Call: Call{unix.SYS_SETPRIORITY, "setpriority"}, Why: "the caller only (PRIO_PROCESS)", Tests: ownPriorityTests(0, n), Verdict: refuse},
		{Call: Call{unix.SYS_IOPRIO_SET, "ioprio_set"}, Why: "the caller only (IOPRIO_WHO_PROCESS)", Tests: ownPriorityTests(1, n), Verdict: refuse},
	}
	r = append(r, execRules(n)...)
	r = append(r, socketRules(n)...)
	r = append(r, ioctlRules(n)...)
	r = append(r, metadataRules(n)...)
	r = append(r, compensation(n)...)
	return append(r, machineRules(n)...)
}

// cloneTests: CLONE_PARENT would make the sandbox's child a child of the application.
func cloneTests(n Needs) []Test {
	t := []Test{{[]Match{anyOf(0, cloneNamespaces|unix.CLONE_PARENT)}, refuse}}
	if !n.Fork {
		t = append(t, Test{[]Match{masked(0, unix.CLONE_THREAD, 0)}, refuse})
	}
	return t
}

// execRules: without a grant each exec is put to the supervisor, which knows the one that is init's own, and a
// program cannot outlive its supervisor by disarming the signal that ends it.
func execRules(n Needs) []Rule {
	// Arming it is harmless, and init does it.
	disarm := Match{Arg: 1, Mask: ^uint32(0), Value: uint32(unix.SIGKILL), Not: true}
	exec, prctl := Notify, []Test{{[]Match{is(0, unix.PR_SET_PDEATHSIG), disarm}, refuse}}
	if n.Exec {
		prctl = nil
		if !n.TellExec {
			exec = Allow
		}
	}
	return []Rule{
		{Call: Call{unix.SYS_EXECVE, "execve"}, Why: "running programs", Verdict: exec},
		{Call: Call{unix.SYS_EXECVEAT, "execveat"}, Why: "running programs", Verdict: exec},
		{Call: Call{unix.SYS_PRCTL, "prctl"}, Why: "the process's own switches", Tests: prctl, Verdict: Allow},
	}
}

// selfTests allow a process argument that is the program's first process, or 0, the caller. Whether another number is the
// caller's own only the supervisor knows.
func selfTests(arg int, n Needs) []Test {
	return []Test{
		{[]Match{is(arg, 0)}, Allow},
		{[]Match{is(arg, n.Self)}, Allow},
	}
}

// ownPriorityTests are the same for (which, who), where which is the process kind.
func ownPriorityTests(process uint32, n Needs) []Test {
	return []Test{
		{[]Match{is(0, process), is(1, 0)}, Allow},
		{[]Match{is(0, process), is(1, n.Self)}, Allow},
		{[]Match{is(0, process)}, Notify},
	}
}

// coreTests leave the limit of core files as init has set it (providers/initproc), which writes less than any other would: 0, which
// careful programs set, would let the kernel start a program for a crash. Who sets a limit and asks for the one before
// would be told nothing, and is refused.
func coreTests(n Needs) []Test {
	core := is(1, unix.RLIMIT_CORE)
	var t []Test
	there := func(arg int) []Match { // a pointer is there when either half of it is
		return []Match{anyOf(arg, ^uint32(0)), {Arg: arg, Mask: ^uint32(0), Not: true, High: true}}
	}
	for _, sets := range there(2) {
		for _, asks := range there(3) {
			t = append(t, Test{[]Match{core, sets, asks}, refuse})
		}
		for _, self := range []uint32{0, n.Self} {
			t = append(t, Test{[]Match{is(0, self), core, sets}, done})
		}
	}
	return t
}
