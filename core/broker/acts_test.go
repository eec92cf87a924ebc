//go:build linux && (amd64 || arm64)

package broker_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// acts are what the filtered thread does, by name.
var acts = map[string]func(args []string){
	"connect":     actConnect,
	"flip":        actFlip,
	"families":    actFamilies,
	"serve":       actServe,
	"datagrams":   actDatagrams,
	"messages":    actMessages,
	"pass":        actPass,
	"wait":        actWait,
	"interrupted": actInterrupted,
	"unix":        actUnix,
	"pipe":        actPipe,
	"many":        actMany,
}

func number(s string) int { n, _ := strconv.Atoi(s); return n }

func said(what string, e error) {
	if e == nil {
		fmt.Println(what, "ok")
		return
	}
	var errno unix.Errno
	if errors.As(e, &errno) && unix.ErrnoName(errno) != "" {
		fmt.Println(what, unix.ErrnoName(errno))
		return
	}
	fmt.Println(what, e)
}

func in4(port int) []byte {
	raw := make([]byte, 16)
	binary.NativeEndian.PutUint16(raw, unix.AF_INET)
	binary.BigEndian.PutUint16(raw[2:], uint16(port))
	copy(raw[4:], []byte{127, 0, 0, 1})
	return raw
}

func call(nr uintptr, a ...uintptr) error {
	var x [6]uintptr
	copy(x[:], a)
	if _, _, e := unix.Syscall6(nr, x[0], x[1], x[2], x[3], x[4], x[5]); e != 0 {
		return e
	}
	return nil
}

func at(raw []byte) uintptr { return uintptr(unsafe.Pointer(&raw[0])) }

func connect(fd int, raw []byte) error {
	return call(unix.SYS_CONNECT, uintptr(fd), at(raw), uintptr(len(raw)))
}

func socket(kind int) int {
	fd, err := unix.Socket(unix.AF_INET, kind, 0)
	if err != nil {
		panic(err)
	}
	return fd
}

// actConnect connects each port in turn, blocking and not.
func actConnect(args []string) {
	for _, arg := range args {
		said("blocking "+arg, connect(socket(unix.SOCK_STREAM), in4(number(arg))))
		fd := socket(unix.SOCK_STREAM | unix.SOCK_NONBLOCK)
		said("at once "+arg, connect(fd, in4(number(arg))))
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 5000)
		said("again "+arg, connect(fd, in4(number(arg))))
		flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		fmt.Println("still nonblocking", flags&unix.O_NONBLOCK != 0)
	}
}

// actFlip connects to an address that another thread changes between two ports.
func actFlip(args []string) {
	raw := in4(number(args[0]))
	a, b := binary.NativeEndian.Uint32(in4(number(args[0]))), binary.NativeEndian.Uint32(in4(number(args[1])))
	word := (*uint32)(unsafe.Pointer(&raw[0]))
	var over atomic.Bool
	go func() {
		for !over.Load() {
			atomic.StoreUint32(word, a)
			atomic.StoreUint32(word, b)
		}
	}()
	made := 0
	for range number(args[2]) {
		fd := socket(unix.SOCK_STREAM)
		if connect(fd, raw) == nil {
			made++
		}
		unix.Close(fd)
	}
	over.Store(true)
	fmt.Println("made", made > 0)
}

// actFamilies sends to addresses whose family is not what it seems.
func actFamilies(args []string) {
	shut := number(args[0])
	raw := in4(shut)
	binary.NativeEndian.PutUint16(raw, unix.AF_UNSPEC)
	udp := socket(unix.SOCK_DGRAM)
	text := []byte("out")
	said("sendto unspecified", call(unix.SYS_SENDTO, uintptr(udp), at(text), 3, 0, at(raw), 16))
	said("connect unspecified", connect(udp, raw))
	stream := socket(unix.SOCK_STREAM)
	bound := in4(shut)
	copy(bound[4:], []byte{0, 0, 0, 0})
	binary.NativeEndian.PutUint16(bound, unix.AF_UNSPEC)
	said("bind unspecified", call(unix.SYS_BIND, uintptr(stream), at(bound), 16))
	any4 := in4(shut)
	copy(any4[4:], []byte{0, 0, 0, 0})
	said("connect any", connect(socket(unix.SOCK_STREAM), any4))
	mapped := make([]byte, 28)
	binary.NativeEndian.PutUint16(mapped, unix.AF_INET6)
	binary.BigEndian.PutUint16(mapped[2:], uint16(shut))
	copy(mapped[18:], []byte{0xff, 0xff, 127, 0, 0, 1})
	six, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM, 0)
	if err != nil {
		fmt.Println("connect mapped ECONNREFUSED\nIPv4 on IPv6 ECONNREFUSED") // a machine without IPv6
		return
	}
	said("connect mapped", connect(six, mapped))
	said("IPv4 on IPv6", connect(six, in4(shut)))
	said("short", connect(socket(unix.SOCK_STREAM), in4(shut)[:8]))
}

// actServe listens on the first port, on another, and without an address.
func actServe(args []string) {
	for _, arg := range args {
		fd := socket(unix.SOCK_STREAM)
		raw := in4(number(arg))
		said("bind", call(unix.SYS_BIND, uintptr(fd), at(raw), 16))
		said("listen", unix.Listen(fd, 5))
	}
}

// actDatagrams sends to each port, and hears what comes.
func actDatagrams(args []string) {
	fd := socket(unix.SOCK_DGRAM)
	text := []byte("ask")
	for _, arg := range args {
		raw := in4(number(arg))
		said("sendto", call(unix.SYS_SENDTO, uintptr(fd), at(text), 3, 0, at(raw), 16))
	}
	buf := make([]byte, 100)
	tv := unix.NsecToTimeval(int64(2 * time.Second))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	for {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			return
		}
		fmt.Println("heard", string(buf[:n]))
		if string(buf[:n]) == "end" {
			return
		}
	}
}

// actMessages sends by sendmsg and sendmmsg, from two pieces.
func actMessages(args []string) {
	fd := socket(unix.SOCK_DGRAM)
	one, two := []byte("pie"), []byte("ces")
	iov := []unix.Iovec{{Base: &one[0], Len: 3}, {Base: &two[0], Len: 3}}
	type many struct {
		header unix.Msghdr
		length uint32
		_      uint32
	}
	var all []many
	for _, arg := range args {
		raw := in4(number(arg))
		h := unix.Msghdr{Name: &raw[0], Namelen: 16, Iov: &iov[0], Iovlen: 2}
		said("sendmsg", call(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&h)), 0))
		all = append(all, many{header: h})
	}
	n, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&all[0])), uintptr(len(all)), 0, 0, 0)
	fmt.Println("sendmmsg", int(n), e == 0, all[0].length)
	runtime.KeepAlive(iov)
}

// actPass hands a descriptor over a pair of sockets.
func actPass([]string) {
	pair, _ := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	pipe := make([]int, 2)
	_ = unix.Pipe(pipe)
	said("sendmsg", unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(pipe[0]), nil, 0))
	buf, oob := make([]byte, 9), make([]byte, 64)
	n, oobn, _, _, err := unix.Recvmsg(pair[1], buf, oob, 0)
	said("recvmsg", err)
	m, _ := unix.ParseSocketControlMessage(oob[:oobn])
	fds, _ := unix.ParseUnixRights(&m[0])
	_, _ = unix.Write(pipe[1], []byte("through"))
	k, _ := unix.Read(fds[0], buf)
	fmt.Println(n, string(buf[:k]))
	large := make([]byte, 3<<20) // more than the socket takes: the send waits, and the next call is served meanwhile
	go func() {
		total := 0
		for b := make([]byte, 1<<16); total < len(large); {
			k, err := unix.Read(pair[1], b)
			if err != nil || k == 0 {
				break
			}
			total += k
		}
		fmt.Println("read", total)
		os.Exit(0)
	}()
	k, err = unix.SendmsgN(pair[0], large, nil, nil, 0)
	fmt.Println("sent", k, err)
	select {}
}

// actWait connects to a host that does not answer, says so first, and waits.
func actWait(args []string) {
	fd := socket(unix.SOCK_STREAM)
	if len(args) > 1 {
		tv := unix.NsecToTimeval(int64(50 * time.Millisecond))
		_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
	}
	said("waited", connect(fd, in4(number(args[0]))))
}

// actInterrupted is killed by SIGTERM of its thread while it waits: blocked, the signal would have to wait as well.
func actInterrupted(args []string) {
	tid := unix.Gettid()
	go func() {
		for {
			time.Sleep(20 * time.Millisecond)
			_ = unix.Tgkill(os.Getpid(), tid, unix.SIGURG) // which the runtime handles, with SA_RESTART
		}
	}()
	actWait(append(args, "timed"))
}

// actUnix connects to paths.
func actUnix(args []string) {
	for _, path := range args {
		fd, _ := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		said("connect", unix.Connect(fd, &unix.SockaddrUnix{Name: path}))
	}
}

// actPipe sends into what nobody reads.
func actPipe([]string) {
	pair, _ := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	unix.Close(pair[1])
	_, err := unix.SendmsgN(pair[0], []byte("x"), nil, nil, unix.MSG_NOSIGNAL)
	said("quiet", err)
}

// actMany starts connections to a port that answers and to one that does not, at once, and ends with those that wait.
func actMany(args []string) {
	for range 100 {
		for _, arg := range args {
			said(arg, connect(socket(unix.SOCK_STREAM|unix.SOCK_NONBLOCK), in4(number(arg))))
		}
	}
	// Copies of this process wait, and die waiting: as processes, since a thread under the filter makes none that is not.
	for range 20 {
		pid, _, e := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
		if e != 0 {
			panic(e)
		}
		if pid == 0 {
			raw := unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}}
			port := number(args[1])
			raw.Port = uint16(port<<8 | port>>8)
			fd, _, _ := unix.RawSyscall(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0)
			_, _, _ = unix.RawSyscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&raw)), 16)
			for {
				_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
		}
		defer func() {
			_ = unix.Kill(int(pid), unix.SIGKILL)
			_, _ = unix.Wait4(int(pid), nil, 0, nil)
		}()
	}
	said("last", connect(socket(unix.SOCK_STREAM), in4(number(args[0]))))
}
