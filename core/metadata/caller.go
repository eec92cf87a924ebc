//go:build linux && (amd64 || arm64)

package metadata

import (
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/asker"
)

// Bounds of linux/limits.h.
const (
	maxName  = 255     // XATTR_NAME_MAX
	maxValue = 1 << 16 // XATTR_SIZE_MAX
)

// caller is the thread that waits for its call.
type caller struct{ asker.Thread }

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

func (c *caller) attributeName(address uint64) (string, unix.Errno) {
	name, e := c.Text(address, maxName)
	if e == unix.ENAMETOOLONG || e == 0 && name == "" {
		return "", unix.ERANGE
	}
	return name, e
}

// open gives a descriptor (O_PATH) of the file that the arguments name, as the caller sees it.
func (c *caller) open(f file, args []uint64) (int, unix.Errno) {
	flags := 0
	if f.flags != none {
		flags = int(int32(args[f.flags]))
		if flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
			return -1, unix.EINVAL
		}
	}
	dir := unix.AT_FDCWD
	if f.fd != none {
		dir = int(int32(args[f.fd]))
	}
	if f.null && args[f.path] == 0 && dir == unix.AT_FDCWD {
		return -1, unix.EFAULT
	}
	if f.path == none || f.null && args[f.path] == 0 {
		if flags&unix.AT_EMPTY_PATH == 0 && c.flags(dir, 0)&unix.O_PATH != 0 {
			return -1, unix.EBADF // or there is no such descriptor
		}
		return c.Descriptor(dir)
	}
	path, e := c.Text(args[f.path], unix.PathMax-1)
	switch {
	case e != 0:
		return -1, e
	case path == "" && flags&unix.AT_EMPTY_PATH == 0:
		return -1, unix.ENOENT
	case path == "" && dir >= 0:
		return c.Descriptor(dir)
	}
	if n, ok := asker.OwnDescriptor(path); ok {
		return c.Descriptor(n)
	}
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if f.nofollow || flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how.Flags |= unix.O_NOFOLLOW
	}
	return c.Resolve(dir, path, how)
}

// nameless tells what no rule can name and is the program's own: a pipe, a socket without a path, and a file that has lost its
// name, or never had one, where the caller's descriptor writes it.
func (c *caller) nameless(opened, fd int) bool {
	var st unix.Stat_t
	if unix.Fstat(opened, &st) != nil {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFSOCK:
		path, err := os.Readlink(magic(opened))
		return err == nil && (strings.HasPrefix(path, "pipe:[") || strings.HasPrefix(path, "socket:["))
	case unix.S_IFREG:
		if st.Nlink != 0 {
			return false
		}
	default:
		return false
	}
	flags := c.flags(fd, st.Ino)
	return flags&unix.O_PATH == 0 && flags&unix.O_ACCMODE != unix.O_RDONLY
}

// flags are those of a descriptor of the caller's, O_PATH where they cannot be told or it is not open on that inode (0: any).
func (c *caller) flags(fd int, inode uint64) int {
	info, err := os.ReadFile(c.Proc("fdinfo/" + strconv.Itoa(fd)))
	if err != nil {
		return unix.O_PATH
	}
	number := func(name string, base int) (n uint64) {
		for line := range strings.Lines(string(info)) {
			if v, ok := strings.CutPrefix(line, name); ok {
				n, _ = strconv.ParseUint(strings.TrimSpace(v), base, 64)
			}
		}
		return n
	}
	if inode != 0 && number("ino:", 10) != inode {
		return unix.O_PATH
	}
	return int(number("flags:", 8))
}

// setTimes is utimensat with AT_EMPTY_PATH, which x/sys does not make with an absent time.
func setTimes(fd int, set *[2]unix.Timespec) error {
	empty := [1]byte{}
	if _, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), uintptr(unsafe.Pointer(&empty)), uintptr(unsafe.Pointer(set)), unix.AT_EMPTY_PATH, 0, 0); e != 0 {
		return e
	}
	return nil
}
