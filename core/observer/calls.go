//go:build linux && (amd64 || arm64)

package observer

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/asker"
	"github.com/pysandboxes/pysandboxes/core/learn"
)

// call is one system call that waits.
type call struct {
	thread asker.Thread
	nr     int32
	args   [6]uint64
}

// none: the call has no such argument.
const none = -1

// name is where a call names a file: indices of its arguments.
type name struct{ dir, path int }

// fileCall is a call that changes names or what they stand for.
type fileCall struct {
	op    string
	names []name
	kind  change
}

// change says what has to be there for the call to do anything, and so to need a rule.
type change int

const (
	// made: the last name must not be there yet; those before it must.
	made change = iota
	// removed: the first name is there, and it is the name that is meant, not what it leads to.
	removed
	// altered: what the name leads to.
	altered
)

var (
	path0 = []name{{none, 0}}
	at0   = []name{{0, 1}}
)

// fileCalls is the table, by number. What one architecture has besides is in its own.
var fileCalls = map[int32]fileCall{
	unix.SYS_UNLINKAT:     {"unlink", at0, removed},
	unix.SYS_RENAMEAT2:    {"rename", []name{{0, 1}, {2, 3}}, removed},
	unix.SYS_RENAMEAT:     {"rename", []name{{0, 1}, {2, 3}}, removed},
	unix.SYS_MKDIRAT:      {"mkdir", at0, made},
	unix.SYS_LINKAT:       {"link", []name{{0, 1}, {2, 3}}, made},
	unix.SYS_SYMLINKAT:    {"symlink", []name{{1, 2}}, made},
	unix.SYS_MKNODAT:      {"mknod", at0, made},
	unix.SYS_TRUNCATE:     {"truncate", path0, altered},
	unix.SYS_FCHMODAT:     {"chmod", at0, altered},
	unix.SYS_FCHMODAT2:    {"chmod", at0, altered},
	unix.SYS_FCHOWNAT:     {"chown", at0, altered},
	unix.SYS_UTIMENSAT:    {"utime", at0, altered},
	unix.SYS_SETXATTR:     {"setxattr", path0, altered},
	unix.SYS_LSETXATTR:    {"setxattr", path0, altered},
	unix.SYS_REMOVEXATTR:  {"removexattr", path0, altered},
	unix.SYS_LREMOVEXATTR: {"removexattr", path0, altered},
}

func init() {
	for nr, c := range machineFileCalls {
		fileCalls[nr] = c
	}
}

func (c *call) isExec() bool { return c.nr == unix.SYS_EXECVE || c.nr == unix.SYS_EXECVEAT }

// look makes out what the call is for. EACCES may mean that nothing of this program can be read.
func (c *call) look() ([]learn.Observation, error) {
	switch c.nr {
	case unix.SYS_OPENAT:
		return c.open(name{0, 1}, c.args[2])
	case unix.SYS_OPENAT2:
		how := make([]byte, 8) // struct open_how begins with its flags
		if e := c.thread.Memory(c.args[2], how); e != 0 {
			return nil, e
		}
		return c.open(name{0, 1}, binary.NativeEndian.Uint64(how))
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
		return c.exec()
	case unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN:
		return c.socket()
	case unix.SYS_SENDTO:
		return c.send()
	case unix.SYS_SENDMSG:
		return c.message(c.args[1])
	case unix.SYS_SENDMMSG:
		return c.messages()
	}
	if flags, ok := c.olderOpen(); ok {
		return c.open(name{none, 0}, flags)
	}
	if f, ok := fileCalls[c.nr]; ok {
		return c.change(f)
	}
	return nil, nil
}

// unreadable tells a program whose memory this process may not look at, whatever the call.
func (c *call) unreadable() bool {
	return c.thread.Memory(uint64(0), make([]byte, 1)) == unix.EACCES
}
