package broker

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
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

// piece is what goes to one place in a caller's memory.
type piece struct {
	address uint64
	data    []byte
}

// copyOut writes into the caller's memory. EFAULT: not all of it could be. The number of a caller that has died meanwhile may be
// another process's: its memory is opened first, then the kernel is asked whether the caller still waits, and what is written
// goes to what was opened.
func (b *Broker) copyOut(n seccomp.Notification, pieces ...piece) unix.Errno {
	memory, err := unix.Open("/proc/"+strconv.FormatUint(uint64(n.Thread), 10)+"/mem", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(memory)
	}
	for _, p := range pieces {
		if len(p.data) == 0 {
			continue
		}
		if !b.standing(n) {
			return unix.ESRCH // nobody learns it
		}
		var done int
		if memory >= 0 {
			done, err = unix.Pwrite(memory, p.data, int64(p.address))
		} else { // without /proc, by the number that it had a moment ago
			local := []unix.Iovec{{Base: &p.data[0]}}
			local[0].SetLen(len(p.data))
			done, err = unix.ProcessVMWritev(int(n.Thread), local, []unix.RemoteIovec{{Base: uintptr(p.address), Len: len(p.data)}}, 0)
		}
		if err != nil || done != len(p.data) {
			return unix.EFAULT
		}
	}
	return 0
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
