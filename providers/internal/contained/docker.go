//go:build linux && (amd64 || arm64)

package main

import (
	"fmt"

	docker "github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Offsets in struct seccomp_data (linux/seccomp.h).
const (
	offsetNR   = 0
	offsetArgs = 16
)

// installDocker puts the profile on this thread, as runc does.
func installDocker() error {
	profile, err := docker.GetDefaultProfile(&specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}})
	if err != nil {
		return err
	}
	code, err := compile(profile)
	if err != nil {
		return err
	}
	return install(code)
}

// leaveOut makes calls that this kernel has look as if it had them not.
func leaveOut(names []string) error {
	none := uint(unix.ENOSYS)
	code, err := compile(&specs.LinuxSeccomp{
		DefaultAction: specs.ActAllow,
		Syscalls:      []specs.LinuxSyscall{{Names: names, Action: specs.ActErrno, ErrnoRet: &none}},
	})
	if err != nil {
		return err
	}
	return install(code)
}

func install(code []bpf.Instruction) error {
	raw, err := bpf.Assemble(code)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	_, err = seccomp.Install(filter, false)
	return err
}

// compile goes through the profile's calls in order: the first entry of a call whose arguments fit decides. What the kernel
// does not know by that name (the calls of other machines) is left out.
func compile(profile *specs.LinuxSeccomp) ([]bpf.Instruction, error) {
	table, err := seccomp.Table(seccomp.Needs{})
	if err != nil {
		return nil, err
	}
	numbers := map[string]uint32{}
	for _, r := range table {
		numbers[r.Name] = r.NR
	}
	if len(numbers) < 300 {
		return nil, fmt.Errorf("only %d calls are known by name", len(numbers))
	}
	var code []bpf.Instruction
	for _, s := range profile.Syscalls {
		then, err := action(s.Action, s.ErrnoRet)
		if err != nil {
			return nil, err
		}
		body, err := fitting(s.Args, then)
		if err != nil {
			return nil, err
		}
		for _, name := range s.Names {
			if nr, ok := numbers[name]; ok {
				code = append(code, bpf.LoadAbsolute{Off: offsetNR, Size: 4}, bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: uint8(len(body))})
				code = append(code, body...)
			}
		}
	}
	other, err := action(profile.DefaultAction, profile.DefaultErrnoRet)
	return append(code, other), err
}

func action(a specs.LinuxSeccompAction, errno *uint) (bpf.Instruction, error) {
	switch a {
	case specs.ActAllow:
		return bpf.RetConstant{Val: uint32(seccomp.Allow)}, nil
	case specs.ActErrno:
		e := unix.EPERM
		if errno != nil {
			e = unix.Errno(*errno)
		}
		return bpf.RetConstant{Val: uint32(seccomp.Errno(e))}, nil
	}
	return nil, fmt.Errorf("action %s", a)
}

// fitting falls through to what follows where the arguments do not fit. Docker's profile compares what fits into 32 bits.
func fitting(args []specs.LinuxSeccompArg, then bpf.Instruction) ([]bpf.Instruction, error) {
	code := []bpf.Instruction{then}
	for _, a := range args {
		past := uint8(len(code))
		head := []bpf.Instruction{bpf.LoadAbsolute{Off: offsetArgs + 8*uint32(a.Index), Size: 4}}
		switch a.Op {
		case specs.OpEqualTo:
			head = append(head, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(a.Value), SkipFalse: past})
		case specs.OpLessThan:
			head = append(head, bpf.JumpIf{Cond: bpf.JumpLessThan, Val: uint32(a.Value), SkipFalse: past})
		case specs.OpMaskedEqual:
			head = append(head, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: uint32(a.Value)},
				bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(a.ValueTwo), SkipFalse: past})
		default:
			return nil, fmt.Errorf("comparison %s", a.Op)
		}
		code = append(head, code...)
	}
	return code, nil
}
