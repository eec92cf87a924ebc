//go:build linux && (amd64 || arm64)

package metadata

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds of linux/limits.h.
const (
	maxName  = 255     // XATTR_NAME_MAX
	maxValue = 1 << 16 // XATTR_SIZE_MAX
)

// caller is the thread that waits for its call.
type caller struct{ thread int }

// memory copies the caller's. EACCES: this process may not look there at all.
func (c *caller) memory(address uint64, into []byte) unix.Errno {
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	n, err := unix.ProcessVMReadv(c.thread, local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}, 0)
	switch {
	case err == nil && n == len(into):
		return 0
	case err == nil, err == unix.EFAULT:
		return unix.EFAULT
	}
	return unix.EACCES
}

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

// text copies a string that ends with NUL, in steps that end at page borders: it may lie just before unmapped memory.
func (c *caller) text(address uint64, most int) (string, unix.Errno) {
	buf := make([]byte, 0, 256)
	page := uint64(os.Getpagesize())
	for len(buf) <= most {
		at := address + uint64(len(buf))
		step := make([]byte, min(page-at%page, 256))
		if e := c.memory(at, step); e != 0 {
			return "", e
		}
		if i := bytes.IndexByte(step, 0); i >= 0 {
			buf = append(buf, step[:i]...)
			break
		}
		buf = append(buf, step...)
	}
	if len(buf) > most {
		return "", unix.ENAMETOOLONG
	}
	return string(buf), 0
}

func (c *caller) attributeName(address uint64) (string, unix.Errno) {
	name, e := c.text(address, maxName)
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
		return c.descriptor(dir)
	}
	path, e := c.text(args[f.path], unix.PathMax-1)
	switch {
	case e != 0:
		return -1, e
	case path == "" && flags&unix.AT_EMPTY_PATH == 0:
		return -1, unix.ENOENT
	case path == "" && dir >= 0:
		return c.descriptor(dir)
	}
	if n, ok := ownDescriptor(path); ok {
		return c.descriptor(n)
	}
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if f.nofollow || flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how.Flags |= unix.O_NOFOLLOW
	}
	return c.resolve(dir, path, how)
}

// ownDescriptor reads the names that the C library and the shell have for a descriptor of one's own. Here they would be
// this process's.
func ownDescriptor(path string) (int, bool) {
	for _, folder := range []string{"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"} {
		if number, ok := strings.CutPrefix(path, folder); ok {
			n, err := strconv.ParseUint(number, 10, 31)
			return int(n), err == nil
		}
	}
	return 0, false
}

// descriptor is what a descriptor of the caller's is open on.
func (c *caller) descriptor(fd int) (int, unix.Errno) {
	return opened(unix.Open(c.proc("fd/"+strconv.Itoa(fd)), unix.O_PATH|unix.O_CLOEXEC, 0))
}

func opened(fd int, err error) (int, unix.Errno) {
	if err == nil {
		return fd, 0
	}
	if e, ok := err.(unix.Errno); ok && e != unix.ENOSYS { // no openat2: a container's older filter
		return -1, e
	}
	return -1, unix.EACCES
}

func (c *caller) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", c.thread, name) }

// resolve walks a path from the caller's folder, in its own mount namespace where it has one.
func (c *caller) resolve(dir int, path string, how *unix.OpenHow) (int, unix.Errno) {
	from := "fd/" + strconv.Itoa(dir)
	switch {
	case strings.HasPrefix(path, "/"):
		from = "root"
	case dir == unix.AT_FDCWD:
		from = "cwd"
	case dir < 0:
		return -1, unix.EBADF
	}
	same, e := c.sharesMounts()
	switch {
	case e != 0:
		return -1, e
	case same && from == "root": // nothing changes a sandbox's root: chroot is refused
		return look(unix.AT_FDCWD, path, how)
	case !same:
		// Links that lead to an absolute path have to lead there from the caller's root.
		if from != "root" {
			folder, err := os.Readlink(c.proc(from))
			if err != nil {
				return -1, unix.EBADF
			}
			path, from = folder+"/"+path, "root"
		}
		how.Resolve |= unix.RESOLVE_IN_ROOT
	}
	base, e := opened(unix.Open(c.proc(from), unix.O_PATH|unix.O_CLOEXEC, 0))
	if e == unix.ENOENT {
		e = unix.EBADF // no such descriptor
	}
	if e != 0 {
		return -1, e
	}
	defer unix.Close(base)
	return look(base, path, how)
}

// look opens a path. EAGAIN: something was renamed meanwhile, which a program can keep up for ever.
func look(base int, path string, how *unix.OpenHow) (fd int, e unix.Errno) {
	for range 100 {
		fd, e = opened(unix.Openat2(base, path, how))
		if e != unix.EAGAIN && e != unix.EINTR {
			break
		}
	}
	return fd, e
}

// ownMounts is this process's mount namespace, 0 where it cannot be told.
var ownMounts = sync.OnceValue(func() uint64 {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/mnt", &st) != nil {
		return 0
	}
	return st.Ino
})

// sharesMounts tells whether paths mean the same to the caller as they do here.
func (c *caller) sharesMounts() (bool, unix.Errno) {
	var st unix.Stat_t
	if ownMounts() == 0 || unix.Stat(c.proc("ns/mnt"), &st) != nil {
		return false, unix.EACCES
	}
	return st.Ino == ownMounts(), 0
}

// named is the canonical path of a descriptor of ours. A file without a name has one that no rule is for.
func named(fd int) string {
	path, err := os.Readlink(magic(fd))
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
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
	info, err := os.ReadFile(c.proc("fdinfo/" + strconv.Itoa(fd)))
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
