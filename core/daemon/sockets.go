package daemon

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// sealed puts data into a memfd that nobody can change, read only for its holder.
func sealed(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memory for the boot data: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteAt(data, 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("boot data: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		f.Close()
		return nil, fmt.Errorf("sealing the boot data: %w", err)
	}
	return f, nil
}

// pair makes a socket pair. Our end is left to the runtime's poller where polled, the child's end blocks.
func pair(kind int, name string, polled bool) (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%s socket: %w", name, err)
	}
	if polled {
		if err := unix.SetNonblock(fds[0], true); err != nil {
			unix.Close(fds[0])
			unix.Close(fds[1])
			return nil, nil, fmt.Errorf("%s socket: %w", name, err)
		}
	}
	return os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name+" of the child"), nil
}

// errAnnounce is an announcement that is not one byte 'A' with one descriptor.
var errAnnounce = errors.New("malformed announcement")

// receiveSocket takes one announcement from the child: a byte and the descriptor of a question socket. io.EOF is the end of
// all processes that could announce; errAnnounce is a message to ignore.
func receiveSocket(announce *os.File) (*os.File, error) {
	raw, err := announce.SyscallConn()
	if err != nil {
		return nil, err
	}
	var (
		text    [8]byte
		control [64]byte // room for more than one descriptor, so that extra ones are seen and closed
		n, oobn int
		flags   int
		recvErr error
	)
	err = raw.Read(func(fd uintptr) bool {
		for {
			n, oobn, flags, _, recvErr = unix.Recvmsg(int(fd), text[:], control[:], unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
			if recvErr != unix.EINTR {
				return recvErr != unix.EAGAIN
			}
		}
	})
	switch {
	case err != nil:
		return nil, err
	case recvErr != nil:
		return nil, recvErr
	case n == 0 && oobn == 0:
		return nil, errEnd
	}
	fds := descriptors(control[:oobn])
	if n != 1 || text[0] != 'A' || len(fds) != 1 || flags&(unix.MSG_CTRUNC|unix.MSG_TRUNC) != 0 || !isQuestionSocket(fds[0]) {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, errAnnounce
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		return nil, errAnnounce
	}
	return os.NewFile(uintptr(fds[0]), "questions"), nil
}

// errEnd says that the last holder of the other end is gone.
var errEnd = errors.New("no process is left")

func descriptors(control []byte) []int {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	var all []int
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			all = append(all, fds...)
		}
	}
	return all
}

// isQuestionSocket reports whether a descriptor from the child is a local sequenced-packet socket and not, say, a terminal
// or a file on a hung file system.
func isQuestionSocket(fd int) bool {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_UNIX {
		return false
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_SEQPACKET
}
