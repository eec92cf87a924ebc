//go:build linux && (amd64 || arm64)

package metadata

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// The readers copy what a call is to set out of its caller's memory, once.

func mode(arg int) func(*caller, []uint64) (change, unix.Errno) {
	return func(_ *caller, args []uint64) (change, unix.Errno) {
		m := uint32(args[arg]) & 0o7777
		return func(fd int) error {
			if lends(fd, m) {
				return unix.EPERM
			}
			return unix.Chmod(magic(fd), m)
		}, 0
	}
}

// lends tells that a mode would make a program run with the rights of its owner or its group for whoever starts it, where it does
// not already: others of the machine, outside of every sandbox. On a folder the bits mean something else.
func lends(fd int, m uint32) bool {
	const bits = unix.S_ISUID | unix.S_ISGID
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return m&bits != 0
	}
	return st.Mode&unix.S_IFMT != unix.S_IFDIR && m&bits&^st.Mode != 0
}

func owner(arg int) func(*caller, []uint64) (change, unix.Errno) {
	return func(_ *caller, args []uint64) (change, unix.Errno) {
		uid, gid := int(int32(args[arg])), int(int32(args[arg+1]))
		return func(fd int) error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) }, 0
	}
}

// times reads two moments of n bytes at an address, each made a timespec by one; 0 is now.
func times(arg, n int, one func(a, b uint64) (unix.Timespec, bool)) func(*caller, []uint64) (change, unix.Errno) {
	return func(c *caller, args []uint64) (change, unix.Errno) {
		var set *[2]unix.Timespec
		if args[arg] != 0 {
			data := make([]byte, 2*n)
			if e := c.Memory(args[arg], data); e != 0 {
				return nil, e
			}
			set = &[2]unix.Timespec{}
			for i := range set {
				var second, fraction uint64
				second = binary.NativeEndian.Uint64(data[i*n:])
				if n > 8 {
					fraction = binary.NativeEndian.Uint64(data[i*n+8:])
				}
				var ok bool
				if set[i], ok = one(second, fraction); !ok {
					return nil, unix.EINVAL
				}
			}
		}
		return func(fd int) error { return setTimes(fd, set) }, 0
	}
}

func nanoseconds(arg int) func(*caller, []uint64) (change, unix.Errno) {
	return times(arg, 16, func(s, f uint64) (unix.Timespec, bool) { // the kernel knows UTIME_NOW and UTIME_OMIT
		return unix.Timespec{Sec: int64(s), Nsec: int64(f)}, true
	})
}

func microseconds(arg int) func(*caller, []uint64) (change, unix.Errno) {
	return times(arg, 16, func(s, f uint64) (unix.Timespec, bool) {
		return unix.Timespec{Sec: int64(s), Nsec: int64(f) * 1000}, f < 1000000
	})
}

func seconds(arg int) func(*caller, []uint64) (change, unix.Errno) {
	return times(arg, 8, func(s, _ uint64) (unix.Timespec, bool) { return unix.Timespec{Sec: int64(s)}, true })
}

// attribute is (name, value, size, flags) from an argument on.
func attribute(arg int) func(*caller, []uint64) (change, unix.Errno) {
	return func(c *caller, args []uint64) (change, unix.Errno) {
		name, e := c.attributeName(args[arg])
		if e != 0 {
			return nil, e
		}
		if args[arg+2] > maxValue {
			return nil, unix.E2BIG
		}
		value := make([]byte, args[arg+2])
		if len(value) > 0 {
			if e := c.Memory(args[arg+1], value); e != 0 {
				return nil, e
			}
		}
		flags := int(int32(args[arg+3]))
		return func(fd int) error { return unix.Setxattr(magic(fd), name, value, flags) }, 0
	}
}

func noAttribute(arg int) func(*caller, []uint64) (change, unix.Errno) {
	return func(c *caller, args []uint64) (change, unix.Errno) {
		name, e := c.attributeName(args[arg])
		if e != 0 {
			return nil, e
		}
		return func(fd int) error { return unix.Removexattr(magic(fd), name) }, 0
	}
}

// magic is a path that leads to what a descriptor of this process is open on, without a look at its name.
func magic(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
