package seccomp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Notification is struct seccomp_notif: a call that waits for an answer. Thread is a thread number, not a
// process number.
type Notification struct {
	ID     uint64
	Thread uint32
	Flags  uint32
	NR     int32
	Arch   uint32
	IP     uint64
	Args   [6]uint64
}

// answer is struct seccomp_notif_resp.
type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// Requests of the listener (linux/seccomp.h); x/sys has none of them.
const (
	requestReceive = 0xc0502100
	requestSend    = 0xc0182101
	requestValid   = 0x40082102
	requestFlags   = 0x40082104
	flagContinue   = 1
	flagSyncWake   = 1
)

// WakeHere has caller and supervisor wake each other on one processor (SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, Linux 6.6): only one
// of them runs at a time, and waking another processor takes longer than most answers. It fails on older kernels, which is no
// harm.
func WakeHere(listener int) error {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), requestFlags, flagSyncWake)
	if e != 0 {
		return e
	}
	return nil
}

// Receive takes the next notification. ENOENT means that the call was given up before it could be read.
// It blocks where none waits: poll the listener first.
func Receive(listener int) (Notification, error) {
	for {
		var n Notification // the kernel insists on zeroes
		if err := request(listener, requestReceive, unsafe.Pointer(&n)); err == unix.EINTR {
			continue
		} else if err != nil {
			return Notification{}, err
		}
		return n, nil
	}
}

// Valid tells whether the caller still waits, so that what was read of its memory was its own.
func Valid(listener int, id uint64) bool {
	return request(listener, requestValid, unsafe.Pointer(&id)) == nil
}

// Continue lets the kernel run the call as its caller made it. Never for a call whose arguments lie in memory that
// untrusted code can change meanwhile.
func Continue(listener int, id uint64) error {
	return send(listener, answer{id: id, flags: flagContinue})
}

// Refuse ends the call with an error number.
func Refuse(listener int, id uint64, errno unix.Errno) error {
	return send(listener, answer{id: id, errno: -int32(errno)})
}

// Answer ends the call with a value, or with an error where errno is not 0.
func Answer(listener int, id uint64, value int64, errno unix.Errno) error {
	return send(listener, answer{id: id, value: value, errno: -int32(errno)})
}

func send(listener int, a answer) error {
	for {
		if err := request(listener, requestSend, unsafe.Pointer(&a)); err != unix.EINTR {
			return err
		}
	}
}

// request uses Syscall, not RawSyscall: a call that blocks must not hold up the garbage collector.
func request(listener int, req uintptr, arg unsafe.Pointer) error {
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), req, uintptr(arg)); e != 0 {
		return e
	}
	return nil
}

// Sizes of the structures above, as the kernel must have them.
const (
	sizeNotification = 80
	sizeAnswer       = 24
)

var (
	_ [sizeNotification]byte = [unsafe.Sizeof(Notification{})]byte{}
	_ [sizeAnswer]byte       = [unsafe.Sizeof(answer{})]byte{}
)

// Probe tells whether this kernel can put calls to a supervisor. It changes nothing.
func Probe() error {
	const (
		operationActionAvail = 2
		operationSizes       = 3
	)
	action := uint32(Notify)
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, operationActionAvail, 0, uintptr(unsafe.Pointer(&action))); e != 0 {
		return fmt.Errorf("seccomp user notification is not available (kernel 5.0 or newer with CONFIG_SECCOMP_FILTER is needed): %w", e)
	}
	var sizes struct{ notification, answer, data uint16 }
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, operationSizes, 0, uintptr(unsafe.Pointer(&sizes))); e != 0 {
		return fmt.Errorf("seccomp notification sizes: %w", e)
	}
	if sizes.notification > sizeNotification || sizes.answer > sizeAnswer {
		return fmt.Errorf("seccomp notifications of this kernel are larger (%d, %d bytes) than this version knows", sizes.notification, sizes.answer)
	}
	return nil
}
