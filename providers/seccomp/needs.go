package seccomp

// Needs is what a policy asks of the filter. The zero value is the strictest sandbox.
type Needs struct {
	// Inet: the policy has a network rule, so internet sockets may exist. Which hosts and ports they reach is
	// decided elsewhere.
	Inet bool
	// UDP: datagram sockets of the internet may exist, for a rule or for looking names up.
	UDP bool
	// Ask says which network calls are put to the supervisor.
	Ask Ask
	// Exec: the policy grants running programs. Without it execve is put to the supervisor, which lets exactly
	// one through.
	Exec bool
	// TellExec: with that grant each execve is put to the supervisor all the same, which lets it go on and says which program no
	// rule exposes. The kernel's file rules hold it.
	TellExec bool
	// Fork: the policy grants making processes. Threads need no grant.
	Fork bool
	// UnixDatagram: datagram sockets of the unix family may exist.
	UnixDatagram bool
	// Metadata: mode, owner, times and extended attributes of files may be changed. Landlock does not judge
	// these calls, so only a policy with a writable exposure needs them.
	Metadata bool

	// Self is the process number the program will have. Calls that act on a process by number are limited to
	// it (and to 0, the caller).
	Self uint32
	// NoSignalScope: this kernel's Landlock does not keep signals inside (before ABI 6).
	NoSignalScope bool
	// NoTruncate: this kernel's Landlock does not judge truncation (before ABI 3).
	NoTruncate bool
	// NoDeviceScope: this kernel's Landlock does not judge the operation of devices (before ABI 5).
	NoDeviceScope bool
	// Devices: the policy exposes a device for writing, so that devices are operated by rule.
	Devices bool
}

// Ask is a set of network calls that are put to the supervisor (core/broker).
type Ask uint8

const (
	// AskConnect: connect.
	AskConnect Ask = 1 << iota
	// AskServe: bind and listen.
	AskServe
	// AskSend: sendto with an address, sendmsg and sendmmsg. Needed where a datagram socket could be told to send
	// elsewhere; the latter two cannot be told by a filter from sends without an address.
	AskSend
	// AskSocket: making a socket, where the supervisor can act only on what it has made itself.
	AskSocket
	// AskOutcome: what became of a connection (getsockopt of SO_ERROR, getpeername), where a socket of the supervisor's
	// may take the place of the program's.
	AskOutcome
	// AskReceive: recvfrom with an address, where what a program asked a name server is answered by another than it asked.
	AskReceive
	// AskReceiveMessage: recvmsg for the same reason. It cannot be told by a filter from one without an address, and is what
	// much traffic comes by that is no look-up.
	AskReceiveMessage
	// AskListen: listen alone, where a unix socket whose name is no path would be reached by everybody of the machine. Its name
	// is in the memory of bind; here it stands.
	AskListen
)
