package broker

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// places are where a process has one socket: the numbers of its descriptors, and the epoll instances that watch it.
type places struct {
	numbers []number
	watches []watch
}

type number struct {
	fd          int
	closeOnExec bool
}

// watch is one registration: of the descriptor fd in the epoll instance that has the number poll.
type watch struct {
	poll, fd int
	events   uint32
	data     uint64
}

// placesOf reads them from /proc. Another thread of the program can change them meanwhile, to its own loss.
func placesOf(thread uint32, socket uint64) (places, error) {
	base := "/proc/" + strconv.FormatUint(uint64(thread), 10)
	dir, err := unix.Open(base+"/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return places{}, err
	}
	defer unix.Close(dir)
	names, err := listNumbers(dir)
	if err != nil {
		return places{}, err
	}
	wanted := []byte("socket:[" + strconv.FormatUint(socket, 10) + "]")
	var p places
	var polls []int
	link := make([]byte, 64)
	for _, fd := range names {
		n, err := unix.Readlinkat(dir, strconv.Itoa(fd), link)
		if err != nil {
			continue // closed meanwhile
		}
		switch {
		case bytes.Equal(link[:n], wanted):
			p.numbers = append(p.numbers, number{fd, closesOnExec(base, fd)})
		case string(link[:n]) == "anon_inode:[eventpoll]":
			polls = append(polls, fd)
		}
	}
	for _, poll := range polls {
		p.watches = append(p.watches, watchesOf(base, poll, socket)...)
	}
	return p, nil
}

// listNumbers reads the names in /proc/PID/fd.
func listNumbers(dir int) ([]int, error) {
	buf := make([]byte, 8192)
	var out []int
	for {
		n, err := unix.Getdents(dir, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return out, nil
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if fd, err := strconv.Atoi(name); err == nil {
				out = append(out, fd)
			}
		}
	}
}

// closesOnExec reads the flag of one descriptor; where that fails, it is close-on-exec, which gives away less.
func closesOnExec(base string, fd int) bool {
	var buf [256]byte // the flags come first
	file, err := unix.Open(base+"/fdinfo/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	length, err := unix.Read(file, buf[:])
	unix.Close(file)
	if err != nil {
		return true
	}
	data := buf[:length]
	for line := range bytes.Lines(data) {
		if value, ok := bytes.CutPrefix(line, []byte("flags:")); ok {
			flags, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 8, 64)
			return err != nil || flags&unix.O_CLOEXEC != 0
		}
	}
	return true
}

// watchesOf reads which of an epoll instance's registrations are of that socket (proc_pid_fdinfo(5)).
func watchesOf(base string, poll int, socket uint64) []watch {
	data, err := os.ReadFile(base + "/fdinfo/" + strconv.Itoa(poll))
	if err != nil {
		return nil
	}
	var out []watch
	for line := range bytes.Lines(data) {
		var w watch
		var position, inode uint64
		n, _ := fmt.Sscanf(string(line), "tfd: %d events: %x data: %x pos:%d ino:%x", &w.fd, &w.events, &w.data, &position, &inode)
		if n == 5 && inode == socket {
			w.poll = poll
			out = append(out, w)
		}
	}
	return out
}

// moveWatches has the epoll instances watch another socket under the numbers that the old one has. The kernel knows a
// registration by file and number, and gives none away: they are made anew, by a thread with descriptors of its own, in
// which the two sockets can have the numbers that they have in the program.
func moveWatches(watches []watch, fetch func(fd int) (int, unix.Errno), from, to int) error {
	polls := map[int]int{}
	defer func() {
		for _, fd := range polls {
			unix.Close(fd)
		}
	}()
	for _, w := range watches {
		if _, have := polls[w.poll]; have {
			continue
		}
		fd, e := fetch(w.poll)
		if e != 0 {
			return e
		}
		polls[w.poll] = fd
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends, and its descriptors with it
		done <- moveInPrivate(watches, polls, from, to)
	}()
	return <-done
}

func moveInPrivate(watches []watch, polls map[int]int, from, to int) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	if err := unix.Unshare(unix.CLONE_FILES); err != nil {
		return err
	}
	// The runtime's first thread never ends: it is only put aside, and would keep a copy of everything that is open now.
	defer unix.CloseRange(3, math.MaxInt32, 0)
	above := 0
	for _, w := range watches {
		above = max(above, w.fd+1)
	}
	out := func(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, above) }
	if from, err = out(from); err != nil {
		return err
	}
	if to, err = out(to); err != nil {
		return err
	}
	moved := map[int]int{} // the program's number of an instance, and ours, out of the way of those of sockets
	for number, fd := range polls {
		if moved[number], err = out(fd); err != nil {
			return err
		}
	}
	for _, w := range watches {
		poll := moved[w.poll]
		if err := unix.Dup3(from, w.fd, unix.O_CLOEXEC); err != nil {
			return err
		}
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_DEL, w.fd, nil); err != nil && err != unix.ENOENT {
			return err
		}
		if err := unix.Dup3(to, w.fd, unix.O_CLOEXEC); err != nil {
			return err
		}
		event := unix.EpollEvent{Events: w.events, Fd: int32(uint32(w.data)), Pad: int32(uint32(w.data >> 32))}
		if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, w.fd, &event); err != nil {
			return err
		}
	}
	return nil
}

// replace puts a socket in the place of the program's at one of its numbers (seccomp_unotify(2)).
func replace(listener int, id uint64, socket int, at number) unix.Errno {
	flags := uint32(0)
	if at.closeOnExec {
		flags = unix.O_CLOEXEC
	}
	return seccomp.Replace(listener, id, socket, at.fd, flags)
}

// withRoom does something at a number that the process may not give to a new descriptor any more, though it has it: its
// limit was lowered since.
func withRoom(thread uint32, fd int, do func() unix.Errno) unix.Errno {
	process := processOf(thread)
	var now unix.Rlimit
	if err := unix.Prlimit(process, unix.RLIMIT_NOFILE, nil, &now); err != nil || process == 0 {
		return unix.EMFILE
	}
	if now.Cur > uint64(fd) || now.Max <= uint64(fd) {
		return unix.EMFILE
	}
	if err := unix.Prlimit(process, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(fd) + 1, Max: now.Max}, nil); err != nil {
		return unix.EMFILE
	}
	e := do()
	if err := unix.Prlimit(process, unix.RLIMIT_NOFILE, &now, nil); err != nil {
		return unix.EMFILE
	}
	return e
}

// inodeOf is the number by which /proc names a socket.
func inodeOf(fd int) (uint64, unix.Errno) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, errnoOf(err)
	}
	return st.Ino, 0
}

// networkOf is a number of the network namespace that a socket belongs to, 0 where the kernel tells none: its cookie (Linux
// 5.14), before that the number of its file. Numbers of two sockets are of one kind, and differ where the namespaces do.
func networkOf(fd int) uint64 {
	c, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err == unix.ENOPROTOOPT {
		return networkFileOf(fd)
	}
	if err != nil {
		return 0
	}
	return c
}

// networkFileOf opens the namespace's file (SIOCGSKNS), which takes capabilities in that namespace. Of a sandbox's own this
// process has them, as whose it is or by its own; that it lacks them in another's is as good as a number.
func networkFileOf(fd int) uint64 {
	const request = 0x894c // SIOCGSKNS
	file, err := unix.IoctlRetInt(fd, request)
	if err != nil {
		return 0
	}
	defer unix.Close(file)
	inode, e := inodeOf(file)
	if e != 0 {
		return 0
	}
	return inode
}

// tcpState is the state of a TCP socket (include/net/tcp_states.h).
func tcpState(fd int) uint8 {
	var info [1]byte
	length := uint32(len(info))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&length)), 0)
	if e != 0 {
		return 0
	}
	return info[0]
}

const tcpClose = 7

// socketsOf are the sockets that a process has, by their numbers in /proc.
func socketsOf(process int) map[uint64]bool {
	out := map[uint64]bool{}
	base := "/proc/" + strconv.Itoa(process) + "/fd"
	dir, err := unix.Open(base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return out
	}
	defer unix.Close(dir)
	names, err := listNumbers(dir)
	if err != nil {
		return out
	}
	link := make([]byte, 64)
	for _, fd := range names {
		n, err := unix.Readlinkat(dir, strconv.Itoa(fd), link)
		if err != nil {
			continue
		}
		if text, ok := bytes.CutPrefix(link[:n], []byte("socket:[")); ok {
			if inode, err := strconv.ParseUint(string(bytes.TrimSuffix(text, []byte("]"))), 10, 64); err == nil {
				out[inode] = true
			}
		}
	}
	return out
}
