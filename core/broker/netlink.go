package broker

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Netlink sockets: the C library asks for the machine's addresses by them. What a send on one may do goes by rights, and one
// that is made here must not go by this process's. With an address the kernel looks at the rights of who sends alone; without
// one also at those of who made the socket, which is the sandbox with none (__netlink_ns_capable in
// net/netlink/af_netlink.c). So the address is left out, whose place the kernel's takes, and besides only questions are sent.

const netlinkAddress = 12 // struct sockaddr_nl

// prepareNetlink lets messages go to the kernel only.
func prepareNetlink(r *request) unix.Errno {
	kernel := binary.NativeEndian.AppendUint16(nil, unix.AF_NETLINK)
	kernel = append(kernel, make([]byte, netlinkAddress-len(kernel))...)
	if r.name != nil && (len(r.name) < netlinkAddress || string(r.name[:netlinkAddress]) != string(kernel)) || len(r.control) > 0 {
		return unix.EPERM
	}
	return 0
}

// questionsOnly tells messages of which each asks for something that there is (rtnetlink(7): the two low bits of a type say
// whether it makes, ends, asks or changes).
func questionsOnly(data []byte) bool {
	const kinds, question, first = 3, 2, unix.RTM_NEWLINK
	for len(data) > 0 {
		if len(data) < unix.NLMSG_HDRLEN {
			return false
		}
		length := uint64(binary.NativeEndian.Uint32(data))
		kind := binary.NativeEndian.Uint16(data[4:])
		if length < unix.NLMSG_HDRLEN || length > uint64(len(data)) || kind < first || kind&kinds != question {
			return false
		}
		data = data[min((length+3)&^3, uint64(len(data))):]
	}
	return true
}
