// Package landlock is the default provider: Landlock for files, seccomp for everything that is a system call. It
// needs no privilege and no helper, works for root, for others and in an unprivileged container, and keeps the
// host's process numbers.
//
// What it does not hold: stat and other reads of metadata outside the exposed paths; anything that the kernel itself gets
// wrong.
//
// This package decides on paths and writes them into the plan. The kernel calls are init's (providers/initproc).
package landlock

import (
	"fmt"
	"os"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/contract"
	"github.com/pysandboxes/pysandboxes/providers/plan"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Provider is os-sandbox=landlock.
type Provider struct{}

// Name is "landlock".
func (Provider) Name() string { return "landlock" }

// Probe asks the kernel for both mechanisms.
func (p Provider) Probe() contract.Report {
	r := contract.Report{Name: p.Name()}
	abi, err := ABI()
	if err != nil {
		r.Why = err.Error()
		r.How = "It needs Linux 5.13 or newer with landlock among the security modules (lsm= on the kernel's command line), and a container runtime that permits its system calls (Docker 23 or newer)."
		return r
	}
	if err := seccomp.Probe(); err != nil {
		r.Why = err.Error()
		r.How = "A container runtime's seccomp profile may be refusing it."
		return r
	}
	r.Usable = true
	r.Enforces = []string{
		"files: reading, writing, making, removing and running them, by path",
		"changes of mode, owner, times and extended attributes, by path: the supervisor makes them, and needs /proc for it",
		"running programs and making processes, by grant",
		"socket families and types; internet sockets exist only where the profile has a network rule",
		"hosts, ports and protocols of what is sent, connected to and listened on, by rule: the supervisor decides on each",
		"names: those that rules allow (*.domain too) are looked up for every client in the sandbox; no other name leaves it",
		"ptrace, other processes' memory, mounts, namespaces, io_uring, kernel modules, keys, shared memory segments",
	}
	for _, g := range kernelGaps {
		if abi < g.before {
			r.Gaps = append(r.Gaps, g.text)
		}
	}
	r.Gaps = append(r.Gaps, missing()...)
	return r
}

// Holds says what the kernel enforces. Metadata is not among it: Landlock does not judge stat.
func (Provider) Holds() contract.Holds {
	abi, _ := ABI() // an unusable kernel is Probe's to report
	return contract.Holds{Files: true, Mounts: true, Exec: true, Sockets: true, Network: true, Signals: abi >= 6}
}

// Prepare writes the plan. It refuses what it would have to drop: a DEST, and a writable folder that holds the profile where it cannot be
// made read only.
func (p Provider) Prepare(pol *policy.Policy, c contract.Child) (contract.Command, error) {
	if err := contract.RefuseMoved(pol, p.Name()); err != nil {
		return contract.Command{}, err
	}
	mounts, err := mountsOf(pol)
	if err != nil {
		return contract.Command{}, err
	}
	abi, err := ABI()
	if err != nil {
		return contract.Command{}, err
	}
	rules, err := rulesFor(pol, c)
	if err != nil {
		return contract.Command{}, err
	}
	outside, write := provable(rules)
	writable := writableOf(pol)
	return contract.Command{
		Provider: p.Name(),
		Child:    c,
		Limits:   contract.LimitsOf(pol),
		Boundary: &plan.Boundary{
			ABI:   abi,
			Rules: rules,
			Filter: seccomp.Needs{
				Inet:         pol.NetNeeded(),
				UDP:          pol.UDPNeeded(),
				Exec:         pol.GrantsExec(),
				TellExec:     pol.GrantsExec(),
				Fork:         pol.GrantsExec(),
				UnixDatagram: writable.socket,
				Metadata:     writable.any,
				Devices:      writable.device,
			},
			Mounts:       mounts,
			KeepCaps:     keptCapabilities(pol),
			Outside:      outside,
			OutsideWrite: write,
		},
		Files:   pol,
		Gaps:    p.Gaps(pol),
		Judge:   pol,
		Network: networkOf(pol, c.Network),
		Serves:  pol.Serves(), LocalUDP: pol.LocalUDP(),
		LooksUp: pol.LooksUpNames(),
	}, nil
}

// networkOf says how network rules are held, where there are any.
func networkOf(pol *policy.Policy, wished contract.Network) contract.Network {
	switch {
	case !pol.NetNeeded():
		return ""
	case wished == "":
		return DefaultNetwork
	}
	return wished
}

// DefaultNetwork is how network rules are held where nobody has chosen.
const DefaultNetwork = contract.Unwalled

// Gaps lists what of this policy is not held.
func (Provider) Gaps(pol *policy.Policy) []contract.Gap {
	gaps := contract.LimitGaps(pol, os.Geteuid() == 0)
	abi, _ := ABI() // an unusable kernel is Probe's to report
	for _, text := range append(degraded(abi), missing()...) {
		gaps = append(gaps, contract.Gap{Text: text})
	}
	if (pol.UDPNeeded() || pol.LooksUpNames()) && !contract.MayFetch() {
		gaps = append(gaps, contract.Gap{Text: "pidfd_getfd is not permitted here (Docker's profile does with CAP_SYS_PTRACE): rules for TCP by address hold and work, " +
			"but datagrams and looking names up are refused, and a network of the sandbox's own is not to be had"})
	}
	gaps = append(gaps, unconcealed(pol)...)
	for _, e := range pol.Exposures() {
		switch {
		case !e.Exists && !e.Make:
			gaps = append(gaps, contract.Gap{Rule: e.Pos, Text: fmt.Sprintf("%s does not exist: the kernel can grant only what exists when the sandbox starts%s", e.Source, wayOut(e))})
		case e.Write && abi == 1 && !e.File:
			gaps = append(gaps, contract.Gap{Rule: e.Pos, Text: fmt.Sprintf("moving files between folders of %s is refused: this kernel's Landlock (ABI 1) cannot permit it", e.Source)})
		}
	}
	return gaps
}

// wayOut says what to do about a path that is missing.
func wayOut(e policy.Exposure) string {
	if e.Write {
		return "; make it before, expose its folder, or, for a folder, end the rule with a slash: it is then made at the start"
	}
	return "; make it before, or expose its folder"
}
