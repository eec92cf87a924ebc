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
	// Door hands the sockets over by which the supervisor serves the child's network (Network).
	Door Kind = "door"
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
	Stage string   // Failed: what could not be set up, where a start may do without it (Stage…)
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
	for {
		if len(fds) > 0 {
			err = unix.Sendmsg(socket, data, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		} else { // a call without an address, which no filter puts to the supervisor
			err = unix.Send(socket, data, unix.MSG_NOSIGNAL)
		}
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("control: send %s: %w", m.Kind, err)
	}
	return nil
}

// maxDescriptors bounds what comes with one message.
const maxDescriptors = 16

// Receive reads one message and at most one descriptor (-1 if none came). io.EOF is the end of the other side.
func Receive(socket int) (Message, int, error) {
	m, fds, err := ReceiveAll(socket)
	switch len(fds) {
	case 0:
		return m, -1, err
	case 1:
		return m, fds[0], err
	}
	closeAll(fds)
	return Message{}, -1, fmt.Errorf("control: %d descriptors in one message", len(fds))
}

// ReceiveAll reads one message and the descriptors that came with it. io.EOF is the end of the other side.
func ReceiveAll(socket int) (Message, []int, error) {
	data, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(maxDescriptors*4))
	var n, oobn, flags int
	var err error
	for {
		n, oobn, flags, _, err = unix.Recvmsg(socket, data, oob, unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return Message{}, nil, fmt.Errorf("control: receive: %w", err)
	}
	fds, err := descriptors(oob[:oobn])
	if err != nil {
		return Message{}, nil, err
	}
	var m Message
	switch {
	case n == 0:
		err = io.EOF
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		err = errors.New("control: a message was cut")
	default:
		if err = msgpack.Unmarshal(data[:n], &m); err != nil {
			err = fmt.Errorf("control: decode: %w", err)
		}
	}
	if err != nil {
		closeAll(fds)
		return Message{}, nil, err
	}
	return m, fds, nil
}

// descriptors takes what came along.
func descriptors(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	headers, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("control: parse: %w", err)
	}
	var all []int
	for _, h := range headers {
		fds, err := unix.ParseUnixRights(&h)
		if err != nil {
			continue // not descriptors
		}
		all = append(all, fds...)
	}
	return all, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
