package plan

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// StandIns are addresses that stand for the host's own loopback addresses (core/broker); inside, what is sent to one comes
// from the loopback address. They are of RFC 2544, nobody's.
var StandIns = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18}), 15)

// Network is a network namespace of the child's own. Nothing leads out of it: what the sandbox sends to an address
// outside goes to its loopback device and is dropped there. The supervisor holds the door, a few sockets that init
// makes inside and hands over before any code of the sandbox runs (Door).
type Network struct {
	// Addresses are put on the loopback device, each for itself (/32, /128): the host's own, so that programs see
	// the address that their connections have, and those of the name servers.
	Addresses []string
	// Servers are the addresses at which the supervisor answers names, port 53.
	Servers []string
	// Source is the IPv4 address that outgoing connections and datagrams show inside.
	Source string
	// Source6 is the same for IPv6, "" where the host reaches nothing by it.
	Source6 string
	// Reach6 are the networks of IPv6 that the host reaches.
	Reach6 []string
	// Cookie is the kernel's number of the supervisor's own network namespace (SO_NETNS_COOKIE, Linux 5.14): init
	// proves that its own is another. 0 where the kernel tells none.
	Cookie uint64
	// File is the number of the file that stands for that namespace (namespaces(7)): the proof where there is no cookie. 0
	// where /proc tells none.
	File uint64
}

// NetworkFile is that number for the calling thread. It is read without opening the file, which the boundary refuses.
func NetworkFile() uint64 {
	var st unix.Stat_t
	if unix.Stat("/proc/thread-self/ns/net", &st) != nil {
		return 0
	}
	return st.Ino
}

// The order of the descriptors that come with a Door message: those named here, then for each of Network.Servers a
// bound datagram socket and a listening stream socket.
const (
	DoorDatagrams = iota // sees datagrams to addresses outside (packet(7))
	DoorAttempts         // sees the first packets of TCP connections there
	DoorRaw              // answers in their name, IPv4 (raw(7), with headers)
	DoorRaw6             // the same for IPv6
	DoorList             // tells of the namespace's sockets (sock_diag(7))
	DoorServers
)

// Failures of a stage that a start may do without, said in Message.Stage.
const StageNetwork = "network"
