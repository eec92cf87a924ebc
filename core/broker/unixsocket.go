package broker

import (
	"bytes"
	"encoding/binary"
	"os"
	"path"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// connectUnix connects to a socket by its path. The path is opened once, what it led to is judged by the path that this has,
// and the connection goes to this very thing: no link and no renaming in between leads elsewhere.
//
// The server sees the supervisor's process number as its peer's (SO_PEERCRED); the user is the same.
func (b *Broker) connectUnix(n seccomp.Notification, fd int, f socketFacts, raw []byte) outcome {
	if len(raw) >= familyLength && binary.NativeEndian.Uint16(raw) == unix.AF_UNSPEC && f.kind == unix.SOCK_DGRAM {
		return failed(connectTo(fd, unspecified()))
	}
	place, to, e := b.reachUnix(n, "connect", raw)
	if e != 0 {
		return failed(e)
	}
	flags, e := flagsOf(fd)
	if e != 0 {
		unix.Close(place)
		return failed(e)
	}
	try := func() unix.Errno { return withoutWaiting(fd, flags, func() unix.Errno { return connectTo(fd, to) }) }
	if e := try(); e != unix.EAGAIN || flags&unix.O_NONBLOCK != 0 {
		unix.Close(place)
		return failed(e)
	}
	// The server has too many who wait, and nothing tells when that is over.
	p := &pending{n: n, fd: fd, gone: func() { unix.Close(place) }, deadline: sendDeadline(fd)}
	p.again = func() outcome {
		if e := try(); e != unix.EAGAIN {
			return failed(e)
		}
		return elsewhere
	}
	p.interrupted = func() outcome { return failed(restart) }
	p.timeout = func() outcome { return failed(unix.EAGAIN) }
	return b.wait(p, 0)
}

// reachUnix opens the socket that an address names and asks whether it may be reached. It gives a descriptor that holds it,
// and an address that means it as long as the descriptor is open.
func (b *Broker) reachUnix(n seccomp.Notification, op string, raw []byte) (place int, to []byte, e unix.Errno) {
	name, e := unixName(raw)
	if e != 0 {
		return -1, nil, e
	}
	if name[0] == 0 {
		q := unixQuestion(op, "@"+string(name[1:])) // no rule can grant one
		b.refused(n, q, b.decide(q))
		return -1, nil, unix.ECONNREFUSED
	}
	place, where, e := openIn(n.Thread, name, 0)
	if e != 0 {
		return -1, nil, e
	}
	refuse := func(e unix.Errno) (int, []byte, unix.Errno) {
		unix.Close(place)
		return -1, nil, e
	}
	if !b.standing(n) {
		return refuse(unix.ESRCH)
	}
	var st unix.Stat_t
	if err := unix.Fstat(place, &st); err != nil {
		return refuse(errnoOf(err))
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return refuse(unix.ECONNREFUSED) // the kernel's own answer
	}
	q := unixQuestion(op, where)
	d := b.decide(q)
	if d.Allow && b.mayMove(where) {
		q, d = b.decideByName(op, where, st, d)
	}
	if !d.Allow && !b.ownSocket(n, st) {
		if !quietSockets[q.Host] {
			b.refused(n, q, d)
		}
		return refuse(unix.ECONNREFUSED)
	}
	return place, unixAddress(placePath(place)), 0
}

// quietSockets are what the C library tries by itself at each look-up of a name or a user, and does without: a refusal
// is nothing to tell of.
var quietSockets = map[string]bool{
	"/run/nscd/socket":                           true,
	"/var/run/nscd/socket":                       true,
	"/run/systemd/resolve/io.systemd.Resolve":    true,
	"/run/systemd/userdb/io.systemd.DynamicUser": true,
}

// unixName is the name in an address of the unix family, without what follows the NUL of a path. The first byte of an
// abstract one is NUL.
func unixName(raw []byte) ([]byte, unix.Errno) {
	const longest = 108 + familyLength
	if len(raw) <= familyLength || len(raw) > longest || binary.NativeEndian.Uint16(raw) != unix.AF_UNIX {
		return nil, unix.EINVAL
	}
	name := raw[familyLength:]
	if name[0] == 0 {
		return name, 0
	}
	if i := bytes.IndexByte(name, 0); i >= 0 {
		name = name[:i]
	}
	return name, 0
}

// nameOf is the name that a unix socket has, as the kernel has it: its first byte is NUL where it is no path. Empty: none.
func nameOf(fd int) []byte {
	var raw unix.RawSockaddrAny
	length := uint32(unsafe.Sizeof(raw))
	_, _, e := unix.Syscall(unix.SYS_GETSOCKNAME, uintptr(fd), uintptr(unsafe.Pointer(&raw)), uintptr(unsafe.Pointer(&length)))
	if e != 0 || length <= familyLength || length > uint32(unsafe.Sizeof(raw)) {
		return nil
	}
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&raw)), length)[familyLength:]...)
}

func unixAddress(name string) []byte {
	return append(append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), name...), 0)
}

// openIn opens a path as a thread sees it, for a look only, and gives the canonical path of what it found.
func openIn(thread uint32, name []byte, flags uint64) (fd int, where string, e unix.Errno) {
	proc := "/proc/" + strconv.FormatUint(uint64(thread), 10)
	full := string(name)
	if full[0] != '/' {
		cwd, err := os.Readlink(proc + "/cwd")
		if err != nil {
			return -1, "", unix.EACCES
		}
		full = cwd + "/" + full
	}
	root, err := unix.Open(proc+"/root", unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, "", unix.EACCES
	}
	defer unix.Close(root)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | flags, Resolve: unix.RESOLVE_IN_ROOT}
	for range 100 { // EAGAIN: something was renamed meanwhile, which a program can keep up for ever
		fd, err = unix.Openat2(root, full, &how)
		if err != unix.EINTR && err != unix.EAGAIN {
			break
		}
	}
	if err != nil {
		return -1, "", errnoOf(err)
	}
	where, err = os.Readlink(placePath(fd))
	if err != nil || !strings.HasPrefix(where, "/") || path.Clean(where) != where {
		unix.Close(fd)
		return -1, "", unix.EACCES
	}
	return fd, where, 0
}

// socketType leaves of a socket's type what is not SOCK_NONBLOCK and SOCK_CLOEXEC.
const socketType = 0xf

// noDatagrams refuses a local datagram socket, or a pair of them. The filter puts the call to the supervisor where none may exist, and
// so that somebody says why.
func (b *Broker) noDatagrams(n seccomp.Notification) outcome {
	q := policy.NetQuestion{Op: "socket", Proto: "unix"}
	d := b.decide(q)
	if b.config.Keep {
		d.Add, d.Note = nil, "The supervisor may not take descriptors here, so that datagram sockets cannot be had."
	}
	b.refused(n, q, d)
	return failed(unix.EACCES)
}
