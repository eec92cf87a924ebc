package daemon

import (
	"errors"
	"fmt"
	"os"
	"time"

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

// pair makes a socket pair: our end, and the child's to hand over.
func pair(kind int, name string) (ours int, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, nil, fmt.Errorf("%s socket: %w", name, err)
	}
	return fds[0], os.NewFile(uintptr(fds[1]), name+" of the child"), nil
}

// errAnnounce is an announcement that is not one byte 'A' with one descriptor.
var errAnnounce = errors.New("malformed announcement")

// socket is a descriptor that one goroutine reads by plain blocking calls. A question is answered while the program waits
// for it: by way of the runtime's poller the answer would take twice as long.
type socket struct{ fd int }

// Close may only be called by the goroutine that reads.
func (s *socket) Close() { unix.Close(s.fd) }

// maker is the process that made the other end, as the kernel knows it; 0 where it does not say.
func (s *socket) maker() int {
	who, err := unix.GetsockoptUcred(s.fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0
	}
	return int(who.Pid)
}

// receive takes one message; 0 is the end.
func (s *socket) receive(buf []byte) (int, error) {
	for {
		n, _, err := unix.Recvfrom(s.fd, buf, 0)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func (s *socket) send(data []byte) error {
	for {
		_, err := unix.SendmsgN(s.fd, data, nil, nil, unix.MSG_NOSIGNAL)
		if err != unix.EINTR {
			return err
		}
	}
}

// receiveSocket takes one announcement from the child: a byte and the descriptor of a question socket. errEnd is the end of
// all processes that could announce; errAnnounce is a message to ignore.
func (s *socket) receiveSocket() (*socket, error) {
	var (
		text    [8]byte
		control [64]byte // room for more than one descriptor, so that extra ones are seen and closed
	)
	n, oobn, flags, _, err := unix.Recvmsg(s.fd, text[:], control[:], unix.MSG_CMSG_CLOEXEC)
	for err == unix.EINTR {
		n, oobn, flags, _, err = unix.Recvmsg(s.fd, text[:], control[:], unix.MSG_CMSG_CLOEXEC)
	}
	switch {
	case err != nil:
		return nil, err
	case n == 0 && oobn == 0:
		return nil, errEnd
	}
	fds := descriptors(control[:oobn])
	if n != 1 || text[0] != 'A' || len(fds) != 1 || flags&(unix.MSG_CTRUNC|unix.MSG_TRUNC) != 0 || !isQuestionSocket(fds[0]) ||
		unix.SetNonblock(fds[0], false) != nil {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, errAnnounce
	}
	// A child that asks and asks and reads no answer is left after this, so that no end waits for it.
	tv := unix.NsecToTimeval(sendTime.Nanoseconds())
	_ = unix.SetsockoptTimeval(fds[0], unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
	return &socket{fds[0]}, nil
}

// sendTime bounds one answer; it goes out at once unless a dozen lie unread.
const sendTime = 2 * time.Second

// end lets no more messages in: a reader that waits wakes, takes what is there, and then finds the end.
func (s *socket) end() { _ = unix.Shutdown(s.fd, unix.SHUT_RDWR) }

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
