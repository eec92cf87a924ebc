// Package machine says what this machine's kernel offers to a sandbox, for people: which features are there, which are
// not, and what that means. It asks the kernel and /proc, changes nothing and decides nothing: providers probe for
// themselves what they build on.
package machine

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers"
	cgroups "github.com/pysandboxes/pysandboxes/providers/cgroup"
)

// Feature is one thing that a kernel may offer.
type Feature struct {
	Name    string
	There   bool
	Value   string // what was found
	Meaning string // what it is for, or what its absence means
}

// probes is the table: a row a feature.
var probes = []struct {
	name, meaning string
	probe         func() (bool, string)
}{
	{"landlock", "files by path, without a privilege (landlock provider)", landlock},
	{"seccomp filters", "which system calls a sandbox may make", seccompAction(unix.SECCOMP_RET_KILL_PROCESS, "filters")},
	{"seccomp notifications", "starting programs is decided by the supervisor", seccompAction(unix.SECCOMP_RET_USER_NOTIF, "user_notif")},
	{"namespaces", "a network and files of the sandbox's own", providers.NamespacesHere},
	{"pidfd_getfd", "the supervisor acts on a sandbox's own sockets; containers often refuse it", pidfdGetfd},
	{"cgroup v2", "limit-memory and limit-processes hold the whole sandbox", cgroup},
	{"kvm", "a fast microVM (qemu provider)", device("/dev/kvm")},
	{"tun", "a network of a namespace's own", device("/dev/net/tun")},
}

// Features probes the machine.
func Features() []Feature {
	var out []Feature
	for _, p := range probes {
		there, value := p.probe()
		out = append(out, Feature{p.name, there, value, p.meaning})
	}
	return out
}

// Kernel is its name and release.
func Kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
}

// landlock_create_ruleset(2) with LANDLOCK_CREATE_RULESET_VERSION makes nothing and tells the ABI.
func landlock() (bool, string) {
	abi, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case e == 0:
		return true, "ABI " + strconv.Itoa(int(abi))
	case errors.Is(e, unix.EOPNOTSUPP):
		return false, "not switched on at boot"
	}
	return false, e.Error()
}

// seccompAction asks by SECCOMP_GET_ACTION_AVAIL (seccomp(2)), which installs nothing.
func seccompAction(action uint32, found string) func() (bool, string) {
	return func() (bool, string) {
		a := action
		if err := seccompAvailable(&a); err != nil {
			return false, err.Error()
		}
		return true, found
	}
}

// pidfdGetfd copies one of this process's own descriptors.
func pidfdGetfd() (bool, string) {
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false, err.Error()
	}
	defer unix.Close(self)
	copied, err := unix.PidfdGetfd(self, self, 0)
	if err != nil {
		return false, err.Error()
	}
	unix.Close(copied)
	return true, "permitted"
}

func cgroup() (bool, string) {
	place, err := cgroups.Probe()
	if err != nil {
		return false, err.Error() + ". " + cgroups.How
	}
	return true, "beneath " + place
}

func device(path string) func() (bool, string) {
	return func() (bool, string) {
		if err := unix.Access(path, unix.R_OK|unix.W_OK); err != nil {
			return false, path + ": " + err.Error()
		}
		return true, path
	}
}

// text is the first line of a small file, "" where it cannot be read.
func text(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}
