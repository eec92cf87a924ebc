package landlock

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// ABI asks the kernel which Landlock it has (1 or more).
func ABI() (int, error) {
	abi, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case e == unix.ENOSYS:
		return 0, fmt.Errorf("this kernel has no Landlock")
	case e == unix.EOPNOTSUPP:
		return 0, fmt.Errorf("this kernel has Landlock, but it is not switched on at boot")
	case e != 0:
		return 0, fmt.Errorf("the kernel refuses Landlock's system calls: %w", e)
	}
	return int(abi), nil
}

// kernelGaps are the things that Landlock before an ABI does not hold and seccomp cannot make up for. What it can
// make up for is in providers/seccomp/compensate.go.
var kernelGaps = []struct {
	before int
	text   string
}{
	{1 << 30, "stat, inotify and other reads of metadata outside the exposed paths are held by the Python layer only"},
	{1 << 30, "changes of mode, owner, times and attributes are refused where nothing is writable; where something is, the Python layer holds them"},
	{1 << 30, "hosts and ports of network rules are held by the Python layer only"},
	{9, "connecting to a named unix socket is held by the Python layer only (the kernel's part needs Landlock ABI 9)"},
	{6, "abstract unix sockets outside the sandbox can be reached by native code (Landlock ABI 6)"},
	{6, "signals reach the program itself only, not the processes it makes (Landlock ABI 6 would allow that)"},
	{5, "device files beneath an exposed folder can be operated by ioctl (Landlock ABI 5)"},
	{2, "moving files between folders is always refused (Landlock ABI 2 would allow it)"},
}
