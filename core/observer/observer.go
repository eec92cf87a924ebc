//go:build linux && (amd64 || arm64)

package observer

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/asker"
	"github.com/pysandboxes/pysandboxes/core/learn"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// Config is what an observer serves. It owns Listener from [Serve] on, also where that fails.
type Config struct {
	Listener int
	// Saw takes what was seen, while the program goes on. It must not block.
	Saw func(learn.Observation)
	// Note takes what a person should know of the service itself. May be nil.
	Note func(string)
}

// Observer serves one listener, on a thread of its own.
type Observer struct {
	config Config
	wake   int
	done   chan struct{}
	once   sync.Once
	call   sync.Mutex // held from the taking of a call until it was told
	said   bool
	began  bool // the first exec, by which init becomes the interpreter, was seen
}

// Serve starts the service. It ends when the last process under the filter is gone, or by Stop.
func Serve(c Config) (*Observer, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(c.Listener)
		return nil, fmt.Errorf("observer: %w", err)
	}
	o := &Observer{config: c, wake: wake, done: make(chan struct{})}
	go o.serve()
	return o, nil
}

// Settle returns when everything that was let go on before has been told.
func (o *Observer) Settle() {
	o.call.Lock()
	defer o.call.Unlock()
}

// Stop ends the service when it has reported what it took. Calls to come fail with ENOSYS in what is left of the program.
func (o *Observer) Stop() {
	o.once.Do(func() { unix.Write(o.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) })
	<-o.done
}

func (o *Observer) serve() {
	runtime.LockOSThread()
	defer close(o.done)
	defer unix.Close(o.wake)
	defer unix.Close(o.config.Listener)
	for o.turn() {
	}
}

// turn waits for a call and lets it go on. It reports whether there is more to come.
func (o *Observer) turn() bool {
	fds := [...]unix.PollFd{{Fd: int32(o.config.Listener), Events: unix.POLLIN}, {Fd: int32(o.wake), Events: unix.POLLIN}}
	_, err := unix.Poll(fds[:], -1)
	switch {
	case err == unix.EINTR:
		return true
	case err != nil, fds[1].Revents != 0, fds[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0:
		return false
	}
	o.call.Lock()
	defer o.call.Unlock()
	n, err := seccomp.Receive(o.config.Listener)
	if err != nil {
		return true // given up by its caller
	}
	seen := o.look(n)
	if seccomp.Continue(o.config.Listener, n.ID) == nil { // else its caller is gone, and what was read may be another's
		for _, one := range seen {
			one.Native = true
			o.config.Saw(one)
		}
	}
	return true
}

// look makes out what a call is for. A fault here costs that observation alone.
func (o *Observer) look(n seccomp.Notification) (seen []learn.Observation) {
	defer func() {
		if v := recover(); v != nil {
			seen = nil
			o.note(fmt.Sprintf("the observer of native code failed on a call: %v", v))
		}
	}()
	c := call{thread: asker.Thread(n.Thread), nr: n.NR, args: n.Args}
	if !o.began { // init's own, up to the exec by which it becomes the interpreter
		o.began = c.isExec()
		return nil
	}
	seen, err := c.look()
	if err == unix.EACCES && c.unreadable() && seccomp.Valid(o.config.Listener, n.ID) {
		o.note("the kernel does not let the supervisor look into the program, so that what native code does is not seen")
	}
	return seen
}

// note tells of one thing that went wrong; what follows is most likely more of the same.
func (o *Observer) note(text string) {
	if !o.said && o.config.Note != nil {
		o.said = true
		o.config.Note(text)
	}
}
