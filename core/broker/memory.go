package broker

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

var pageSize = uint64(os.Getpagesize())

// copyIn reads len(to) bytes of a thread's memory. EFAULT: they are not all there.
func copyIn(thread uint32, address uint64, to []byte) unix.Errno {
	if len(to) == 0 {
		return 0
	}
	local := []unix.Iovec{{Base: &to[0]}}
	local[0].SetLen(len(to))
	n, err := unix.ProcessVMReadv(int(thread), local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(to)}}, 0)
	switch {
	case err != nil:
		return errnoOf(err)
	case n != len(to):
		return unix.EFAULT
	}
	return 0
}

// copyOut writes to a thread's memory, as far as it can.
func copyOut(thread uint32, address uint64, from []byte) {
	local := []unix.Iovec{{Base: &from[0]}}
	local[0].SetLen(len(from))
	_, _ = unix.ProcessVMWritev(int(thread), local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(from)}}, 0)
}

// pathAt reads a path out of a thread's memory, "" where it cannot be read.
func pathAt(thread uint32, address uint64) string {
	buf := make([]byte, unix.PathMax)
	// In steps that end at page borders: a path may lie just before unmapped memory.
	got := 0
	for got < len(buf) {
		step := min(int(pageSize-(address+uint64(got))%pageSize), len(buf)-got)
		if copyIn(thread, address+uint64(got), buf[got:got+step]) != 0 {
			return ""
		}
		got += step
		if i := bytes.IndexByte(buf[:got], 0); i >= 0 {
			return string(buf[:i])
		}
	}
	return ""
}

// errnoOf is the number of an error of the kernel, 0 of none.
func errnoOf(err error) unix.Errno {
	if err == nil {
		return 0
	}
	if e, ok := err.(unix.Errno); ok {
		return e
	}
	return unix.EIO
}
