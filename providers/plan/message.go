package plan

import (
	"errors"
	"fmt"
	"io"

	"github.com/vmihailenco/msgpack/v5"
	"golang.org/x/sys/unix"
)

// Kind of a message.
type Kind string

const (
	// Listener hands the seccomp listener over (one descriptor).
	Listener Kind = "listener"
	// Taken answers Listener: the supervisor has it and serves it.
	Taken Kind = "taken"
	// Ready: the boundary stands and is proved, init is about to exec. The end of the stream after it means
	// that the exec succeeded.
	Ready Kind = "ready"
	// Failed: init ends, Text says why.
	Failed Kind = "failed"
)

// Message is one packet on the control socket (SOCK_SEQPACKET).
type Message struct {
	Kind  Kind
	Text  string
	Notes []string // Ready: what this kernel could not hold, and what was done instead
}

// maxMessage bounds a packet; texts are cut to fit.
const maxMessage = 32 << 10

// Send writes a message, with descriptors if any.
func Send(socket int, m Message, fds ...int) error {
	if len(m.Text) > maxMessage/2 {
		m.Text = m.Text[:maxMessage/2]
	}
	data, err := msgpack.Marshal(&m)
	if err != nil {
		return fmt.Errorf("control: encode: %w", err)
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	for {
		if err = unix.Sendmsg(socket, data, rights, nil, unix.MSG_NOSIGNAL); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("control: send %s: %w", m.Kind, err)
	}
	return nil
}

// Receive reads one message and at most one descriptor (-1 if none came). io.EOF is the end of the other side.
func Receive(socket int) (Message, int, error) {
	data, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*4))
	var n, oobn, flags int
	var err error
	for {
		n, oobn, flags, _, err = unix.Recvmsg(socket, data, oob, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return Message{}, -1, fmt.Errorf("control: receive: %w", err)
	}
	fd, err := oneDescriptor(oob[:oobn])
	if err != nil {
		return Message{}, -1, err
	}
	if n == 0 {
		closeIf(fd)
		return Message{}, -1, io.EOF
	}
	var m Message
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = errors.New("control: a message was cut")
	} else if err = msgpack.Unmarshal(data[:n], &m); err != nil {
		err = fmt.Errorf("control: decode: %w", err)
	}
	if err != nil {
		closeIf(fd)
		return Message{}, -1, err
	}
	return m, fd, nil
}

// oneDescriptor takes the descriptor that came along, and closes any that should not have.
func oneDescriptor(oob []byte) (int, error) {
	if len(oob) == 0 {
		return -1, nil
	}
	headers, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return -1, fmt.Errorf("control: parse: %w", err)
	}
	var all []int
	for _, h := range headers {
		fds, err := unix.ParseUnixRights(&h)
		if err != nil {
			continue // not descriptors
		}
		all = append(all, fds...)
	}
	switch len(all) {
	case 0:
		return -1, nil
	case 1:
		return all[0], nil
	}
	for _, fd := range all {
		unix.Close(fd)
	}
	return -1, fmt.Errorf("control: %d descriptors in one message", len(all))
}

func closeIf(fd int) {
	if fd >= 0 {
		unix.Close(fd)
	}
}
