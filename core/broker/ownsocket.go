package broker

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// ownSocket tells that the socket behind a file was made by the sandbox and is held by one of its processes: what is inside
// may talk to itself without a rule. The kernel's list of sockets says which one is bound to the file; a name would not do,
// since a program may move a socket of the host's to where one of its own was.
func (b *Broker) ownSocket(n seccomp.Notification, file unix.Stat_t) bool {
	bound, err := b.socketsAt(file)
	for inode := range b.given {
		delete(bound, fmt.Sprintf("socket:[%d]", inode))
	}
	if err != nil || len(bound) == 0 {
		return false
	}
	top := topOf(int(n.Thread))
	for _, pid := range family(top, b.config.Program) {
		if holds(pid, bound) {
			return true
		}
	}
	return false
}

// Of linux/unix_diag.h and linux/sock_diag.h.
const (
	diagByFamily  = 20
	showName      = 0x1
	showVFS       = 0x2
	attributeName = 0
	attributeVFS  = 1
	diagRequest   = 24
	diagMessage   = 16
)

// socketsAt lists the sockets that are bound to a file, as /proc has them, with the names that they were given. The list is of one
// network namespace: that of the sandbox, to which init has opened a way where it is not ours.
func (b *Broker) socketsAt(file unix.Stat_t) (map[string]string, error) {
	if b.walled != nil {
		return socketsListed(b.walled.door.List, file)
	}
	return socketsHere(file)
}

// socketsHere lists those of this process's network.
func socketsHere(file unix.Stat_t) (map[string]string, error) {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(s)
	return socketsListed(s, file)
}

// listings numbers the requests: what an earlier one has left unread is passed over.
var listings atomic.Uint32

func socketsListed(s int, file unix.Stat_t) (map[string]string, error) {
	sequence := listings.Add(1)
	request := make([]byte, unix.NLMSG_HDRLEN+diagRequest)
	e := binary.NativeEndian
	e.PutUint32(request, uint32(len(request)))
	e.PutUint16(request[4:], diagByFamily)
	e.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	e.PutUint32(request[8:], sequence)
	body := request[unix.NLMSG_HDRLEN:]
	body[0] = unix.AF_UNIX
	e.PutUint32(body[4:], ^uint32(0)) // in every state
	e.PutUint32(body[12:], showName|showVFS)
	if err := unix.Sendto(s, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	found := map[string]string{}
	buf := make([]byte, 64<<10)
	for {
		n, _, err := unix.Recvfrom(s, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		for rest := buf[:n]; len(rest) >= unix.NLMSG_HDRLEN; {
			length := int(e.Uint32(rest))
			if length < unix.NLMSG_HDRLEN || length > len(rest) {
				return nil, unix.EBADMSG
			}
			kind := e.Uint16(rest[4:])
			if e.Uint32(rest[8:]) != sequence {
				kind = unix.NLMSG_NOOP
			}
			switch kind {
			case unix.NLMSG_DONE:
				return found, nil
			case unix.NLMSG_ERROR:
				return nil, unix.EOPNOTSUPP
			case diagByFamily:
				if inode, name, at, ok := boundFile(rest[unix.NLMSG_HDRLEN:length]); ok && at == fileOf(file) {
					found["socket:["+strconv.FormatUint(uint64(inode), 10)+"]"] = name
				}
			}
			rest = rest[min(len(rest), (length+3)&^3):]
		}
	}
}

// boundAt is a file as the list has it: the low half of its inode number, and its device.
type boundAt struct{ inode, device uint32 }

func fileOf(st unix.Stat_t) boundAt {
	// The kernel's own form of a device number: 12 bits of major, 20 of minor.
	dev := uint64(st.Dev)
	return boundAt{uint32(st.Ino), unix.Major(dev)<<20 | unix.Minor(dev)}
}

// boundFile reads one entry: the socket's inode number, its name, and the file it is bound to.
func boundFile(m []byte) (inode uint32, name string, at boundAt, ok bool) {
	if len(m) < diagMessage {
		return 0, "", at, false
	}
	e := binary.NativeEndian
	inode = e.Uint32(m[4:])
	for m = m[diagMessage:]; len(m) >= 4; {
		length := int(e.Uint16(m))
		if length < 4 || length > len(m) {
			return 0, "", at, false
		}
		switch kind := e.Uint16(m[2:]); {
		case kind == attributeName:
			name, _, _ = strings.Cut(string(m[4:length]), "\x00")
		case kind == attributeVFS && length >= 12:
			at, ok = boundAt{e.Uint32(m[4:]), e.Uint32(m[8:])}, true
		}
		m = m[min(len(m), (length+3)&^3):]
	}
	return inode, name, at, ok
}

// topOf is the process above a thread that the supervisor itself has for a child, 0 where there is none.
func topOf(thread int) int {
	self := os.Getpid()
	for pid := thread; pid > 1; {
		parent := parentOf(pid)
		if parent == self {
			return pid
		}
		pid = parent
	}
	return 0
}

func parentOf(pid int) int {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// family is the processes and all that descends from them.
func family(pids ...int) []int {
	seen := map[int]bool{0: true}
	var all []int
	for len(pids) > 0 {
		pid := pids[0]
		pids = pids[1:]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		all = append(all, pid)
		tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
		for _, t := range tasks {
			data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + t.Name() + "/children")
			for _, f := range strings.Fields(string(data)) {
				if child, err := strconv.Atoi(f); err == nil {
					pids = append(pids, child)
				}
			}
		}
	}
	return all
}

// holds tells that a process has one of the sockets open.
func holds(pid int, sockets map[string]string) bool {
	folder := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		link, err := os.Readlink(folder + "/" + entry.Name())
		if _, one := sockets[link]; err == nil && one {
			return true
		}
	}
	return false
}
