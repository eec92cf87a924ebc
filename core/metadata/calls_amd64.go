package metadata

import "golang.org/x/sys/unix"

// machineCalls are the older forms.
var machineCalls = map[int32]call{
	unix.SYS_CHMOD:     {"chmod", byPath, mode(1)},
	unix.SYS_CHOWN:     {"chown", byPath, owner(1)},
	unix.SYS_LCHOWN:    {"chown", byLink, owner(1)},
	unix.SYS_UTIME:     {"utime", byPath, seconds(1)},
	unix.SYS_UTIMES:    {"utime", byPath, microseconds(1)},
	unix.SYS_FUTIMESAT: {"utime", byFolder.orFD(), microseconds(2)},
}
