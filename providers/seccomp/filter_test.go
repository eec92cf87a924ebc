//go:build linux && (amd64 || arm64)

package seccomp

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// judge runs the program in the BPF machine of x/net. That machine reads big-endian words, the kernel reads
// native ones, so each word of seccomp_data is written big-endian here.
func judge(t *testing.T, n Needs, arch, nr uint32, args ...uint32) Verdict {
	t.Helper()
	code, err := assemble(n)
	require.NoError(t, err)
	return ran(t, code, arch, nr, args...)
}

func ran(t *testing.T, code []bpf.Instruction, arch, nr uint32, args ...uint32) Verdict {
	t.Helper()
	vm, err := bpf.NewVM(code)
	require.NoError(t, err)
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offsetNR:], nr)
	binary.BigEndian.PutUint32(data[offsetArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[offsetArgs+8*i:], a)
	}
	v, err := vm.Run(data)
	require.NoError(t, err)
	return Verdict(uint32(v))
}

func TestVerdicts(t *testing.T) {
	const me = 4711
	open := Needs{Inet: true, UDP: true, Exec: true, Fork: true, UnixDatagram: true, Metadata: true, Self: me}
	old := Needs{Self: me, NoSignalScope: true, NoTruncate: true, NoDeviceScope: true}
	oldDevice := Needs{Self: me, NoSignalScope: true, NoDeviceScope: true, Devices: true}
	strict := Needs{Self: me}
	asking := Needs{Inet: true, UDP: true, Exec: true, Ask: AskConnect | AskServe | AskSend, Self: me}
	streams := Needs{Inet: true, Exec: true, Ask: AskConnect | AskServe, Self: me}
	making := Needs{Inet: true, Ask: AskConnect | AskServe | AskSocket, Self: me}
	told := Needs{Exec: true, TellExec: true, Fork: true, Self: me}
	tcp := []uint32{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}
	for _, c := range []struct {
		name string
		n    Needs
		nr   uint32
		args []uint32
		want Verdict
	}{
		{"read", strict, unix.SYS_READ, nil, Allow},
		{"the last table row before a gap", strict, unix.SYS_EXIT_GROUP, nil, Allow},
		{"a thread", strict, unix.SYS_CLONE, []uint32{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, Allow},
		{"a process without a grant", strict, unix.SYS_CLONE, []uint32{uint32(unix.SIGCHLD)}, refuse},
		{"a process with a grant", open, unix.SYS_CLONE, []uint32{uint32(unix.SIGCHLD)}, Allow},
		{"posix_spawn with a grant", open, unix.SYS_CLONE, []uint32{unix.CLONE_VM | unix.CLONE_VFORK | uint32(unix.SIGCHLD)}, Allow},
		{"a namespace with a grant", open, unix.SYS_CLONE, []uint32{unix.CLONE_NEWUSER | uint32(unix.SIGCHLD)}, refuse},
		{"a namespace for a thread", strict, unix.SYS_CLONE, []uint32{unix.CLONE_NEWNET | unix.CLONE_THREAD}, refuse},
		{"a sibling", open, unix.SYS_CLONE, []uint32{unix.CLONE_PARENT}, refuse},
		{"clone3", open, unix.SYS_CLONE3, nil, notPresent},
		{"exec without a grant", strict, unix.SYS_EXECVE, nil, Notify},
		{"execveat without a grant", strict, unix.SYS_EXECVEAT, nil, Notify},
		{"exec with a grant", open, unix.SYS_EXECVE, nil, Allow},
		{"exec with a grant, told", told, unix.SYS_EXECVE, nil, Notify},
		{"the death signal with a grant, told", told, unix.SYS_PRCTL, []uint32{unix.PR_SET_PDEATHSIG}, Allow},
		{"tcp without a net rule", strict, unix.SYS_SOCKET, tcp, denied},
		{"tcp", open, unix.SYS_SOCKET, tcp, Allow},
		{"udp over IPv6", open, unix.SYS_SOCKET, []uint32{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP}, Allow},
		{"udp where only tcp is granted", streams, unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_DGRAM, 0}, denied},
		{"connect with nobody to ask", open, unix.SYS_CONNECT, nil, Allow},
		{"connect", streams, unix.SYS_CONNECT, nil, Notify},
		{"bind", streams, unix.SYS_BIND, nil, Notify},
		{"listen", streams, unix.SYS_LISTEN, nil, Notify},
		{"socket where descriptors cannot be taken", making, unix.SYS_SOCKET, tcp, Notify},
		{"a unix socket where descriptors cannot be taken", making, unix.SYS_SOCKET, []uint32{unix.AF_UNIX, unix.SOCK_STREAM, 0}, Notify},
		{"udp where descriptors cannot be taken", making, unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_DGRAM, 0}, denied},
		{"a raw socket where descriptors cannot be taken", making, unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_RAW, 0}, denied},
		{"accept", streams, unix.SYS_ACCEPT4, nil, Allow},
		{"sendto without an address", asking, unix.SYS_SENDTO, []uint32{3, 4096, 9, 0, 0, 0}, Allow},
		{"sendto with an address", asking, unix.SYS_SENDTO, []uint32{3, 4096, 9, 0, 4096, 16}, Notify},
		{"sendto of streams only", streams, unix.SYS_SENDTO, []uint32{3, 4096, 9, 0, 4096, 16}, Allow},
		{"sendto that connects", streams, unix.SYS_SENDTO, []uint32{3, 4096, 9, unix.MSG_FASTOPEN, 4096, 16}, Errno(unix.EOPNOTSUPP)},
		{"sendmsg that connects", asking, unix.SYS_SENDMSG, []uint32{3, 4096, unix.MSG_FASTOPEN | unix.MSG_NOSIGNAL}, Errno(unix.EOPNOTSUPP)},
		{"sendmmsg that connects", asking, unix.SYS_SENDMMSG, []uint32{3, 4096, 1, unix.MSG_FASTOPEN}, Errno(unix.EOPNOTSUPP)},
		{"sendmsg", asking, unix.SYS_SENDMSG, nil, Notify},
		{"sendmsg of streams only", streams, unix.SYS_SENDMSG, nil, Allow},
		{"a pair of datagram sockets with nobody to ask", open, unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_DGRAM}, Allow},
		{"a pair of datagram sockets", streams, unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, Notify},
		{"a pair of datagram sockets by another name", streams, unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_RAW}, denied},
		{"a pair of datagram sockets whose sends are asked", asking, unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_DGRAM}, Allow},
		{"a pair of another family", strict, unix.SYS_SOCKETPAIR, []uint32{unix.AF_TIPC, unix.SOCK_RDM}, Errno(unix.EOPNOTSUPP)},
		{"a pair of the internet", asking, unix.SYS_SOCKETPAIR, []uint32{unix.AF_INET, unix.SOCK_STREAM}, Errno(unix.EOPNOTSUPP)},
		{"receiving a message", asking, unix.SYS_RECVMSG, nil, Allow},
		{"receiving a message with an answer by another", Needs{Inet: true, Ask: AskConnect | AskReceiveMessage}, unix.SYS_RECVMSG, nil, Notify},
		{"receiving from somebody, the same", Needs{Inet: true, Ask: AskConnect | AskReceive}, unix.SYS_RECVFROM, []uint32{3, 4096, 9, 0, 4096, 4096}, Notify},
		{"a pair of streams", streams, unix.SYS_SOCKETPAIR, []uint32{unix.AF_UNIX, unix.SOCK_STREAM}, Allow},
		{"a source route", streams, unix.SYS_SETSOCKOPT, []uint32{3, unix.SOL_IP, unix.IP_OPTIONS}, denied},
		{"a routing header", streams, unix.SYS_SETSOCKOPT, []uint32{3, unix.SOL_IPV6, unix.IPV6_RTHDR}, denied},
		{"joining a group", asking, unix.SYS_SETSOCKOPT, []uint32{3, unix.SOL_IPV6, unix.IPV6_JOIN_GROUP}, denied},
		{"no delay", streams, unix.SYS_SETSOCKOPT, []uint32{3, unix.SOL_TCP, unix.TCP_NODELAY}, Allow},
		{"multipath tcp", open, unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_STREAM, protocolMPTCP}, Errno(unix.EPROTONOSUPPORT)},
		{"sctp", open, unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, denied},
		{"raw", open, unix.SYS_SOCKET, []uint32{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, denied},
		{"packet", open, unix.SYS_SOCKET, []uint32{unix.AF_PACKET, unix.SOCK_RAW, 0}, denied},
		{"vsock", open, unix.SYS_SOCKET, []uint32{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, denied},
		{"kernel crypto", open, unix.SYS_SOCKET, []uint32{unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, denied},
		{"netlink route", open, unix.SYS_SOCKET, []uint32{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, Allow},
		{"netlink audit", open, unix.SYS_SOCKET, []uint32{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT}, denied},
		{"netlink without a net rule", strict, unix.SYS_SOCKET, []uint32{unix.AF_NETLINK, unix.SOCK_RAW, 0}, denied},
		{"unix stream", strict, unix.SYS_SOCKET, []uint32{unix.AF_UNIX, unix.SOCK_STREAM, 0}, Allow},
		{"unix datagram", strict, unix.SYS_SOCKET, []uint32{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, Notify},
		{"unix datagram by rule", open, unix.SYS_SOCKET, []uint32{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, Allow},
		{"io_uring", open, unix.SYS_IO_URING_SETUP, nil, notPresent},
		{"ptrace", open, unix.SYS_PTRACE, nil, refuse},
		{"unshare", open, unix.SYS_UNSHARE, nil, refuse},
		{"open by handle", open, unix.SYS_OPEN_BY_HANDLE_AT, nil, refuse},
		{"a subvolume", open, unix.SYS_IOCTL, []uint32{3, 0x5000940e}, refuse},
		{"a snapshot", open, unix.SYS_IOCTL, []uint32{3, 0x50009417}, refuse},
		{"a subvolume's flags", open, unix.SYS_IOCTL, []uint32{3, 0x4008941a}, refuse},
		{"a copy by path", open, unix.SYS_IOCTL, []uint32{3, 0x40186f04}, refuse},
		{"a subvolume of bcachefs", open, unix.SYS_IOCTL, []uint32{3, 0x4030bc10}, refuse},
		{"attributes of FAT", open, unix.SYS_IOCTL, []uint32{3, 0x40047211}, refuse},
		{"a shared copy", open, unix.SYS_IOCTL, []uint32{3, unix.FICLONE}, Allow},
		{"a part of one", strict, unix.SYS_IOCTL, []uint32{3, unix.FICLONERANGE}, Allow},
		{"a shared copy on an old kernel", old, unix.SYS_IOCTL, []uint32{3, unix.FICLONE}, Allow},
		{"a file system's label", open, unix.SYS_IOCTL, []uint32{3, 0x81009431}, Allow},
		{"a device for an internet socket", streams, unix.SYS_SETSOCKOPT, []uint32{3, unix.SOL_SOCKET, unix.SO_BINDTODEVICE}, denied},
		{"the same where none can be made", strict, unix.SYS_SETSOCKOPT, []uint32{3, unix.SOL_IP, unix.IP_UNICAST_IF}, denied},
		{"an everyday option", strict, unix.SYS_SETSOCKOPT, []uint32{3, unix.SOL_SOCKET, unix.SO_REUSEADDR}, Allow},
		{"a send that connects where no internet socket can be made", strict, unix.SYS_SENDMSG, []uint32{3, 0, unix.MSG_FASTOPEN}, Errno(unix.EOPNOTSUPP)},
		{"listen where that alone is asked about", Needs{Ask: AskListen}, unix.SYS_LISTEN, nil, Notify},
		{"bind where listen alone is asked about", Needs{Ask: AskListen}, unix.SYS_BIND, nil, Allow},
		{"TIOCSTI", open, unix.SYS_IOCTL, []uint32{0, unix.TIOCSTI}, refuse},
		{"chattr", open, unix.SYS_IOCTL, []uint32{0, unix.FS_IOC_SETFLAGS}, refuse},
		{"lsattr", strict, unix.SYS_IOCTL, []uint32{0, unix.FS_IOC_GETFLAGS}, Allow},
		{"a project's number", open, unix.SYS_IOCTL, []uint32{0, 0x401c5820}, refuse},
		{"verity", open, unix.SYS_IOCTL, []uint32{0, unix.FS_IOC_ENABLE_VERITY}, refuse},
		{"a generation's number", open, unix.SYS_IOCTL, []uint32{0, 0x40087602}, refuse},
		{"a device's request", strict, unix.SYS_IOCTL, []uint32{0, unix.RNDADDENTROPY}, Allow},
		{"a device's request on an old kernel", old, unix.SYS_IOCTL, []uint32{0, unix.RNDADDENTROPY}, denied},
		{"a device's request by rule on an old kernel", oldDevice, unix.SYS_IOCTL, []uint32{0, unix.RNDADDENTROPY}, Allow},
		{"TIOCSTI by rule on an old kernel", oldDevice, unix.SYS_IOCTL, []uint32{0, unix.TIOCSTI}, refuse},
		{"TIOCGWINSZ on an old kernel", old, unix.SYS_IOCTL, []uint32{0, unix.TIOCGWINSZ}, Allow},
		{"the owner of a descriptor", strict, unix.SYS_FCNTL, []uint32{0, unix.F_SETOWN, 1}, Allow},
		{"the owner of a descriptor on an old kernel", old, unix.SYS_FCNTL, []uint32{0, unix.F_SETOWN, 1}, refuse},
		{"a group that owns a descriptor on an old kernel", old, unix.SYS_FCNTL, []uint32{0, unix.F_SETOWN, ^uint32(me) + 1}, refuse},
		{"oneself the owner on an old kernel", old, unix.SYS_FCNTL, []uint32{0, unix.F_SETOWN, me}, Allow},
		{"an owner in memory on an old kernel", old, unix.SYS_FCNTL, []uint32{0, unix.F_SETOWN_EX}, refuse},
		{"FIOSETOWN on an old kernel", oldDevice, unix.SYS_IOCTL, []uint32{0, fileOwner}, refuse},
		{"a descriptor's flags on an old kernel", old, unix.SYS_FCNTL, []uint32{0, unix.F_GETFL}, Allow},
		{"TIOCGWINSZ", strict, unix.SYS_IOCTL, []uint32{0, unix.TIOCGWINSZ}, Allow},
		{"own limits", strict, unix.SYS_PRLIMIT64, []uint32{0}, Allow},
		{"own limits by number", strict, unix.SYS_PRLIMIT64, []uint32{me}, Allow},
		{"the limit of core files", strict, unix.SYS_PRLIMIT64, []uint32{0, unix.RLIMIT_CORE, 0, 4096}, Allow},
		{"a new one", strict, unix.SYS_PRLIMIT64, []uint32{me, unix.RLIMIT_CORE, 4096, 0}, done},
		{"a new one for the old one", strict, unix.SYS_PRLIMIT64, []uint32{0, unix.RLIMIT_CORE, 4096, 4096}, refuse},
		{"another's of core files", strict, unix.SYS_PRLIMIT64, []uint32{1, unix.RLIMIT_CORE, 4096, 0}, Notify},
		{"a new one by the older call", strict, unix.SYS_SETRLIMIT, []uint32{unix.RLIMIT_CORE, 4096}, done},
		{"another limit by the older call", strict, unix.SYS_SETRLIMIT, []uint32{unix.RLIMIT_NOFILE, 4096}, Allow},
		{"another's limits", open, unix.SYS_PRLIMIT64, []uint32{1}, Notify},
		{"own priority", strict, unix.SYS_SETPRIORITY, []uint32{unix.PRIO_PROCESS, 0}, Allow},
		{"the user's priority", open, unix.SYS_SETPRIORITY, []uint32{unix.PRIO_USER, 0}, refuse},
		{"disarm the death signal", strict, unix.SYS_PRCTL, []uint32{unix.PR_SET_PDEATHSIG}, refuse},
		{"arm the death signal", strict, unix.SYS_PRCTL, []uint32{unix.PR_SET_PDEATHSIG, uint32(unix.SIGKILL)}, Allow},
		{"another death signal", strict, unix.SYS_PRCTL, []uint32{unix.PR_SET_PDEATHSIG, uint32(unix.SIGTERM)}, refuse},
		{"name a thread", strict, unix.SYS_PRCTL, []uint32{unix.PR_SET_NAME}, Allow},
		{"chmod with nothing writable", strict, unix.SYS_FCHMODAT, nil, denied},
		{"chmod with something writable", open, unix.SYS_FCHMODAT, nil, Notify},
		{"making a program that lends rights", open, unix.SYS_OPENAT, []uint32{3, 4096, unix.O_CREAT | unix.O_WRONLY, 0o4755}, refuse},
		{"making a nameless one", open, unix.SYS_OPENAT, []uint32{3, 4096, unix.O_TMPFILE | unix.O_RDWR, 0o2755}, refuse},
		{"making a file", open, unix.SYS_OPENAT, []uint32{3, 4096, unix.O_CREAT | unix.O_WRONLY, 0o755}, Allow},
		{"opening with what is no mode", open, unix.SYS_OPENAT, []uint32{3, 4096, unix.O_RDONLY | unix.O_DIRECTORY, 0o6000}, Allow},
		{"making one where nothing is writable", strict, unix.SYS_OPENAT, []uint32{3, 4096, unix.O_CREAT, 0o4755}, Allow},
		{"a node that lends rights", open, unix.SYS_MKNODAT, []uint32{3, 4096, unix.S_IFREG | 0o4755}, refuse},
		{"a pipe", open, unix.SYS_MKNODAT, []uint32{3, 4096, unix.S_IFIFO | 0o600}, Allow},
		{"a mode in memory", open, unix.SYS_OPENAT2, nil, notPresent},
		{"a younger setxattr", open, unix.SYS_SETXATTRAT, nil, notPresent},
		{"kill", strict, unix.SYS_KILL, []uint32{1}, Allow},
		{"kill another on an old kernel", old, unix.SYS_KILL, []uint32{1}, refuse},
		{"kill the group on an old kernel", old, unix.SYS_KILL, []uint32{0}, refuse},
		{"kill oneself on an old kernel", old, unix.SYS_KILL, []uint32{me}, Allow},
		{"truncate on an old kernel", old, unix.SYS_TRUNCATE, nil, refuse},
		{"truncate", strict, unix.SYS_TRUNCATE, nil, Allow},
		{"empty while reading on an old kernel", old, unix.SYS_OPENAT, []uint32{0, 0, unix.O_TRUNC}, denied},
		{"empty while writing on an old kernel", old, unix.SYS_OPENAT, []uint32{0, 0, unix.O_TRUNC | unix.O_WRONLY}, Allow},
		{"a call newer than the tables", strict, 5000, nil, notPresent},
		{"a call of no table", strict, unix.SYS_LSM_LIST_MODULES, nil, refuse},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, judge(t, c.n, auditArch, c.nr, c.args...), "%#x", uint32(c.want))
		})
	}
}

// A pointer whose low half is zero is one all the same.
func TestAnAddressAtTheBorderOfFourGigabytesIsAsked(t *testing.T) {
	code, err := assemble(Needs{Inet: true, UDP: true, Ask: AskConnect | AskServe | AskSend})
	require.NoError(t, err)
	vm, err := bpf.NewVM(code)
	require.NoError(t, err)
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offsetNR:], unix.SYS_SENDTO)
	binary.BigEndian.PutUint32(data[offsetArch:], auditArch)
	binary.BigEndian.PutUint32(data[offsetArgs+8*4+4:], 1) // the high half of the fifth argument
	v, err := vm.Run(data)
	require.NoError(t, err)
	assert.Equal(t, Notify, Verdict(uint32(v)))
}

func TestForeignCallingConventionsEndTheProcess(t *testing.T) {
	const i386 = 0x40000003
	assert.Equal(t, Kill, judge(t, Needs{}, i386, unix.SYS_READ))
	if foreignABI != 0 {
		assert.Equal(t, Kill, judge(t, Needs{}, auditArch, foreignABI|unix.SYS_READ))
	}
}

// Every row's plain verdict comes out of the tree: no span swallows a neighbour.
func TestEveryRowIsReached(t *testing.T) {
	for _, n := range []Needs{{}, {Inet: true, UDP: true, Exec: true, Fork: true, UnixDatagram: true, Metadata: true, Ask: AskConnect | AskServe | AskSend}, {NoSignalScope: true, NoTruncate: true, NoDeviceScope: true, Self: 9}} {
		rows, err := Table(n)
		require.NoError(t, err)
		for _, r := range rows {
			assert.NotEmpty(t, r.Why, r.Name)
			if len(r.Tests) == 0 {
				assert.Equal(t, r.Verdict, judge(t, n, auditArch, r.NR), r.Name)
			}
		}
	}
}

func TestFilterFits(t *testing.T) {
	f, err := Filter(Needs{Inet: true, UDP: true, Ask: AskConnect | AskServe | AskSend})
	require.NoError(t, err)
	t.Logf("%d instructions", len(f))
	assert.Less(t, len(f), 1000)
}

func TestWhoNeedsAListener(t *testing.T) {
	for _, c := range []struct {
		n    Needs
		want bool
	}{
		{Needs{}, true},
		{Needs{Exec: true, Fork: true, UnixDatagram: true}, true}, // threads that name themselves
		{Needs{Exec: true, Metadata: true}, true},
	} {
		assert.Equal(t, c.want, Notifies(c.n), "%+v", c.n)
	}
}
