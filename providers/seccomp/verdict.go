package seccomp

import "syscall"

// Verdict is what the kernel does with a call: a return value of a seccomp filter (linux/seccomp.h).
type Verdict uint32

const (
	// Allow lets the call through.
	Allow Verdict = 0x7fff0000
	// Notify asks the supervisor, which holds the listener.
	Notify Verdict = 0x7fc00000
	// Kill ends the process with SIGSYS.
	Kill Verdict = 0x80000000
)

// Errno refuses the call with that error number.
func Errno(e syscall.Errno) Verdict { return 0x00050000 | Verdict(e)&0xffff }

// Call is one system call of this machine.
type Call struct {
	NR   uint32
	Name string
}

// Group is a set of calls with one verdict for one reason.
type Group struct {
	Why     string
	Verdict Verdict
	Calls   []Call
}

// Rule is a call whose verdict depends on its arguments: the first test that holds decides, else Verdict.
type Rule struct {
	Call
	Why     string
	Tests   []Test
	Verdict Verdict
}

// Test holds when every match does.
type Test struct {
	All  []Match
	Then Verdict
}

// Match compares the low 32 bits of an argument, masked, with a value; the high ones where High says so.
type Match struct {
	Arg         int
	Mask, Value uint32
	Not         bool
	High        bool
}

// is matches an argument that equals v.
func is(arg int, v uint32) Match { return Match{Arg: arg, Mask: ^uint32(0), Value: v} }

// masked matches an argument whose bits under mask equal v.
func masked(arg int, mask, v uint32) Match { return Match{Arg: arg, Mask: mask, Value: v} }

// anyOf matches an argument that has any of the bits.
func anyOf(arg int, bits uint32) Match { return Match{Arg: arg, Mask: bits, Not: true} }
