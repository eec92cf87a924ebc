//go:build linux && (amd64 || arm64)

package asker

import "golang.org/x/sys/unix"

// Program is the file that an exec would run, given the folder it starts from, the address of the path and the flags of execveat;
// "" where it is none that could be run: a search along PATH tries many names.
func (t Thread) Program(dir int, address, flags uint64) string {
	path, e := t.Text(address, unix.PathMax-1)
	if e != 0 || path == "" || flags&unix.AT_EMPTY_PATH != 0 {
		return ""
	}
	fd, e := t.Resolve(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if e != 0 {
		return ""
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0 {
		return ""
	}
	return Named(fd)
}
