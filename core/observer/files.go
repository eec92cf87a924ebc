//go:build linux && (amd64 || arm64)

package observer

import (
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/asker"
	"github.com/pysandboxes/pysandboxes/core/learn"
)

func file(op, path string, write bool) []learn.Observation {
	if !filepath.IsAbs(path) {
		return nil
	}
	return []learn.Observation{{Family: learn.FamilyFile, Op: op, Event: op, Subject: path, Write: write}}
}

// text copies the path that a call names, with the folder it starts from.
func (c *call) text(n name) (dir int, path string, err error) {
	dir = unix.AT_FDCWD
	if n.dir != none {
		dir = int(int32(c.args[n.dir]))
	}
	path, e := c.thread.Text(c.args[n.path], unix.PathMax-1)
	switch {
	case e != 0:
		return dir, "", e
	case path == "":
		return dir, "", unix.ENOENT
	}
	return dir, path, nil
}

// open reports what a file is opened for. One that is not there and would not be made needs no rule.
func (c *call) open(n name, flags uint64) ([]learn.Observation, error) {
	if flags&unix.O_PATH != 0 {
		return nil, nil
	}
	dir, path, err := c.text(n)
	if err != nil {
		return nil, err
	}
	write := flags&unix.O_ACCMODE != unix.O_RDONLY || flags&(unix.O_CREAT|unix.O_TRUNC) != 0
	if own, ok := c.ownProcess(path); ok {
		if own == "/proc/self/fd" {
			return nil, nil // to close what is open before a program starts; without it each number is tried
		}
		return file("open", own, write), nil
	}
	if _, ok := asker.OwnDescriptor(path); ok {
		return nil, nil // opened again, or lent
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	if flags&unix.O_NOFOLLOW != 0 {
		how.Flags |= unix.O_NOFOLLOW
	}
	fd, e := c.thread.Resolve(dir, path, &how)
	if e == unix.ENOENT && flags&unix.O_CREAT != 0 {
		return c.made("open", dir, path)
	}
	if e != 0 {
		return nil, e
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || write && flags&unix.O_CREAT != 0 && flags&unix.O_EXCL != 0 {
		return nil, nil
	}
	real := asker.Named(fd)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if flags&tmpFile == tmpFile {
			return file("open", real, true), nil
		}
		return file("scandir", real, false), nil
	case unix.S_IFLNK: // O_NOFOLLOW: the call fails
		return nil, nil
	}
	if !readable(fd, write) {
		return nil, nil
	}
	return file("open", real, write), nil
}

// tmpFile is O_TMPFILE, a flag of its own and O_DIRECTORY.
const tmpFile = unix.O_TMPFILE

// readable tells that the user may open the file at all: an attempt that fails without a sandbox needs no rule.
func readable(fd int, write bool) bool {
	mode := uint32(unix.R_OK)
	if write {
		mode = unix.W_OK
	}
	return unix.Faccessat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), mode, unix.AT_EACCESS) == nil
}

// made reports a name that the call makes in a folder which is there.
func (c *call) made(op string, dir int, path string) ([]learn.Observation, error) {
	path = strings.TrimRight(path, "/")
	folder, base := filepath.Split(path)
	if base == "" || base == "." || base == ".." {
		return nil, nil
	}
	if folder == "" {
		folder = "."
	}
	fd, e := c.thread.Resolve(dir, folder, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_DIRECTORY})
	if e != 0 {
		return nil, e
	}
	defer unix.Close(fd)
	real := asker.Named(fd)
	if real == "" {
		return nil, nil
	}
	return file(op, filepath.Join(real, base), true), nil
}

// change reports names that a call makes, removes, or alters what they lead to.
func (c *call) change(f fileCall) ([]learn.Observation, error) {
	var seen []learn.Observation
	for i, n := range f.names {
		dir, path, err := c.text(n)
		if err != nil {
			return nil, err
		}
		last := i == len(f.names)-1
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
		if f.kind != altered {
			how.Flags |= unix.O_NOFOLLOW
		}
		fd, e := c.thread.Resolve(dir, path, &how)
		there := e == 0
		real := ""
		if there {
			real = asker.Named(fd)
			unix.Close(fd)
		}
		switch {
		case f.kind == made && last && there, // EEXIST
			f.kind == made && !last && !there,
			f.kind == removed && i == 0 && !there,
			f.kind == altered && !there:
			return nil, nil
		case f.kind == altered:
			seen = append(seen, file(f.op, real, true)...)
		default:
			one, err := c.made(f.op, dir, path)
			if err != nil {
				return nil, err
			}
			if f.kind == made && !last {
				for i := range one {
					one[i].Write = false // linked to, and left as it is
				}
			}
			seen = append(seen, one...)
		}
	}
	return seen, nil
}

// exec reports a program that is started. One by its descriptor was opened before.
func (c *call) exec() ([]learn.Observation, error) {
	dir, address, flags := unix.AT_FDCWD, c.args[0], uint64(0)
	if c.nr == unix.SYS_EXECVEAT {
		dir, address, flags = int(int32(c.args[0])), c.args[1], c.args[4]
	}
	return file("exec", c.thread.Program(dir, address, flags), false), nil
}

// ownProcess gives a path beneath /proc/self for one that means the caller's own process, by whichever name: read here, it
// would name this one, and the number is another one at each start.
func (c *call) ownProcess(path string) (string, bool) {
	if !strings.HasPrefix(path, "/proc/") {
		return "", false
	}
	path = filepath.Clean(path)
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/proc/"), "/")
	switch number, err := strconv.Atoi(first); {
	case first == "self":
	case first == "thread-self":
	case err == nil && (number == int(c.thread) || number == c.thread.Process()):
	default:
		return "", false
	}
	if top, below, _ := strings.Cut(rest, "/"); below != "" && (top == "fd" || top == "root" || top == "cwd") {
		return "", false // they lead elsewhere
	}
	if rest == "" {
		return "/proc/self", true
	}
	return "/proc/self/" + rest, true
}
