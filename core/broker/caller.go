package broker

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/asker"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// maxThreads bounds the cache of threads. A sandbox with more that connect pays for opening them anew.
const maxThreads = 64

// threads are descriptors of threads that called lately: opening one costs more than all else that an answer does.
type threads map[uint32]int

// of gives the descriptor of a thread that has a call pending. A number in the cache may be of a thread that has ended and
// given its number away: fetching from that one fails, so that only the caller's is ever used.
func (t threads) of(thread uint32) (fd int, cached bool, err error) {
	if fd, known := t[thread]; known {
		return fd, true, nil
	}
	fd, err = asker.Thread(thread).Open()
	if err != nil {
		return -1, false, err
	}
	if len(t) >= maxThreads {
		t.close()
	}
	t[thread] = fd
	return fd, false, nil
}

func (t threads) drop(thread uint32) {
	if fd, known := t[thread]; known {
		unix.Close(fd)
		delete(t, thread)
	}
}

func (t threads) close() {
	for thread, fd := range t {
		unix.Close(fd)
		delete(t, thread)
	}
}

// fetch gives a copy of the caller's descriptor, close-on-exec.
func (b *Broker) fetch(n seccomp.Notification, fd int32) (int, unix.Errno) {
	if b.config.Keep {
		return b.kept.fetch(n, fd)
	}
	for {
		pidfd, cached, err := b.threads.of(n.Thread)
		if err == nil {
			var copied int
			if copied, err = unix.PidfdGetfd(pidfd, int(fd), 0); err == nil {
				return copied, 0
			}
			if err == unix.ESRCH && cached { // the cached one is of a thread that had the number before
				b.threads.drop(n.Thread)
				continue
			}
		}
		switch err {
		case unix.EBADF:
			return -1, unix.EBADF
		case unix.EMFILE, unix.ENFILE:
			if len(b.threads) > 0 { // what can be spared
				b.threads.close()
				continue
			}
			b.noteOnce("descriptors", "the supervisor has no descriptor left, so that network calls of the sandbox fail with ENFILE")
			return -1, unix.ENFILE
		case unix.EPERM:
			b.noteOnce("fetch", "the kernel does not let the supervisor take descriptors of the sandbox (pidfd_getfd), so that its network calls are refused: "+
				"a container's filter may be in the way, or a program in the sandbox may not be read")
			return -1, unix.EACCES
		}
		return -1, unix.EACCES
	}
}

// standing tells that the caller still waits, so that what was copied was its own.
func (b *Broker) standing(n seccomp.Notification) bool { return seccomp.Valid(b.config.Listener, n.ID) }

// processOf gives the process that a thread belongs to, 0 where that cannot be read.
func processOf(thread uint32) int { return asker.Thread(thread).Process() }

// status is what /proc says of a thread.
type status struct {
	process  int
	threads  int
	umask    int
	pending  uint64 // signals that this thread has to take and does not block
	own      bool   // one of them is for this thread and no other
	readable bool
}

func statusOf(thread uint32) (s status) {
	s.umask = -1
	data, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(thread), 10) + "/status")
	if err != nil {
		return s
	}
	s.readable = true
	var own, shared, blocked uint64
	for line := range bytes.Lines(data) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		text := string(bytes.TrimSpace(value))
		switch string(name) {
		case "Tgid":
			s.process, _ = strconv.Atoi(text)
		case "Threads":
			s.threads, _ = strconv.Atoi(text)
		case "Umask":
			if mask, err := strconv.ParseUint(text, 8, 16); err == nil {
				s.umask = int(mask)
			}
		case "SigPnd":
			own, _ = strconv.ParseUint(text, 16, 64)
		case "ShdPnd":
			shared, _ = strconv.ParseUint(text, 16, 64)
		case "SigBlk":
			blocked, _ = strconv.ParseUint(text, 16, 64)
		}
	}
	s.pending = (own | shared) &^ blocked
	s.own = own&^blocked != 0
	return s
}
