package broker

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Where the supervisor may not take a descriptor of the sandbox's (pidfd_getfd: Docker's default profile), it makes the sockets
// itself, keeps a copy of each and knows it again by its inode. A copy keeps a connection open that the program has closed, so it
// is given up as soon as the socket is connected or listens: what may still be asked of it then has one answer.

// kept are these copies.
type kept struct {
	sockets   map[uint64]int  // by inode
	unsettled map[uint64]bool // something was done on them that may have connected them
	listening map[uint64]bool // given up, since they listen
	swept     time.Time
}

const (
	maxKept     = 512 // where this process may have four times as many descriptors
	maxListens  = 1024
	settleEvery = 20 * time.Millisecond // while a connection is being made
	sweepEvery  = time.Second
)

// mostKept leaves the application its descriptors.
var mostKept = sync.OnceValue(func() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 16
	}
	return int(min(maxKept, max(limit.Cur/4, 16)))
})

// isListening is fetch's answer for a socket that listens already: to listen again changes only how many may wait.
const isListening = unix.Errno(4096)

// socket makes one that the filter's list has passed, and puts it in.
func (b *Broker) socket(n seccomp.Notification) outcome {
	k := &b.kept
	if time.Since(k.swept) > sweepEvery || len(k.sockets) >= mostKept() {
		k.sweep(b.config.Program)
	}
	if len(k.sockets) >= mostKept() {
		b.noteOnce("kept", "the sandbox has too many sockets that are not connected; further ones fail with ENFILE")
		return failed(unix.ENFILE)
	}
	kind := int(int32(n.Args[1]))
	fd, err := unix.Socket(int(int32(n.Args[0])), kind|unix.SOCK_CLOEXEC, int(int32(n.Args[2])))
	if err != nil {
		return failed(errnoOf(err))
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return failed(unix.EACCES)
	}
	number, e := seccomp.Add(b.config.Listener, n.ID, fd, uint32(kind&unix.SOCK_CLOEXEC))
	if e != 0 {
		unix.Close(fd)
		return failed(e)
	}
	if k.sockets == nil {
		k.sockets, k.unsettled, k.listening = map[uint64]int{}, map[uint64]bool{}, map[uint64]bool{}
	}
	delete(k.listening, st.Ino)
	k.sockets[st.Ino] = fd
	return outcome{value: int64(number)}
}

// fetch gives a copy of the socket that the caller has under a number.
func (k *kept) fetch(n seccomp.Notification, fd int32) (int, unix.Errno) {
	inode, e := socketAt("/proc/"+strconv.FormatUint(uint64(n.Thread), 10), strconv.Itoa(int(fd)))
	if e != 0 {
		return -1, e
	}
	have, ok := k.sockets[inode]
	switch {
	case ok:
		k.unsettled[inode] = true
		copied, err := unix.FcntlInt(uintptr(have), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return -1, unix.ENFILE
		}
		return copied, 0
	case n.NR == unix.SYS_LISTEN && k.listening[inode]:
		return -1, isListening
	case n.NR == unix.SYS_CONNECT: // what was given up, accepted or is one of a pair
		return -1, unix.EISCONN
	case n.NR == unix.SYS_BIND, n.NR == unix.SYS_LISTEN:
		return -1, unix.EINVAL
	}
	return -1, unix.EACCES
}

// socketAt is the inode of a socket that a process has under a number.
func socketAt(proc, number string) (uint64, unix.Errno) {
	link, err := os.Readlink(proc + "/fd/" + number)
	if os.IsNotExist(err) {
		return 0, unix.EBADF
	}
	text, ok := strings.CutPrefix(link, "socket:[")
	if err != nil {
		return 0, unix.EACCES
	}
	if !ok {
		return 0, unix.ENOTSOCK
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64)
	if err != nil {
		return 0, unix.EACCES
	}
	return inode, 0
}

// settle gives up what has come to be connected or to listen.
func (k *kept) settle() {
	for inode := range k.unsettled {
		fd := k.sockets[inode]
		switch listens, connected, soon := stateOf(fd); {
		case listens:
			if len(k.listening) >= maxListens {
				clear(k.listening)
			}
			k.listening[inode] = true
			k.drop(inode)
		case connected:
			k.drop(inode)
		case !soon:
			delete(k.unsettled, inode)
		}
	}
}

// stateOf tells whether a socket listens, is connected, or is being connected.
func stateOf(fd int) (listens, connected, soon bool) {
	if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil && on != 0 {
		return true, false, false
	}
	f, e := factsOf(fd)
	if e != 0 || f.kind == unix.SOCK_DGRAM || f.family == unix.AF_NETLINK {
		return false, false, false
	}
	if f.inet() {
		const synSent, closed = 2, 7 // include/net/tcp_states.h
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return false, false, false
		}
		return false, info.State != closed && info.State != synSent, info.State == synSent
	}
	_, err := unix.Getpeername(fd)
	return false, err == nil, false
}

func (k *kept) drop(inode uint64) {
	if fd, ok := k.sockets[inode]; ok {
		unix.Close(fd)
	}
	delete(k.sockets, inode)
	delete(k.unsettled, inode)
}

// patience is how long to sleep at most, in milliseconds.
func (k *kept) patience(most int) int {
	if every := int(settleEvery / time.Millisecond); len(k.unsettled) > 0 && (most < 0 || most > every) {
		return every
	}
	return most
}

// sweep gives up what no process of the sandbox has any more, and tells whether there was any. A process that it does not
// find loses nothing but these calls.
func (k *kept) sweep(program int) bool {
	k.swept = time.Now()
	if len(k.sockets) == 0 {
		return false
	}
	used := map[uint64]bool{}
	for _, pid := range descending(program) {
		proc := "/proc/" + strconv.Itoa(pid)
		entries, err := os.ReadDir(proc + "/fd")
		if err != nil {
			return false // not to be told
		}
		for _, e := range entries {
			if inode, e := socketAt(proc, e.Name()); e == 0 {
				used[inode] = true
			}
		}
	}
	had := len(k.sockets)
	for inode := range k.sockets {
		if !used[inode] {
			k.drop(inode)
		}
	}
	return len(k.sockets) < had
}

// descending are a process and all that it has started and their children, as far as they hang together.
func descending(pid int) []int {
	out := []int{pid}
	for i := 0; i < len(out); i++ {
		tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(out[i]) + "/task")
		for _, t := range tasks {
			data, _ := os.ReadFile("/proc/" + strconv.Itoa(out[i]) + "/task/" + t.Name() + "/children")
			for _, f := range strings.Fields(string(data)) {
				if n, err := strconv.Atoi(f); err == nil {
					out = append(out, n)
				}
			}
		}
	}
	return out
}

func (k *kept) close() {
	for inode := range k.sockets {
		k.drop(inode)
	}
}
