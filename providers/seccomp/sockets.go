//go:build linux && (amd64 || arm64)

package seccomp

import "golang.org/x/sys/unix"

// Multipath TCP, which Landlock's and most other filters' TCP rules do not see (linux/in.h).
const protocolMPTCP = 262

// Options that x/sys does not name (linux/in6.h, asm-generic/socket.h).
const (
	flowLabelManager = 32 // IPV6_FLOWLABEL_MGR
	bindToIndex      = 62 // SO_BINDTOIFINDEX
)

// typeMask leaves of a socket's type what is not SOCK_NONBLOCK and SOCK_CLOEXEC.
const typeMask = 0xf

// socketRules say which sockets may exist, and which calls on them the supervisor decides.
func socketRules(n Needs) []Rule {
	ask := func(which Ask) Verdict {
		if n.Ask&which != 0 {
			return Notify
		}
		return Allow
	}
	return []Rule{
		{Call: Call{unix.SYS_SOCKET, "socket"}, Why: "a list of families, types and protocols", Tests: socketTests(n), Verdict: denied},
		{Call: Call{unix.SYS_SOCKETPAIR, "socketpair"}, Why: "of the unix family alone; one of a pair of datagram sockets can send to any address", Tests: pairTests(n), Verdict: Allow},
		{Call: Call{unix.SYS_CONNECT, "connect"}, Why: "reaching a host, or a service of this one", Verdict: ask(AskConnect)},
		{Call: Call{unix.SYS_BIND, "bind"}, Why: "being reached", Verdict: ask(AskServe)},
		{Call: Call{unix.SYS_LISTEN, "listen"}, Why: "being reached; it binds by itself where nobody did", Verdict: ask(AskServe | AskListen)},
		{Call: Call{unix.SYS_SENDTO, "sendto"}, Why: "with an address it reaches that address", Tests: sendtoTests(n), Verdict: Allow},
		{Call: Call{unix.SYS_SENDMSG, "sendmsg"}, Why: "its address is in memory", Tests: fastOpenTests(2), Verdict: ask(AskSend)},
		{Call: Call{unix.SYS_SENDMMSG, "sendmmsg"}, Why: "its addresses are in memory", Tests: fastOpenTests(3), Verdict: ask(AskSend)},
		{Call: Call{unix.SYS_RECVFROM, "recvfrom"}, Why: "who sent it, where that is not whom the program takes it for", Tests: recvfromTests(n), Verdict: Allow},
		{Call: Call{unix.SYS_RECVMSG, "recvmsg"}, Why: "the same", Verdict: ask(AskReceiveMessage)},
		{Call: Call{unix.SYS_GETSOCKOPT, "getsockopt"}, Why: "the outcome of a connection that was not waited for", Tests: outcomeTests(n), Verdict: Allow},
		{Call: Call{unix.SYS_GETPEERNAME, "getpeername"}, Why: "asks for the same", Verdict: ask(AskOutcome)},
		{Call: Call{unix.SYS_SETSOCKOPT, "setsockopt"}, Why: "options that send a packet elsewhere than its address says, or tell others of oneself", Tests: optionTests(n), Verdict: Allow},
	}
}

// socketTests is the list of what socket() may make.
func socketTests(n Needs) []Test {
	allow := Allow
	if n.Ask&AskSocket != 0 {
		allow = Notify
	}
	t := []Test{
		{[]Match{is(0, unix.AF_UNIX), masked(1, typeMask, unix.SOCK_STREAM)}, allow},
		{[]Match{is(0, unix.AF_UNIX), masked(1, typeMask, unix.SOCK_SEQPACKET)}, allow},
	}
	datagrams := Notify // to be refused with words
	if n.UnixDatagram {
		datagrams = allow
	}
	t = append(t, Test{[]Match{is(0, unix.AF_UNIX), masked(1, typeMask, unix.SOCK_DGRAM)}, datagrams})
	if !n.Inet {
		return t
	}
	type kind struct{ kind, protocol uint32 }
	kinds := []kind{{unix.SOCK_STREAM, 0}, {unix.SOCK_STREAM, unix.IPPROTO_TCP}}
	if n.UDP {
		kinds = append(kinds, kind{unix.SOCK_DGRAM, 0}, kind{unix.SOCK_DGRAM, unix.IPPROTO_UDP})
	}
	for _, family := range []uint32{unix.AF_INET, unix.AF_INET6} {
		for _, k := range kinds {
			t = append(t, Test{[]Match{is(0, family), masked(1, typeMask, k.kind), is(2, k.protocol)}, allow})
		}
		// The answer of a kernel without it: callers fall back to TCP.
		t = append(t, Test{[]Match{is(0, family), is(2, protocolMPTCP)}, Errno(unix.EPROTONOSUPPORT)})
	}
	// getaddrinfo lists the machine's own addresses to order its answers.
	return append(t, Test{[]Match{is(0, unix.AF_NETLINK), is(2, unix.NETLINK_ROUTE)}, allow})
}

// pairTests: pairs are of the unix family, with the answer of one that has none for others; TIPC has. Where connect is asked
// about and sends are not, nothing may exist that needs no connect.
func pairTests(n Needs) []Test {
	t := []Test{{[]Match{{Arg: 0, Mask: ^uint32(0), Value: unix.AF_UNIX, Not: true}}, Errno(unix.EOPNOTSUPP)}}
	if n.Ask&AskConnect == 0 || n.Ask&AskSend != 0 {
		return t
	}
	return append(t, []Test{
		{[]Match{masked(1, typeMask, unix.SOCK_DGRAM)}, Notify}, // to be refused with words
		{[]Match{masked(1, typeMask, unix.SOCK_RAW)}, denied},   // the unix family takes it for SOCK_DGRAM
	}...)
}

// fastOpenTests refuse a send that connects: with the answer of a kernel that does not do it. Also where no internet socket may
// be made: the program may have been started with one.
func fastOpenTests(flags int) []Test {
	return []Test{{[]Match{anyOf(flags, unix.MSG_FASTOPEN)}, Errno(unix.EOPNOTSUPP)}}
}

// sendtoTests: without an address it is never asked about.
func sendtoTests(n Needs) []Test {
	t := fastOpenTests(3)
	if n.Ask&AskSend == 0 {
		return t
	}
	return append(t, addressTests...)
}

// recvfromTests: who does not ask for the sender is not told.
func recvfromTests(n Needs) []Test {
	if n.Ask&AskReceive == 0 {
		return nil
	}
	return addressTests
}

// addressTests ask about sendto and recvfrom with an address. A pointer is there when either half of it is.
var addressTests = []Test{
	{[]Match{anyOf(4, ^uint32(0))}, Notify},
	{[]Match{{Arg: 4, Mask: ^uint32(0), Not: true, High: true}}, Notify},
}

// strayOptions of internet sockets make the kernel send something that no address of a call told of, or to another place than
// its address says: bound to a device, what goes to 127.0.0.1 leaves the machine by that one.
var strayOptions = []struct {
	level  uint32
	option uint32
	why    string
}{
	{unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "a device: a packet leaves by it, wherever its address is"},
	{unix.SOL_SOCKET, bindToIndex, "the same"},
	{unix.SOL_IP, unix.IP_UNICAST_IF, "the same"},
	{unix.SOL_IPV6, unix.IPV6_UNICAST_IF, "the same"},
	{unix.SOL_IPV6, unix.IPV6_PKTINFO, "the same"},
	{unix.SOL_IP, unix.IP_OPTIONS, "source routes: a packet goes to the first stop"},
	{unix.SOL_IP, unix.IP_ADD_MEMBERSHIP, "joining a group tells the network its number"},
	{unix.SOL_IP, unix.IP_ADD_SOURCE_MEMBERSHIP, "the same"},
	{unix.SOL_IP, unix.IP_MSFILTER, "the same"},
	{unix.SOL_IP, unix.MCAST_JOIN_GROUP, "the same"},
	{unix.SOL_IP, unix.MCAST_JOIN_SOURCE_GROUP, "the same"},
	{unix.SOL_IP, unix.MCAST_MSFILTER, "the same"},
	{unix.SOL_IPV6, unix.IPV6_2292RTHDR, "a routing header: a packet goes to the first stop"},
	{unix.SOL_IPV6, unix.IPV6_2292PKTOPTIONS, "may hold a routing header"},
	{unix.SOL_IPV6, unix.IPV6_RTHDR, "a routing header"},
	{unix.SOL_IPV6, flowLabelManager, "a label may hold a routing header"},
	{unix.SOL_IPV6, unix.IPV6_ADD_MEMBERSHIP, "joining a group tells the network its number"},
	{unix.SOL_IPV6, unix.IPV6_JOIN_ANYCAST, "the same"},
	{unix.SOL_IPV6, unix.MCAST_JOIN_GROUP, "the same"},
	{unix.SOL_IPV6, unix.MCAST_JOIN_SOURCE_GROUP, "the same"},
	{unix.SOL_IPV6, unix.MCAST_MSFILTER, "the same"},
}

// filterOptions would take off the filter by which a datagram socket hears only whom it spoke to.
var filterOptions = []uint32{unix.SO_ATTACH_FILTER, unix.SO_DETACH_FILTER, unix.SO_ATTACH_BPF, unix.SO_LOCK_FILTER}

func optionTests(n Needs) []Test {
	var t []Test
	if n.Ask&AskSend != 0 {
		for _, option := range filterOptions {
			t = append(t, Test{[]Match{is(1, unix.SOL_SOCKET), is(2, option)}, denied})
		}
	}
	for _, o := range strayOptions {
		t = append(t, Test{[]Match{is(1, o.level), is(2, o.option)}, denied})
	}
	return t
}

// outcomeTests put the question for a connection's outcome to the supervisor.
func outcomeTests(n Needs) []Test {
	if n.Ask&AskOutcome == 0 {
		return nil
	}
	return []Test{{[]Match{is(1, unix.SOL_SOCKET), is(2, unix.SO_ERROR)}, Notify}}
}
