package landlock

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/metadata"
)

// newestABI bounds what is made of the kernel's Landlock, so that tests can be an older kernel: they build a program
// with it set (-ldflags -X). Nothing that runs can change it.
var newestABI string

// ABI asks the kernel which Landlock it has (1 or more).
func ABI() (int, error) {
	abi, err := kernelABI()
	if n, e := strconv.Atoi(newestABI); err == nil && e == nil {
		abi = min(abi, n)
	}
	return abi, err
}

func kernelABI() (int, error) {
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

// always so, whatever the kernel.
const anyABI = 1 << 30

// kernelGaps are the things that Landlock before an ABI does not hold. What seccomp makes up for instead
// (providers/seccomp/compensate.go) is here too where a program can notice it.
var kernelGaps = []struct {
	before int
	text   string
}{
	{anyABI, "stat, inotify and other reads of metadata outside the exposed paths are held by the Python layer only"},
	{6, "signals reach the program itself only, not the processes that it makes (Landlock ABI 6 permits those)"},
	{5, "of ioctl the everyday requests pass, and all where a device is exposed for writing (Landlock ABI 5 tells devices apart)"},
	{3, "files are not emptied by their path (truncate), nor while opened for reading (Landlock ABI 3 judges that)"},
	{2, "moving files between folders is always refused (Landlock ABI 2 permits it)"},
}

// degraded is what an older kernel takes away from a newer one's boundary, said at each start.
func degraded(abi int) []string {
	var out []string
	for _, g := range kernelGaps {
		if abi < g.before && g.before < stated {
			out = append(out, fmt.Sprintf("Landlock ABI %d: %s", abi, g.text))
		}
	}
	return out
}

// stated is the first ABI whose lack only the doctor tells: no distribution has it yet.
const stated = 9

// missing is what this machine, or the container around us, keeps from the supervisor, and what does not work for that. Each is
// refused then, or does less: nothing is let through.
func missing() []string {
	var out []string
	if err := metadata.Probe(); err != nil {
		out = append(out, err.Error()+": changes of mode, owner, times and attributes are refused")
	}
	if _, err := os.Stat("/proc/self/task"); err != nil {
		out = append(out, "there is no /proc here: processes that a program leaves behind are not found")
	}
	return out
}
