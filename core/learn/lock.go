package learn

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// fileLock lets one run at a time write a profile. It is an flock on a file beside the profile, which the holder
// removes before it lets go; whoever then gets the lock of a removed file notices and takes the new one.
type fileLock struct {
	f    *os.File
	path string
}

const (
	lockWait   = 10 * time.Second
	lockStep   = 20 * time.Millisecond
	lockSuffix = ".lock"
)

func acquire(target string, wait time.Duration) (*fileLock, error) {
	if wait == 0 {
		wait = lockWait
	}
	path := target + lockSuffix
	for deadline := time.Now().Add(wait); ; time.Sleep(lockStep) {
		l, err := try(path)
		if l != nil || err != nil {
			return l, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("learning into %s: another run has been writing it for %s; end it, or learn into another file", target, wait)
		}
	}
}

// try returns neither lock nor error where another run holds it.
func try(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("learning into %s: its folder takes no new files: %w\nName a file in a folder that can be written: --learn=FILE", strings.TrimSuffix(path, lockSuffix), err)
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EINTR):
		f.Close()
		return nil, nil
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("locking the profile by %s: %w", path, err)
	}
	mine, err := f.Stat()
	now, nowErr := os.Lstat(path)
	if err != nil || nowErr != nil || !os.SameFile(mine, now) {
		f.Close() // removed by the run before
		return nil, nil
	}
	return &fileLock{f: f, path: path}, nil
}

func (l *fileLock) release() {
	os.Remove(l.path)
	l.f.Close()
}
