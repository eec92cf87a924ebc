//go:build linux && (amd64 || arm64)

package asker

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Thread is a thread that waits for its call, by its number.
type Thread int

// Memory copies the caller's. EACCES: this process may not look there at all.
func (t Thread) Memory(address uint64, into []byte) unix.Errno {
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	n, err := unix.ProcessVMReadv(int(t), local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}, 0)
	switch {
	case err == nil && n == len(into):
		return 0
	case err == nil, err == unix.EFAULT:
		return unix.EFAULT
	}
	return unix.EACCES
}

// Text copies a string that ends with NUL, in steps that end at page borders: it may lie just before unmapped memory.
func (t Thread) Text(address uint64, most int) (string, unix.Errno) {
	buf := make([]byte, 0, 256)
	page := uint64(os.Getpagesize())
	for len(buf) <= most {
		at := address + uint64(len(buf))
		step := make([]byte, min(page-at%page, 256))
		if e := t.Memory(at, step); e != 0 {
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

// OwnDescriptor reads the names that the C library and the shell have for a descriptor of one's own. Here they would be
// this process's.
func OwnDescriptor(path string) (int, bool) {
	for _, folder := range []string{"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"} {
		if number, ok := strings.CutPrefix(path, folder); ok {
			n, err := strconv.ParseUint(number, 10, 31)
			return int(n), err == nil
		}
	}
	return 0, false
}

// Descriptor is what a descriptor of the caller's is open on.
func (t Thread) Descriptor(fd int) (int, unix.Errno) {
	return opened(unix.Open(t.Proc("fd/"+strconv.Itoa(fd)), unix.O_PATH|unix.O_CLOEXEC, 0))
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

// Proc is a path of what /proc tells of it.
func (t Thread) Proc(name string) string { return fmt.Sprintf("/proc/%d/%s", int(t), name) }

// Resolve walks a path from the caller's folder, in its own mount namespace where it has one.
func (t Thread) Resolve(dir int, path string, how *unix.OpenHow) (int, unix.Errno) {
	from := "fd/" + strconv.Itoa(dir)
	switch {
	case strings.HasPrefix(path, "/"):
		from = "root"
	case dir == unix.AT_FDCWD:
		from = "cwd"
	case dir < 0:
		return -1, unix.EBADF
	}
	same, e := t.sharesMounts()
	switch {
	case e != 0:
		return -1, e
	case same && from == "root": // nothing changes a sandbox's root: chroot is refused
		return look(unix.AT_FDCWD, path, how)
	case !same:
		// Links that lead to an absolute path have to lead there from the caller's root.
		if from != "root" {
			folder, err := os.Readlink(t.Proc(from))
			if err != nil {
				return -1, unix.EBADF
			}
			path, from = folder+"/"+path, "root"
		}
		how.Resolve |= unix.RESOLVE_IN_ROOT
	}
	base, e := opened(unix.Open(t.Proc(from), unix.O_PATH|unix.O_CLOEXEC, 0))
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
func (t Thread) sharesMounts() (bool, unix.Errno) {
	var st unix.Stat_t
	if ownMounts() == 0 || unix.Stat(t.Proc("ns/mnt"), &st) != nil {
		return false, unix.EACCES
	}
	return st.Ino == ownMounts(), 0
}

// Named is the canonical path of a descriptor of ours. A file without a name has one that no rule is for.
func Named(fd int) string {
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// pidfdThread is PIDFD_THREAD (linux/pidfd.h, Linux 6.9): without it only a process's first thread has a descriptor.
const pidfdThread = unix.O_EXCL

// Open gives a descriptor of the thread, to take its descriptors by.
func (t Thread) Open() (int, error) {
	fd, err := unix.PidfdOpen(int(t), pidfdThread)
	if err == unix.EINVAL || err == unix.ENOENT {
		// An older kernel. The process of a thread has the same descriptors, unless the program took pains that it has
		// not; then it is the process's that is judged and acted on.
		fd, err = unix.PidfdOpen(t.Process(), 0)
	}
	return fd, err
}

// Process gives the process that the thread belongs to, 0 where that cannot be read.
func (t Thread) Process() int {
	data, err := os.ReadFile(t.Proc("status"))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if number, ok := bytes.CutPrefix(line, []byte("Tgid:")); ok {
			n, _ := strconv.Atoi(string(bytes.TrimSpace(number)))
			return n
		}
	}
	return 0
}

// Copy gives a copy of one of its descriptors, close-on-exec.
func (t Thread) Copy(fd int) (int, error) {
	pidfd, err := t.Open()
	if err != nil {
		return -1, err
	}
	defer unix.Close(pidfd)
	return unix.PidfdGetfd(pidfd, fd, 0)
}
