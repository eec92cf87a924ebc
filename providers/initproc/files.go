//go:build linux && (amd64 || arm64)

package initproc

import (
	"errors"
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// rights is every file right that a Landlock ABI can hold: all of them are handled, so that what no rule grants is
// refused.
func rights(abi int) landlock.AccessFSSet {
	switch {
	case abi >= 9:
		return 1<<17 - 1
	case abi >= 5:
		return 1<<16 - 1
	case abi >= 3:
		return 1<<15 - 1
	case abi == 2:
		return 1<<14 - 1
	}
	return 1<<13 - 1
}

// What each kind of access is, for a folder and what is beneath it.
const (
	readRights  = ll.AccessFSReadFile | ll.AccessFSReadDir
	writeRights = ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSRefer |
		ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg |
		ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym
	// A rule on a file can have no more than these.
	fileRights = ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSReadFile | ll.AccessFSTruncate |
		ll.AccessFSIoctlDev | ll.AccessFSResolveUnix
)

// restrictFiles puts Landlock on this thread and returns the kernel's ABI. The library's own enforcement is for all
// threads of a process; here only the one that execs counts.
func restrictFiles(b *plan.Boundary) (int, error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil || abi < 1 {
		return 0, fmt.Errorf("this kernel has no Landlock, or does not permit it here: %w", err)
	}
	switch {
	case b.ABI > abi:
		return 0, fmt.Errorf("the plan is for Landlock ABI %d, this kernel has %d: another security module or a container's filter stands between", b.ABI, abi)
	case b.ABI > 0:
		abi = b.ABI
	}
	config := landlock.Config{HandledAccessFS: rights(abi)}
	if abi >= 6 {
		config.Scoped = ll.ScopeSignal | ll.ScopeAbstractUnixSocket
	}
	rules := make([]landlock.Rule, 0, len(b.Rules))
	for _, r := range b.Rules {
		rule, err := ruleFor(r, config.HandledAccessFS)
		if err != nil {
			return 0, err
		}
		if rule != nil {
			rules = append(rules, rule)
		}
	}
	fd, flags, err := config.NewRulesetFD(rules...)
	if err != nil {
		return 0, fmt.Errorf("landlock: %w", err)
	}
	if fd < 0 {
		return 0, errors.New("landlock: the library made no ruleset")
	}
	defer unix.Close(fd)
	if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), uintptr(flags), 0); e != 0 {
		return 0, fmt.Errorf("landlock: restrict: %w", e)
	}
	return abi, nil
}

// ConfineThread puts the boundary's rules of files on the calling thread, which its caller has locked: what the supervisor
// does there by a path for a sandbox, the kernel judges as it judges the sandbox.
func ConfineThread(b *plan.Boundary) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	_, err := restrictFiles(b)
	return err
}

// ruleFor translates one rule by what lies at its path; nil skips an optional one that is missing.
func ruleFor(r plan.Rule, handled landlock.AccessFSSet) (landlock.Rule, error) {
	var st unix.Stat_t
	if err := unix.Stat(r.Path, &st); err != nil {
		if r.Optional {
			return nil, nil
		}
		return nil, fmt.Errorf("expose %s: %w", r.Path, err)
	}
	var access landlock.AccessFSSet
	if r.Access&plan.Read != 0 {
		access |= readRights
	}
	if r.Access&plan.Write != 0 {
		access |= writeRights
	}
	if r.Access&plan.Execute != 0 {
		access |= ll.AccessFSExecute
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		// Devices and sockets beneath a folder are reached by a rule of their own only. Pseudo-terminals come and go, so
		// that only their folder can be named; it holds nothing else, and typing into one is refused by seccomp.
		if r.Access&plan.Device != 0 && holdsTerminals(r.Path) {
			access |= ll.AccessFSIoctlDev
		}
	case unix.S_IFSOCK:
		access &= fileRights
		if r.Access&plan.Write != 0 {
			access |= ll.AccessFSResolveUnix
		}
	case unix.S_IFCHR, unix.S_IFBLK:
		access &= fileRights
		if r.Access&plan.Device != 0 {
			access |= ll.AccessFSIoctlDev
		}
	default:
		access &= fileRights
	}
	access &= handled
	if access == 0 {
		return nil, nil
	}
	rule := landlock.PathAccess(access, r.Path)
	if r.Optional {
		rule = rule.IgnoreIfMissing()
	}
	return rule, nil
}

// holdsTerminals tells the folder of the pseudo-terminals by its file system.
func holdsTerminals(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.DEVPTS_SUPER_MAGIC
}

// degraded says what init alone found to be less than the plan, for the start's log. What this kernel's Landlock lacks
// the provider has said.
func degraded(b *plan.Boundary) []string {
	if b.Outside == "" {
		return []string{"the profile exposes every file: there is no file boundary to prove"}
	}
	return nil
}
