package contract

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// MayFetch tells whether the supervisor may take a descriptor of another process (pidfd_getfd), which Docker's default profile
// permits with CAP_SYS_PTRACE only. It tries on this process.
var MayFetch = sync.OnceValue(func() bool {
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false
	}
	defer unix.Close(self)
	fd, err := unix.PidfdGetfd(self, self, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err != unix.EPERM && err != unix.ENOSYS
})
