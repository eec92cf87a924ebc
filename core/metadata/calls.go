//go:build linux && (amd64 || arm64)

package metadata

import "golang.org/x/sys/unix"

// Where a call names its file. none: it has no such argument.
const none = -1

// call says where the arguments of a system call are.
type call struct {
	op   string // the policy's word, and the denial's
	file file
	read func(c *caller, args []uint64) (change, unix.Errno)
}

// file names what a call works on: fd and path are indices of arguments.
type file struct {
	fd, path int
	flags    int  // AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
	nofollow bool // the call never follows a link at the end
	null     bool // without a path it means the descriptor
}

// change is the call, ready to be made on a descriptor (O_PATH).
type change func(fd int) error

var (
	byFD     = file{fd: 0, path: none, flags: none}
	byPath   = file{fd: none, path: 0, flags: none}
	byLink   = file{fd: none, path: 0, flags: none, nofollow: true}
	byFolder = file{fd: 0, path: 1, flags: none}
)

// in is the same with the flags in an argument.
func (f file) in(flags int) file {
	f.flags = flags
	return f
}

// orFD is the same where a call without a path means the descriptor.
func (f file) orFD() file {
	f.null = true
	return f
}

// calls is the table, by number. What one architecture has besides is in its own.
var calls = map[int32]call{
	unix.SYS_FCHMOD:       {"chmod", byFD, mode(1)},
	unix.SYS_FCHMODAT:     {"chmod", byFolder, mode(2)},
	unix.SYS_FCHMODAT2:    {"chmod", byFolder.in(3), mode(2)},
	unix.SYS_FCHOWN:       {"chown", byFD, owner(1)},
	unix.SYS_FCHOWNAT:     {"chown", byFolder.in(4), owner(2)},
	unix.SYS_UTIMENSAT:    {"utime", byFolder.in(3).orFD(), nanoseconds(2)},
	unix.SYS_SETXATTR:     {"setxattr", byPath, attribute(1)},
	unix.SYS_LSETXATTR:    {"setxattr", byLink, attribute(1)},
	unix.SYS_FSETXATTR:    {"setxattr", byFD, attribute(1)},
	unix.SYS_REMOVEXATTR:  {"removexattr", byPath, noAttribute(1)},
	unix.SYS_LREMOVEXATTR: {"removexattr", byLink, noAttribute(1)},
	unix.SYS_FREMOVEXATTR: {"removexattr", byFD, noAttribute(1)},
}

func init() {
	for nr, c := range machineCalls {
		calls[nr] = c
	}
}

// Knows tells whether a call is one of these.
func Knows(nr int32) bool {
	_, ok := calls[nr]
	return ok
}
