package broker

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/metadata"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Mode says where the sandbox's sockets live.
type Mode int

const (
	// Unwalled: in the host's network. Every call that could reach something is notified, and done here on copies.
	Unwalled Mode = iota
	// Walled: in an empty network namespace. Only what leads out is done here.
	Walled
)

func (m Mode) String() string {
	if m == Walled {
		return "walled"
	}
	return "unwalled"
}

// Judge decides. *policy.Policy is one.
type Judge interface {
	Net(policy.NetQuestion) policy.Decision
}

// FileJudge decides on files, by canonical path. *policy.Policy is one.
type FileJudge interface {
	File(path string, access policy.Access, op string) policy.Decision
}

// Denial is a call that was refused by rule.
type Denial struct {
	Op      string // exec, connect, bind, listen, sendto, chmod, chown, utime, setxattr, removexattr
	Subject string // exec: the path as the program gave it, "" where it could not be read
	Thread  int    // the caller's thread number in the supervisor's view
	// Decision is the judge's; nil for an exec without a grant.
	Decision *policy.Decision
}

// DNS is where the sandbox's look-ups go: what it sends to one of Servers goes to a resolver of ours instead, which answers
// only names that some rule allows.
type DNS struct {
	Servers []netip.AddrPort // what the sandbox's resolv.conf names
	// Listen has the resolver listen, by UDP and TCP, in the network of the sandbox's sockets, at one address for each
	// family. It is called at the first look-up. nil: no look-up is answered.
	Listen func() ([]netip.AddrPort, error)
}

// Config is what a broker serves. It owns Listener from [Serve] on, also where that fails.
type Config struct {
	Listener int
	Mode     Mode
	// Judge decides network calls; nil refuses those that come.
	Judge Judge
	// Files decides changes of mode, owner, times and attributes; nil refuses those that come.
	Files FileJudge
	// Caps are the capabilities that the sandbox keeps: what is done for it is done with no more.
	Caps []int
	// DNS is nil where port 53 is as any other.
	DNS *DNS
	// Door leads into a walled sandbox's network. Owned like Listener.
	Door *Door
	// Program is the process number of the sandbox's first process, 0 where it is not known.
	Program int
	// Confine puts the sandbox's rules of files on the calling thread, for what is done there by path. nil: such calls
	// are refused.
	Confine func() error
	// Keep: descriptors of the sandbox cannot be taken, and the filter puts socket() to the supervisor, which keeps copies.
	Keep bool
	// OwnExec: the first exec is init's own and goes on.
	OwnExec bool
	// Runs: programs may be run, as the kernel's file rules have it. What they refuse is told.
	Runs bool
	// Denied takes each denial before its caller gets the answer. It must not block. May be nil.
	Denied func(Denial)
	// Note takes what a person should know of the service itself. May be nil.
	Note func(string)
}

// Broker serves one listener.
type Broker struct {
	config Config
	wake   int // an eventfd: readable when the service is to stop
	done   chan struct{}
	once   sync.Once

	// The service's own.
	own     bool   // init's exec is still to come
	files   *files // nil: no call came that changes a file
	threads threads
	waiting waiting
	said    map[string]bool // notes that were made
	lost    lostConnects
	bound   boundSockets
	hearing hearing
	dns     []netip.AddrPort // where the resolver listens
	led     led
	place   *confined
	walled  *walled // nil: unwalled
	kept    kept
	// given are the sockets that the sandbox was started with, by their inodes: of a host's service, say, whose connection is
	// the program's standard input. They are none of its own.
	given map[uint64]bool
}

// Serve starts the service. It ends when the last process under the filter is gone, or by Stop; whatever ends it, the
// listener is closed, and the kernel then refuses what comes.
func Serve(c Config) (*Broker, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err == nil && (c.Mode == Walled) != (c.Door != nil) {
		unix.Close(wake)
		err = errors.New("a door is for a walled sandbox, which has no other way out")
	}
	if err != nil {
		unix.Close(c.Listener)
		if c.Door != nil {
			c.Door.Close()
		}
		return nil, fmt.Errorf("broker: %w", err)
	}
	b := &Broker{config: c, wake: wake, own: c.OwnExec, done: make(chan struct{}), threads: threads{}, said: map[string]bool{}}
	if c.Door != nil {
		b.walled = newWalled(b, c.Door)
	}
	_ = seccomp.WakeHere(c.Listener) // where it cannot be had, answers take longer
	if c.Program != 0 {
		b.given = socketsOf(c.Program)
	}
	go b.serve()
	return b, nil
}

// Done is closed when the service has ended.
func (b *Broker) Done() <-chan struct{} { return b.done }

// Stop ends the service and waits for that. Calls that wait and calls to come are refused by the kernel.
func (b *Broker) Stop() {
	b.once.Do(func() { unix.Write(b.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) })
	<-b.done
}

// serve has a thread of its own, which ends with it: an answer takes half the time of one by way of the runtime's
// poller, and no signal may come between what is done for a caller and its answer.
func (b *Broker) serve() {
	runtime.LockOSThread()
	defer close(b.done)
	defer b.close()
	defer func() { // closed is refused: nothing is widened by a fault here
		if v := recover(); v != nil {
			b.note("the broker failed, and network calls are refused from here on: %v", v)
		}
	}()
	if err := maskSignals(); err != nil {
		b.note("the broker could not start: %v", err)
		return
	}
	for b.turn() {
	}
}

// turn waits for something to do and does it. It reports whether there is more to come.
func (b *Broker) turn() bool {
	// A negative descriptor is passed over.
	fds := [...]unix.PollFd{
		{Fd: int32(b.config.Listener), Events: unix.POLLIN},
		{Fd: int32(b.wake), Events: unix.POLLIN},
		{Fd: int32(b.waiting.poll()), Events: unix.POLLIN},
	}
	_, err := unix.Poll(fds[:], b.kept.patience(b.walled.patience(b.waiting.patience())))
	switch {
	case err == unix.EINTR:
		return true
	case err != nil, fds[1].Revents != 0, fds[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0:
		return false
	}
	if fds[2].Revents != 0 {
		b.look()
	}
	b.tick()
	b.sweep()
	if fds[0].Revents&unix.POLLIN != 0 {
		n, err := seccomp.Receive(b.config.Listener)
		if err == nil { // else given up by its caller
			b.guarded(n, func() outcome { return b.take(n) })
		}
	}
	b.kept.settle()
	b.walled.restock()
	return true
}

// outcome is how a call went: done with a value or an error, or not done yet.
type outcome struct {
	value int64
	errno unix.Errno
	// later: the answer has been given, or somebody else has the call by now.
	later bool
	// connected: the caller is told that socket is.
	connected bool
	// spent: socket is to be closed, once the caller has its answer and goes on meanwhile.
	spent  bool
	socket int // a descriptor of ours
}

func failed(e unix.Errno) outcome { return outcome{errno: e} }

var elsewhere = outcome{later: true}

// guarded answers a call with what do makes of it. A fault of ours refuses that call and no other.
func (b *Broker) guarded(n seccomp.Notification, do func() outcome) {
	o := failed(unix.EACCES)
	func() {
		defer func() {
			if v := recover(); v != nil {
				b.note("the broker failed on a call, which is refused: %v", v)
			}
		}()
		o = do()
	}()
	b.answer(n, o)
}

// answer tells a caller how its call went, where that is known.
func (b *Broker) answer(n seccomp.Notification, o outcome) {
	if o.later {
		return
	}
	if seccomp.Answer(b.config.Listener, n.ID, o.value, o.errno) != nil && o.connected {
		b.lost.keep(cookieOf(o.socket))
	}
	if o.spent {
		unix.Close(o.socket)
	}
}

// take begins one call.
func (b *Broker) take(n seccomp.Notification) outcome {
	switch n.NR {
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT:
		return b.exec(n)
	case unix.SYS_SOCKET:
		if int32(n.Args[0]) == unix.AF_UNIX && int32(n.Args[1])&socketType == unix.SOCK_DGRAM {
			return b.noDatagrams(n)
		}
		return b.socket(n)
	case unix.SYS_SOCKETPAIR:
		return b.noDatagrams(n)
	case unix.SYS_CONNECT:
		return b.connect(n)
	case unix.SYS_GETSOCKOPT, unix.SYS_GETPEERNAME:
		return b.asked(n)
	case unix.SYS_BIND:
		return b.bind(n)
	case unix.SYS_LISTEN:
		return b.listen(n)
	case unix.SYS_SENDTO:
		return b.sendto(n)
	case unix.SYS_SENDMSG:
		return b.sendmsg(n)
	case unix.SYS_SENDMMSG:
		return b.sendmmsg(n)
	case unix.SYS_RECVFROM, unix.SYS_RECVMSG:
		return b.receive(n)
	}
	if _, ok := scheduled[n.NR]; ok {
		return b.itself(n)
	}
	if metadata.Knows(n.NR) {
		b.change(n)
		return elsewhere
	}
	return failed(unix.EACCES)
}

func (b *Broker) close() {
	b.closeFiles()
	unix.Close(b.config.Listener) // first: what waits is refused from here on
	b.waiting.close()
	if b.walled != nil {
		b.walled.close()
	}
	b.threads.close()
	b.kept.close()
	b.place.close()
	unix.Close(b.wake)
}

func (b *Broker) denied(d Denial) {
	if b.config.Denied != nil {
		b.config.Denied(d)
	}
}

func (b *Broker) note(format string, args ...any) {
	if b.config.Note != nil {
		b.config.Note(fmt.Sprintf(format, args...))
	}
}

// noteOnce is note for what would come with each call.
func (b *Broker) noteOnce(key, text string) {
	if !b.said[key] {
		b.said[key] = true
		b.note("%s", text)
	}
}

// maskSignals keeps from the calling thread every signal but those of its own faults: the runtime turns them into panics.
func maskSignals() error {
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	for _, fault := range []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP} {
		all.Val[0] &^= 1 << (uint(fault) - 1)
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil); err != nil {
		return errors.New("mask signals: " + err.Error())
	}
	return nil
}
