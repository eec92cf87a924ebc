//go:build linux && (amd64 || arm64)

package initproc

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// prove tries, on the thread that will exec, things that must now fail, each with the error that only the boundary
// gives. A boundary that was applied in part, or to another thread, shows here.
func prove(b *plan.Boundary) error {
	for _, t := range trials(b) {
		if err := t.try(); err != t.want {
			return fmt.Errorf("the boundary does not hold: %s gave %v, not %v. Nothing was run. Another security module or an older filter may be interfering; os-sandbox=subprocess runs without a kernel boundary", t.what, describe(err), t.want)
		}
	}
	return nil
}

func describe(err error) string {
	if err == nil {
		return "success"
	}
	return err.Error()
}

type trial struct {
	what string
	try  func() error
	want unix.Errno
}

func trials(b *plan.Boundary) []trial {
	t := []trial{
		{"making a user namespace", func() error { return unix.Unshare(unix.CLONE_NEWUSER) }, unix.EPERM},
		{"a socket of a family outside the list", func() error { return open(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)) }, unix.EACCES},
		{"io_uring", func() error {
			_, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 0, 0, 0)
			return e
		}, unix.ENOSYS},
	}
	if !b.Filter.Inet {
		t = append(t, trial{"an internet socket without a network rule", func() error {
			return open(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))
		}, unix.EACCES})
	}
	if b.Network != nil {
		t = append(t, trial{"finding the network of the host", func() error { return sameNetwork(b.Network) }, unix.ENOENT})
	}
	if b.Mounts != nil {
		t = append(t, mountTrials(b.Mounts)...)
	}
	if b.Outside != "" {
		flags := unix.O_RDONLY
		what := "opening " + b.Outside
		if b.OutsideWrite {
			flags, what = unix.O_WRONLY, what+" for writing"
		}
		t = append(t, trial{what, func() error { return open(unix.Open(b.Outside, flags|unix.O_CLOEXEC, 0)) }, unix.EACCES})
	}
	return t
}

// mountTrials asks what the paths of the plan show now; each is answered by the error of what should be refused there.
func mountTrials(m *plan.Mounts) []trial {
	var t []trial
	for _, path := range m.ReadOnly {
		t = append(t, trial{"writing " + path, func() error {
			var fs unix.Statfs_t
			if err := unix.Statfs(path, &fs); err != nil || fs.Flags&unix.ST_RDONLY == 0 {
				return err
			}
			return unix.EROFS
		}, unix.EROFS})
	}
	for _, path := range m.Hidden {
		t = append(t, trial{"looking behind what hides " + path, func() error {
			var st unix.Stat_t
			var fs unix.Statfs_t
			if err := unix.Lstat(path, &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK {
				return unix.EACCES // it went away, or is a link, which hides nothing
			}
			if err := unix.Statfs(path, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || st.Mode&0o7777 != 0 {
				return err
			}
			return unix.EACCES
		}, unix.EACCES})
	}
	for _, p := range m.Private {
		t = append(t, trial{"finding the host's " + p.Path, func() error {
			f, err := os.Open(p.Path) // Landlock may keep it shut; then nothing is found there either
			if err != nil {
				return unix.ENOENT
			}
			defer f.Close()
			if names, err := f.Readdirnames(1); err == nil && len(names) > 0 {
				return nil
			}
			return unix.ENOENT
		}, unix.ENOENT})
	}
	return t
}

// open closes what should not have been opened.
func open(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// sameNetwork gives ENOENT where this thread's network namespace is another than the supervisor's: by the kernel's number of
// it, where it gives none by the file that stands for it.
func sameNetwork(host *plan.Network) error {
	if host.Cookie == 0 {
		return otherNumber(plan.NetworkFile(), host.File)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return err
	}
	return otherNumber(cookie, host.Cookie)
}

// otherNumber gives ENOENT where two namespaces are known and differ.
func otherNumber(own, host uint64) error {
	switch {
	case own == 0 || host == 0:
		return unix.ENODATA
	case own == host:
		return nil
	}
	return unix.ENOENT
}
