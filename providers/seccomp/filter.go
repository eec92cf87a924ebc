//go:build linux && (amd64 || arm64)

package seccomp

import (
	"fmt"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data (linux/seccomp.h), both architectures little-endian.
const (
	offsetNR   = 0
	offsetArch = 4
	offsetArgs = 16
)

// maxInstructions is BPF_MAXINSNS.
const maxInstructions = 4096

// verdicts is every call of the tables with its rule, sorted by number. A call in two tables is an error of ours.
func verdicts(n Needs) ([]Rule, error) {
	all := make([]Rule, 0, 512) // as many as there are calls: this is a part of each start
	for _, groups := range [][]Group{allowed, machineAllowed, refused, machineRefused} {
		for _, g := range groups {
			for _, c := range g.Calls {
				all = append(all, Rule{Call: c, Why: g.Why, Verdict: g.Verdict})
			}
		}
	}
	all = append(all, rules(n)...)
	slices.SortFunc(all, func(a, b Rule) int { return int(a.NR) - int(b.NR) })
	for i := 1; i < len(all); i++ {
		if all[i].NR == all[i-1].NR {
			return nil, fmt.Errorf("seccomp: %s stands in two tables", all[i].Name)
		}
	}
	return all, nil
}

// Notifies tells whether a policy's filter puts any call to the supervisor, so that one has to listen.
func Notifies(n Needs) bool {
	for _, r := range rules(n) {
		if r.Verdict == Notify || slices.ContainsFunc(r.Tests, func(t Test) bool { return t.Then == Notify }) {
			return true
		}
	}
	return false
}

// span is a run of call numbers, from first up to the next span's, that end the same way.
type span struct {
	first uint32
	rule  Rule
}

// spans covers all numbers: those between the known ones, and those above them, have a verdict each.
func spans(all []Rule, between, above Verdict) []span {
	var s []span
	add := func(first uint32, r Rule) {
		if k := len(s) - 1; k >= 0 && len(s[k].rule.Tests) == 0 && len(r.Tests) == 0 && s[k].rule.Verdict == r.Verdict {
			return
		}
		s = append(s, span{first, r})
	}
	next := uint32(0)
	for _, r := range all {
		if r.NR > next {
			add(next, Rule{Verdict: between})
		}
		add(r.NR, r)
		next = r.NR + 1
	}
	add(next, Rule{Verdict: above})
	return s
}

// Filter assembles the program for what a policy needs.
func Filter(n Needs) ([]unix.SockFilter, error) {
	code, err := assemble(n)
	if err != nil {
		return nil, err
	}
	return assembled(code)
}

func assembled(code []bpf.Instruction) ([]unix.SockFilter, error) {
	raw, err := bpf.Assemble(code)
	if err != nil {
		return nil, fmt.Errorf("seccomp: assemble: %w", err)
	}
	out := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out, nil
}

func assemble(n Needs) ([]bpf.Instruction, error) {
	all, err := verdicts(n)
	if err != nil {
		return nil, err
	}
	code := append(make([]bpf.Instruction, 0, 2048),
		bpf.LoadAbsolute{Off: offsetArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		ret(Kill),
		bpf.LoadAbsolute{Off: offsetNR, Size: 4},
	)
	if foreignABI != 0 {
		code = append(code, bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: foreignABI, SkipFalse: 1}, ret(Kill))
	}
	// A number above the known ones is a call newer than the tables, for which ENOSYS makes libraries take their older way.
	code = tree(code, spans(all, refuse, notPresent))
	if len(code) > maxInstructions {
		return nil, fmt.Errorf("seccomp: the filter has %d instructions, the kernel takes %d", len(code), maxInstructions)
	}
	return code, nil
}

// tree appends a binary search over the spans: about nine comparisons where a list would need hundreds.
func tree(code []bpf.Instruction, s []span) []bpf.Instruction {
	if len(s) == 1 {
		return append(code, leaf(s[0].rule)...)
	}
	middle := len(s) / 2
	// A conditional jump reaches 255 instructions, an unconditional one any number.
	code = append(code, bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: s[middle].first, SkipFalse: 1}, nil)
	jump := len(code) - 1
	code = tree(code, s[:middle])
	code[jump] = bpf.Jump{Skip: uint32(len(code) - jump - 1)}
	return tree(code, s[middle:])
}

// leaf ends with a verdict on every way through it.
func leaf(r Rule) []bpf.Instruction {
	var code []bpf.Instruction
	for _, t := range r.Tests {
		code = append(code, test(t)...)
	}
	return append(code, ret(r.Verdict))
}

// test falls through to what follows where a match does not hold.
func test(t Test) []bpf.Instruction {
	code := []bpf.Instruction{ret(t.Then)}
	for _, m := range slices.Backward(t.All) {
		past := uint8(len(code))
		jump := bpf.JumpIf{Cond: bpf.JumpEqual, Val: m.Value, SkipFalse: past}
		if m.Not {
			jump.Cond = bpf.JumpNotEqual
		}
		half := uint32(0)
		if m.High {
			half = 4
		}
		head := []bpf.Instruction{bpf.LoadAbsolute{Off: offsetArgs + 8*uint32(m.Arg) + half, Size: 4}}
		if m.Mask != ^uint32(0) {
			head = append(head, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: m.Mask})
		}
		code = append(append(head, jump), code...)
	}
	return code
}

func ret(v Verdict) bpf.Instruction { return bpf.RetConstant{Val: uint32(v)} }
