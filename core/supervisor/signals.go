package supervisor

import (
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers"
)

// treatment is what the supervisor does with a signal that it gets itself.
type treatment int

const (
	// shared: the terminal sends it to the whole process group, the child included, so that the supervisor has nothing to
	// do; sent to the supervisor alone (it is not in the terminal's foreground then) it is forwarded.
	shared treatment = iota
	// forwarded: whoever sends it means the program.
	forwarded
)

// treatments lists the signals that matter; the others keep what they do by default.
var treatments = map[syscall.Signal]treatment{
	syscall.SIGINT:    shared,
	syscall.SIGQUIT:   shared,
	syscall.SIGTSTP:   shared,
	syscall.SIGTTIN:   shared,
	syscall.SIGTTOU:   shared,
	syscall.SIGWINCH:  shared,
	syscall.SIGCONT:   shared,
	syscall.SIGHUP:    forwarded,
	syscall.SIGTERM:   forwarded,
	syscall.SIGUSR1:   forwarded,
	syscall.SIGUSR2:   forwarded,
	syscall.SIGALRM:   forwarded,
	syscall.SIGVTALRM: forwarded,
	syscall.SIGPWR:    forwarded,
	syscall.SIGIO:     forwarded,
	syscall.SIGXCPU:   forwarded,
}

// catch takes over the signals before the child starts. What the parent had us ignore (nohup, a background job) stays
// ignored, in the child too; what is caught is back at its default there, since exec resets it.
func catch() <-chan os.Signal {
	var all []os.Signal
	for sig := range treatments {
		if !signal.Ignored(sig) {
			all = append(all, sig)
		}
	}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, append(all, syscall.SIGCHLD)...)
	return signals
}

// child is what the supervisor shares the terminal with.
type child interface {
	Pid() int
	Signal(syscall.Signal) error
	Done() <-chan struct{}
}

// accompany passes signals on until the child has ended, and stops with it when it is stopped. at each tick it does tell.
func accompany(c child, signals <-chan os.Signal, adopted *providers.Adopted, tick <-chan time.Time, tell func()) {
	for {
		select {
		case <-tick:
			tell()
		case <-c.Done():
			return
		case s := <-signals:
			sig, ok := s.(syscall.Signal)
			switch {
			case !ok:
			case sig == syscall.SIGCHLD:
				if stopped(c.Pid()) {
					// The shell sees the job stop, as it would see python stop. We go on here after its SIGCONT, which
					// the shell sends to the whole group; sent to us alone it is passed on below.
					_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
				}
				adopted.Reap(c.Pid())
			case treatments[sig] == forwarded || !foreground():
				_ = c.Signal(sig)
			}
		}
	}
}

// stopped reports whether the child has just been stopped. Its end is somebody else's to collect.
func stopped(pid int) bool {
	var info [128]byte // siginfo_t; si_signo comes first, 0 where nothing happened
	_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_PID, uintptr(pid), uintptr(unsafe.Pointer(&info)), unix.WSTOPPED|unix.WNOHANG, 0, 0)
	return errno == 0 && *(*int32)(unsafe.Pointer(&info)) != 0
}

// foreground reports whether this process group is the one that the controlling terminal sends its signals to.
func foreground() bool {
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer unix.Close(tty)
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// dieBy ends this process by a signal, as the child ended, without a core file of our own. It returns where the signal does
// not end a process.
func dieBy(sig syscall.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	signal.Reset(sig)
	// The runtime keeps handlers of its own for faults, which signal.Reset leaves in place. All zero is SIG_DFL.
	var def [4]uint64
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&def)), 0, 8, 0, 0)
	_ = unix.Kill(unix.Getpid(), sig)
	// It may be delivered to another thread a moment later; a second one is not lost on this one.
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), sig)
}
