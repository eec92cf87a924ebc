//go:build linux && (amd64 || arm64)

// Command probe is the program that the provider tests run in a sandbox: it tries each operation it is given and
// prints how that went, one line each. Started under init's name it is init, as the product's static binary is.
package main

import (
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/initproc"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

func main() {
	if os.Args[0] == plan.Argv0 {
		initproc.Main()
	}
	for _, op := range os.Args[1:] {
		name, arg, _ := strings.Cut(op, "=")
		try, ok := operations[name]
		if !ok {
			fmt.Printf("%s\tunknown operation\n", op)
			os.Exit(2)
		}
		fmt.Printf("%s\t%s\n", op, try(arg))
	}
}

// result is "ok" or the error's name.
func result(err error) string {
	if err == nil {
		return "ok"
	}
	if e, ok := err.(syscall.Errno); ok {
		return unix.ErrnoName(e)
	}
	return err.Error()
}

func opened(fd int, err error) string {
	if err == nil {
		unix.Close(fd)
	}
	return result(err)
}

func call(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, e := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); e != 0 {
		return e
	}
	return nil
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func socket(family, kind, protocol int) func(string) string {
	return func(string) string { return opened(unix.Socket(family, kind, protocol)) }
}

var operations = map[string]func(arg string) string{
	"read":     func(p string) string { return opened(unix.Open(p, unix.O_RDONLY, 0)) },
	"write":    func(p string) string { return opened(unix.Open(p, unix.O_WRONLY, 0)) },
	"create":   func(p string) string { return opened(unix.Open(p, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)) },
	"list":     list,
	"stat":     stat,
	"within":   within,
	"mkdir":    func(p string) string { return result(unix.Mkdir(p, 0o700)) },
	"remove":   func(p string) string { return result(unix.Unlink(p)) },
	"empty":    func(p string) string { return opened(unix.Open(p, unix.O_RDONLY|unix.O_TRUNC, 0)) },
	"truncate": func(p string) string { return result(unix.Truncate(p, 0)) },
	"chmod":    func(p string) string { return result(unix.Chmod(p, 0o600)) },
	"move":     func(p string) string { from, to, _ := strings.Cut(p, ","); return result(unix.Rename(from, to)) },
	"link":     func(p string) string { from, to, _ := strings.Cut(p, ","); return result(unix.Link(from, to)) },

	"tcp":      socket(unix.AF_INET, unix.SOCK_STREAM, 0),
	"udp6":     socket(unix.AF_INET6, unix.SOCK_DGRAM, 0),
	"unix":     socket(unix.AF_UNIX, unix.SOCK_STREAM, 0),
	"unixgram": socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0),
	"raw":      socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
	"packet":   socket(unix.AF_PACKET, unix.SOCK_RAW, 0),
	"dial":     dial,
	"netlink":  socket(unix.AF_NETLINK, unix.SOCK_RAW, 0),
	"alg":      socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
	"socketpair": func(string) string {
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
		return result(err)
	},

	"fork":     func(string) string { return fork(uintptr(unix.SIGCHLD)) },
	"sibling":  func(string) string { return fork(unix.CLONE_PARENT | uintptr(unix.SIGCHLD)) },
	"newpid":   func(string) string { return fork(unix.CLONE_NEWPID | uintptr(unix.SIGCHLD)) },
	"clone3":   func(string) string { return result(call(unix.SYS_CLONE3, 0, 0)) },
	"exec":     func(p string) string { return result(unix.Exec(p, []string{p}, nil)) },
	"spawn":    spawn,
	"thread":   func(string) string { c := make(chan bool); go close(c); <-c; return "ok" },
	"ptrace":   func(p string) string { return result(unix.PtraceAttach(number(p))) },
	"readmem":  func(p string) string { return result(readMemory(number(p))) },
	"unshare":  func(string) string { return result(unix.Unshare(unix.CLONE_NEWNS)) },
	"mount":    func(string) string { return result(unix.Mount("none", "/tmp", "tmpfs", 0, "")) },
	"chroot":   func(p string) string { return result(unix.Chroot(p)) },
	"io_uring": func(string) string { return result(call(unix.SYS_IO_URING_SETUP, 1, 0)) },
	"bpf":      func(string) string { return result(call(unix.SYS_BPF, 0, 0, 0)) },
	"keyctl": func(string) string {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)
		return result(err)
	},
	"shmget": func(string) string { return result(call(unix.SYS_SHMGET, 0, 4096, 0o1600)) },
	"handle": func(p string) string { _, _, err := unix.NameToHandleAt(unix.AT_FDCWD, p, 0); return result(err) },
	"memfd":  func(string) string { return opened(unix.MemfdCreate("x", 0)) },
	"tiocsti": func(string) string {
		b := byte('x')
		return result(call(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&b))))
	},
	"signal":   func(p string) string { return result(unix.Kill(number(p), 0)) },
	"limits":   func(p string) string { return result(unix.Prlimit(number(p), unix.RLIMIT_NOFILE, nil, &unix.Rlimit{})) },
	"priority": func(p string) string { return result(unix.Setpriority(unix.PRIO_PROCESS, number(p), 19)) },
	"owner":    func(p string) string { return result(owner(number(p))) },
	"ownerex":  func(p string) string { return result(ownerEx(number(p))) },
	"fioowner": func(p string) string { return result(ownerByIoctl(number(p))) },
	"chattr":   func(p string) string { return result(attributes(p)) },
	"geometry": func(p string) string { return result(geometry(p)) },
	"survive":  func(string) string { return result(unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)) },

	"core": func(string) string { return rlimit(unix.RLIMIT_CORE) },
	"nocore": func(string) string {
		return result(unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})) + " " + rlimit(unix.RLIMIT_CORE)
	},
	"files":   func(string) string { return rlimit(unix.RLIMIT_NOFILE) },
	"cpu":     func(string) string { return rlimit(unix.RLIMIT_CPU) },
	"data":    func(string) string { return rlimit(unix.RLIMIT_DATA) },
	"fds":     func(string) string { return descriptors() },
	"env":     func(string) string { e := os.Environ(); sort.Strings(e); return strings.Join(e, " ") },
	"cwd":     func(string) string { d, _ := os.Getwd(); return d },
	"status":  status,
	"session": func(string) string { s, _ := unix.Getsid(0); return strconv.FormatBool(s == os.Getpid()) },
	"exit":    func(p string) string { os.Exit(number(p)); return "" },
	"die":     func(p string) string { unix.Kill(os.Getpid(), unix.Signal(number(p))); return "" },
	"spin": func(string) string {
		for n := 0; ; n++ {
			_ = n
		}
	},
	"eat": func(string) string {
		for {
			data, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
			if err != nil {
				return result(err)
			}
			for i := range data {
				data[i] = 1
			}
		}
	},
	"wait": func(string) string {
		fmt.Println("waiting")
		_, err := io.Copy(io.Discard, os.Stdin)
		return result(err)
	},
	"child": child,
}

// fork makes a child that ends at once.
func fork(flags uintptr) string {
	pid, _, e := unix.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	if e != 0 {
		return result(e)
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	var ws unix.WaitStatus
	_, err := unix.Wait4(int(pid), &ws, 0, nil)
	return result(err)
}

// spawn runs a program and waits for it.
func spawn(path string) string {
	pid, err := syscall.ForkExec(path, []string{path, "exit=3"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
	if err != nil {
		return result(err)
	}
	var ws unix.WaitStatus
	if _, err = unix.Wait4(pid, &ws, 0, nil); err == nil {
		return strconv.Itoa(ws.ExitStatus())
	}
	return result(err)
}

// child leaves a process behind that waits for ever, and says its number.
func child(path string) string {
	pid, err := syscall.ForkExec(path, []string{path, "wait"}, &syscall.ProcAttr{Files: []uintptr{0, 2, 2}})
	if err != nil {
		return result(err)
	}
	return strconv.Itoa(pid)
}

func readMemory(pid int) error {
	b := make([]byte, 1)
	local := []unix.Iovec{{Base: &b[0], Len: 1}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 4096, Len: 1}}, 0)
	return err
}

// pipe is a descriptor whose owner may be set.
func pipe() int {
	var fds [2]int
	if err := unix.Pipe(fds[:]); err != nil {
		panic(err)
	}
	return fds[0]
}

func owner(pid int) error {
	_, err := unix.FcntlInt(uintptr(pipe()), unix.F_SETOWN, pid)
	return err
}

func ownerEx(pid int) error {
	who := [2]int32{1, int32(pid)} // F_OWNER_PID
	return call(unix.SYS_FCNTL, uintptr(pipe()), unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&who)))
}

func ownerByIoctl(pid int) error {
	const fioSetOwner = 0x8901
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	who := int32(pid)
	return call(unix.SYS_IOCTL, uintptr(pair[0]), fioSetOwner, uintptr(unsafe.Pointer(&who)))
}

// attributes is chattr +d, on a descriptor that only reads.
func attributes(path string) error {
	const noDump = 0x40
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, int(flags|noDump))
}

// geometry asks a device something that only its driver knows: /dev/urandom its entropy.
func geometry(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.IoctlGetInt(fd, unix.RNDGETENTCNT)
	return err
}

func rlimit(resource int) string {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(resource, &r); err != nil {
		return result(err)
	}
	return fmt.Sprintf("%d/%d", r.Cur, r.Max)
}

// descriptors lists the open ones by trying them: /proc is out of reach.
func descriptors() string {
	var open []string
	for fd := range 512 {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			continue
		}
		if target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && (strings.Contains(target, "event") || strings.Contains(target, "cgroup")) {
			continue // the Go runtime's own
		}
		open = append(open, strconv.Itoa(fd))
	}
	return strings.Join(open, ",")
}

// status tells facts by calls, since /proc is out of reach: no_new_privs, the filter's mode, capabilities.
func status(what string) string {
	switch what {
	case "nnp":
		n, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		return strconv.Itoa(n)
	case "seccomp":
		n, _ := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
		return strconv.Itoa(n)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return result(err)
	}
	return fmt.Sprintf("%x", uint64(data[1].Effective)<<32|uint64(data[0].Effective))
}

// list is how many names a folder shows.
func list(path string) string {
	names, err := os.ReadDir(path)
	if err != nil {
		return result(err.(*os.PathError).Err)
	}
	return strconv.Itoa(len(names))
}

// stat is the mode and the size of what stands at a path.
func stat(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return result(err)
	}
	return fmt.Sprintf("%o %d", st.Mode, st.Size)
}

// within opens a name for writing relative to the folder that descriptor 0 is open on.
func within(name string) string { return opened(unix.Openat(0, name, unix.O_WRONLY, 0)) }
