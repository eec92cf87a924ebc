package policy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// place is a canonical path and what stands there.
type place struct {
	path   string
	exists bool
	file   bool // exists and is not a folder
}

const maxLinks = 40 // as the kernel

// canonical resolves the links of an absolute path. What does not exist keeps its name under the canonical path of
// what does: a rule for it holds once it is made. A folder that may not be searched is taken as written.
func canonical(path string) (place, error) {
	path = filepath.Clean(path)
	if own, ok := ownProcess(path); ok {
		return place{path: own, exists: true}, nil
	}
	for range maxLinks {
		real, err := filepath.EvalSymlinks(path)
		switch {
		case err == nil:
			info, err := os.Stat(real)
			return place{real, true, err == nil && !info.IsDir()}, nil
		case errors.Is(err, syscall.ELOOP) || strings.Contains(err.Error(), "too many links"):
			return place{}, &fs.PathError{Op: "resolve", Path: path, Err: syscall.ELOOP}
		case !errors.Is(err, fs.ErrNotExist):
			return place{path: path}, nil
		}
		next, dangling := follow(path)
		if !dangling {
			parent, err := canonical(filepath.Dir(path))
			return place{path: filepath.Join(parent.path, filepath.Base(path))}, err
		}
		path = next
	}
	return place{}, &fs.PathError{Op: "resolve", Path: path, Err: syscall.ELOOP}
}

// canonical is the function of that name for the rules of one profile: many lie in the same folder, which is resolved
// once. Whatever is no plain entry of a plain folder goes the long way.
func (c *compiler) canonical(path string) (place, error) {
	path = filepath.Clean(path)
	if _, own := ownProcess(path); own || path == "/" {
		return canonical(path)
	}
	dir, err := c.folder(filepath.Dir(path))
	if err != nil || dir.file {
		return canonical(path)
	}
	real := filepath.Join(dir.path, filepath.Base(path))
	if !dir.exists {
		return place{path: real}, nil
	}
	switch info, err := os.Lstat(real); {
	case err == nil && info.Mode()&fs.ModeSymlink == 0:
		return place{real, true, !info.IsDir()}, nil
	case errors.Is(err, fs.ErrNotExist):
		return place{path: real}, nil
	}
	return canonical(path)
}

// folder resolves a folder once. One that may not be searched is left to the long way.
func (c *compiler) folder(dir string) (place, error) {
	at, seen := c.folders[dir]
	if seen {
		return at, nil
	}
	at, err := canonical(dir)
	if err == nil && !at.exists {
		if _, err = os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return place{}, err
	}
	if c.folders == nil {
		c.folders = map[string]place{}
	}
	c.folders[dir] = at
	return at, nil
}

// follow returns what a dangling link points to.
func follow(path string) (string, bool) {
	target, err := os.Readlink(path)
	if err != nil {
		return "", false
	}
	if !filepath.IsAbs(target) {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", false
		}
		target = filepath.Join(dir, target)
	}
	return filepath.Clean(target), true
}

// linksTo lists where the links stand that the way to a path goes over, canonical. What is not there ends the way.
func linksTo(path string) []string {
	var out []string
	at, rest := "/", strings.Split(filepath.Clean(path), "/")
	for len(rest) > 0 && len(out) <= maxLinks {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		out = append(out, next)
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return out
}

// ownProcess recognises the paths that mean the asking process: resolved here they would name the supervisor. They stay
// under /proc/self, which is how the guard asks for them.
func ownProcess(path string) (string, bool) {
	for _, own := range []struct{ prefix, as string }{
		{"/proc/self", "/proc/self"}, {"/proc/thread-self", "/proc/thread-self"}, {"/dev/fd", "/proc/self/fd"},
		{"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"},
	} {
		if path == own.prefix || strings.HasPrefix(path, own.prefix+"/") {
			return own.as + path[len(own.prefix):], true
		}
	}
	return "", false
}

// OfAsker tells a path that means another file for each process that asks: /proc/self and its like.
func OfAsker(path string) bool {
	_, own := ownProcess(filepath.Clean(path))
	return own
}

// numbered splits the path of a process's folder by its number; rest is "" or begins with a slash.
func numbered(path string) (rest string, ok bool) {
	after, found := strings.CutPrefix(path, "/proc/")
	if !found {
		return "", false
	}
	number := len(after) - len(strings.TrimLeft(after, "0123456789"))
	rest = after[number:]
	return rest, number > 0 && (rest == "" || rest[0] == '/') && after[:number] != "1"
}

// clean tells a canonical absolute path by its text: no empty, `.` or `..` part, no slash at the end, no NUL.
func clean(path string) bool {
	if path == "/" {
		return true
	}
	if path == "" || path[0] != '/' || path[len(path)-1] == '/' {
		return false
	}
	for i := 0; i < len(path); i++ {
		switch {
		case path[i] == 0:
			return false
		case path[i] != '/':
			continue
		}
		rest := path[i+1:]
		if rest[0] == '/' || part(rest, ".") || part(rest, "..") {
			return false
		}
	}
	return true
}

// part tells that a path begins with exactly this part.
func part(path, name string) bool {
	return len(path) >= len(name) && path[:len(name)] == name && (len(path) == len(name) || path[len(name)] == '/')
}

// beneath tells that path is dir or lies in it.
func beneath(path, dir string) bool {
	if dir == "/" {
		return true
	}
	return len(path) >= len(dir) && path[:len(dir)] == dir && (len(path) == len(dir) || path[len(dir)] == '/')
}

// parent returns the folder of a canonical path, "" above the root.
func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	switch {
	case path == "/":
		return ""
	case i <= 0:
		return "/"
	}
	return path[:i]
}
