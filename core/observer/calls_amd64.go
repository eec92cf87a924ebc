package observer

import "golang.org/x/sys/unix"

// machineFileCalls are the older forms.
var machineFileCalls = map[int32]fileCall{
	unix.SYS_UNLINK:    {"unlink", path0, removed},
	unix.SYS_RMDIR:     {"rmdir", path0, removed},
	unix.SYS_RENAME:    {"rename", []name{{none, 0}, {none, 1}}, removed},
	unix.SYS_MKDIR:     {"mkdir", path0, made},
	unix.SYS_LINK:      {"link", []name{{none, 0}, {none, 1}}, made},
	unix.SYS_SYMLINK:   {"symlink", []name{{none, 1}}, made},
	unix.SYS_MKNOD:     {"mknod", path0, made},
	unix.SYS_CHMOD:     {"chmod", path0, altered},
	unix.SYS_CHOWN:     {"chown", path0, altered},
	unix.SYS_LCHOWN:    {"chown", path0, altered},
	unix.SYS_UTIME:     {"utime", path0, altered},
	unix.SYS_UTIMES:    {"utime", path0, altered},
	unix.SYS_FUTIMESAT: {"utime", at0, altered},
}

// olderOpen gives the flags of an open in its older forms.
func (c *call) olderOpen() (flags uint64, ok bool) {
	switch c.nr {
	case unix.SYS_OPEN:
		return c.args[1], true
	case unix.SYS_CREAT:
		return unix.O_CREAT | unix.O_WRONLY | unix.O_TRUNC, true
	}
	return 0, false
}
