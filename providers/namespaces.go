package providers

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/contract"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// separate has a child made in namespaces of its own. Root that may make them takes no user namespace: in one that maps
// a single user, the files of all others would be nobody's. Others map to themselves, and keep the groups they have.
func separate(sys *syscall.SysProcAttr, b *plan.Boundary) {
	if b == nil {
		return
	}
	var caps []uintptr // for init, which drops them before anything else runs
	if b.Network != nil {
		sys.Cloneflags |= unix.CLONE_NEWNET
		caps = append(caps, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_NET_BIND_SERVICE)
	}
	if b.Mounts != nil {
		sys.Cloneflags |= unix.CLONE_NEWNS
		caps = append(caps, unix.CAP_SYS_ADMIN)
	}
	if sys.Cloneflags == 0 || mayMakeNamespaces() {
		return
	}
	sys.Cloneflags |= unix.CLONE_NEWUSER
	uid, gid := os.Geteuid(), os.Getegid()
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	sys.AmbientCaps = caps
}

// mayMakeNamespaces tells that this process has CAP_SYS_ADMIN.
func mayMakeNamespaces() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	return unix.Capget(&header, &have[0]) == nil && have[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// stageError is a failure of something that a start may do without: a network or files of the sandbox's own.
type stageError struct {
	stage string // plan.Stage…; "" where it was the making of the namespaces, whichever
	err   error
}

func (e *stageError) Error() string { return e.err.Error() }
func (e *stageError) Unwrap() error { return e.err }

// noNamespace tells whether a failed fork was the kernel's refusal to make a namespace.
func noNamespace(err error) bool {
	for _, e := range []error{unix.EPERM, unix.ENOSPC, unix.EUSERS, unix.EINVAL, unix.ENOSYS, unix.EACCES} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// NamespacesHere tries whether this process may make what separate asks for, and says what was found. Nothing is left of it.
func NamespacesHere() (bool, string) {
	for _, s := range []struct{ path, closed, why string }{
		{"/proc/sys/user/max_user_namespaces", "0", "none may be made (user.max_user_namespaces=0)"},
		{"/proc/sys/kernel/unprivileged_userns_clone", "0", "for root only (kernel.unprivileged_userns_clone=0)"},
		{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "restricted by AppArmor (kernel.apparmor_restrict_unprivileged_userns=1)"},
	} {
		if text, err := os.ReadFile(s.path); err == nil && strings.TrimSpace(string(text)) == s.closed && !mayMakeNamespaces() {
			return false, s.why
		}
	}
	// A program that is not there is started in new namespaces: what fails then is the exec, or making them. A container's
	// filter and AppArmor refuse the latter.
	sys := &syscall.SysProcAttr{}
	separate(sys, &plan.Boundary{Network: &plan.Network{}, Mounts: &plan.Mounts{}})
	pid, err := syscall.ForkExec("/nonexistent/program", nil, &syscall.ProcAttr{Sys: sys})
	switch {
	case errors.Is(err, unix.ENOENT):
		return true, "permitted"
	case err != nil:
		return false, err.Error()
	}
	_, _ = syscall.Wait4(pid, nil, 0, nil)
	return true, "permitted"
}

// Lacking says what a start of the command would do without on this machine, or why it would fail, for want of namespaces.
func Lacking(cmd Command) (gaps []Gap, problem string) {
	if cmd.Boundary == nil || cmd.Boundary.Mounts == nil {
		return nil, ""
	}
	m := cmd.Boundary.Mounts
	ok, why := NamespacesHere()
	switch {
	case ok:
		return nil, ""
	case m.Needed != "":
		return nil, withoutFiles(m, errors.New("namespaces: "+why)).Error()
	}
	for _, text := range m.Without {
		gaps = append(gaps, Gap{Text: text})
	}
	return gaps, ""
}

// withoutFiles is why a start that needs files of the sandbox's own failed.
func withoutFiles(m *plan.Mounts, why error) error {
	return fmt.Errorf("%s\n(files of the sandbox's own would hold it, but cannot be had here: %w)", m.Needed, why)
}

// startIn starts with all that the command asks for, and without what cannot be had where the command lets it be: the
// stronger of the two ways to hold network rules first, and files of the sandbox's own unless they are needed.
func startIn(cmd Command) (*Process, error) {
	how := cmd.Network
	if how == Either {
		how = Walled
	}
	var notes []string
	for {
		p, err := startHow(cmd, how)
		var missing *stageError
		switch {
		case err == nil:
			p.notes = append(notes, p.notes...)
			p.how = howOf(cmd, how)
			return p, nil
		case !errors.As(err, &missing):
			return nil, err
		case missing.stage != plan.StageMounts && cmd.Network == Either && how == Walled:
			how = Unwalled
			notes = append(notes, fmt.Sprintf("network rules are held in the host's network (unwalled), since there is no network of the sandbox's own: %v", missing))
		case missing.stage != plan.StageNetwork && cmd.Boundary != nil && cmd.Boundary.Mounts != nil:
			m := cmd.Boundary.Mounts
			if m.Needed != "" {
				return nil, withoutFiles(m, missing)
			}
			cmd.Boundary = withoutMounts(*cmd.Boundary)
			for _, text := range m.Without {
				notes = append(notes, fmt.Sprintf("%s, since there are no files of the sandbox's own: %v", text, missing))
			}
		default:
			return nil, err
		}
	}
}

// startHow needs the sandbox's own descriptors for a network of its own.
func startHow(cmd Command, how Network) (*Process, error) {
	if how == Walled && cmd.Boundary != nil && !contract.MayFetch() {
		return nil, &stageError{plan.StageNetwork, errors.New("a network of the sandbox's own: the supervisor may not take descriptors here (pidfd_getfd; a container's filter permits it with CAP_SYS_PTRACE)")}
	}
	return start(inNetwork(cmd, how))
}

func withoutMounts(b plan.Boundary) *plan.Boundary {
	b.Mounts = nil
	return &b
}

// howOf words what a start came to.
func howOf(cmd Command, how Network) string {
	words := cmd.Provider
	if cmd.Boundary == nil {
		return words + ": no kernel boundary"
	}
	switch {
	case cmd.Network == "":
		words += ": no network"
	case cmd.Network == Either && how == Walled:
		words += ": network walled, as can be had here"
	case cmd.Network == Either:
		words += ": network unwalled, for want of a network of its own"
	case cmd.Child.Network == "":
		words += fmt.Sprintf(": network %s, the default", how)
	default:
		words += fmt.Sprintf(": network %s, as was asked for", how)
	}
	if cmd.Boundary.Mounts != nil {
		words += "; files of its own, which its profile needs"
	}
	return words
}
