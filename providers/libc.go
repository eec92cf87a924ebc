package providers

import (
	"debug/elf"
	"io"
	"strings"
)

// usesGlibc tells that a program is loaded by the GNU C library's loader, which looks names up by recvfrom; so do c-ares and
// what is written in Go or Rust. musl takes answers by recvmsg. A program that cannot be read is taken for one of musl's.
func usesGlibc(c Child) bool {
	path := c.Path
	if path == "" && len(c.Argv) > 0 {
		path = c.Argv[0]
	}
	return strings.HasPrefix(loaderOf(path), "ld-linux")
}

// loaderOf is the file name of a program's loader (PT_INTERP), "" where it has none.
func loaderOf(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz > 4096 {
			continue
		}
		raw, err := io.ReadAll(p.Open())
		if err != nil {
			return ""
		}
		name := strings.TrimRight(string(raw), "\x00")
		return name[strings.LastIndexByte(name, '/')+1:]
	}
	return ""
}
