package seccomp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// addition is struct seccomp_notif_addfd.
type addition struct {
	id            uint64
	flags         uint32
	source        uint32
	target        uint32
	descriptorFlg uint32
}

const (
	requestAdd = 0x40182103
	addAt      = 1 // SECCOMP_ADDFD_FLAG_SETFD
	sizeAdd    = 24
)

var _ [sizeAdd]byte = [unsafe.Sizeof(addition{})]byte{}

// Replace puts a copy of fd at a number of the caller's, in the place of what is there (Linux 5.9). It gives no answer to the
// call: one request that does both returns 0 to the caller when a signal comes in between.
func Replace(listener int, id uint64, fd, number int, flags uint32) unix.Errno {
	a := addition{id: id, flags: addAt, source: uint32(fd), target: uint32(number), descriptorFlg: flags}
	for {
		err := request(listener, requestAdd, unsafe.Pointer(&a))
		switch e, _ := err.(unix.Errno); {
		case err == nil:
			return 0
		case e == unix.EINTR:
		default:
			return e
		}
	}
}

// Add puts a copy of fd at the lowest free number of the caller's and gives that number, without an answer to the call.
func Add(listener int, id uint64, fd int, flags uint32) (int, unix.Errno) {
	a := addition{id: id, source: uint32(fd), descriptorFlg: flags}
	for {
		n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), requestAdd, uintptr(unsafe.Pointer(&a)))
		if e != unix.EINTR {
			return int(n), e
		}
	}
}
