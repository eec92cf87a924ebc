package broker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/metadata"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// confined is a thread that is for files what the sandbox is: under its Landlock rules, with its capabilities, with a working directory and a mask
// of its own. There the kernel judges a path as it judges the sandbox's, also when it changes meanwhile.
type confined struct {
	calls chan func()
	// shared: a container's filter lets the thread have no folder and mask of its own, so that it has the supervisor's.
	shared bool
}

// newConfined makes it. The thread ends with its goroutine; the runtime never makes another from it.
func newConfined(confine func() error, caps []int) (*confined, error) {
	c := &confined{calls: make(chan func())}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer func() {
			if v := recover(); v != nil {
				ready <- fmt.Errorf("%v", v)
			}
		}()
		err := maskSignals()
		if err == nil {
			err = unix.Unshare(unix.CLONE_FS)
		}
		if err == unix.EPERM || err == unix.ENOSYS {
			c.shared, err = true, nil
		}
		if err == nil && !metadata.Lessen(caps) {
			err = errors.New("capabilities cannot be dropped")
		}
		if err == nil {
			err = confine()
		}
		ready <- err
		if err == nil {
			for call := range c.calls {
				call()
			}
		}
	}()
	return c, <-ready
}

func (c *confined) close() {
	if c != nil {
		close(c.calls)
	}
}

// bindUnix makes a socket's file, as the caller would: in its working directory, by its mask, under its rules of files, and
// by the very name that it gave, which getsockname tells others.
func (b *Broker) bindUnix(n seccomp.Notification, fd int, raw []byte) outcome {
	if len(raw) < familyLength {
		return failed(unix.EINVAL)
	}
	if len(raw) == familyLength || raw[familyLength] == 0 { // a name, not a path: it makes nothing, and leads nowhere
		return failed(bindTo(fd, raw))
	}
	proc := fmt.Sprintf("/proc/%d", n.Thread)
	mask := statusOf(n.Thread).umask
	cwd, err := unix.Open(proc+"/cwd", unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY, 0)
	if err != nil {
		return failed(unix.EACCES)
	}
	defer unix.Close(cwd)
	theirs, err1 := os.Readlink(proc + "/ns/mnt")
	ours, err2 := os.Readlink("/proc/self/ns/mnt")
	switch {
	case err1 != nil || err2 != nil || mask < 0 || b.config.Confine == nil:
		return failed(unix.EACCES)
	case !b.standing(n):
		return elsewhere
	}
	if theirs != ours {
		// From its folder as the caller sees it: by the whole path it would be made where this process sees that. getsockname
		// tells the last part of the name.
		folder, base := path.Split(nameIn(raw))
		if folder != "" {
			fd, _, e := openIn(n.Thread, []byte(folder), unix.O_DIRECTORY)
			if e != 0 {
				return failed(e)
			}
			defer unix.Close(fd)
			cwd = fd
		}
		if base == "" {
			return failed(unix.ENOENT)
		}
		raw = unixAddress(base)
	}
	if b.place == nil {
		place, err := newConfined(b.config.Confine, b.config.Caps)
		if err != nil {
			b.noteOnce("confine", "unix sockets cannot be made by name: "+err.Error())
			return failed(unix.EACCES)
		}
		b.place = place
	}
	if b.place.shared && (raw[familyLength] != '/' || mask != statusOf(uint32(os.Getpid())).umask) {
		b.noteOnce("bind", "unix sockets are made by their whole paths only, and with the mask of the supervisor: a container's filter is in the way of the rest")
		return failed(unix.EACCES)
	}
	e := unix.EACCES
	done := make(chan struct{})
	b.place.calls <- func() {
		defer close(done)
		defer func() { _ = recover() }()
		if b.place.shared {
			e = bindTo(fd, raw)
			return
		}
		if unix.Fchdir(cwd) == nil {
			unix.Umask(mask)
			e = bindTo(fd, raw)
		}
	}
	<-done
	return failed(e)
}

// nameIn is the path in an address of the unix family that has one.
func nameIn(raw []byte) string {
	name, _, _ := bytes.Cut(raw[familyLength:], []byte{0})
	return string(name)
}
