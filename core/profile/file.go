package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"
)

// What a person writes by hand, or learning by machine, stays far below these.
const (
	maxFile = 4 << 20
	maxLine = 64 << 10
)

var errTooLarge = errors.New("larger than 4 MiB, which no profile is")

// read returns the bytes of a regular file. Anything else is refused without waiting: opening a FIFO does not block,
// a device is not read, and a file of /proc that has nothing to give yet is an error. The system calls are plain ones:
// package os would wait for such a file.
func read(path string) ([]byte, error) {
	data, err := readAll(path)
	if err != nil {
		return nil, fmt.Errorf("the profile cannot be read: %w", err)
	}
	return data, nil
}

func readAll(path string) ([]byte, error) {
	fail := func(op string, err error) ([]byte, error) { return nil, &fs.PathError{Op: op, Path: path, Err: err} }
	fd, err := again(func() (int, error) {
		return syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	})
	if err != nil {
		return fail("open", err)
	}
	defer syscall.Close(fd)
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		return fail("stat", err)
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return fail("read", fmt.Errorf("is %s, not a file: %w", kind(stat.Mode), syscall.EINVAL))
	}
	data := make([]byte, 0, min(max(stat.Size, 0)+1, maxFile+1))
	for len(data) <= maxFile {
		if len(data) == cap(data) {
			data = slices.Grow(data, 64<<10)
		}
		n, err := again(func() (int, error) { return syscall.Read(fd, data[len(data):cap(data)]) })
		if err != nil {
			return fail("read", err)
		}
		if n == 0 {
			return data, nil
		}
		data = data[:len(data)+n]
	}
	return fail("read", errTooLarge)
}

// again makes a system call until no signal has cut it short.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != syscall.EINTR {
			return n, err
		}
	}
}

// kind names a type of file, as st_mode tells it.
func kind(mode uint32) string {
	switch mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		return "a folder"
	case syscall.S_IFIFO:
		return "a FIFO"
	case syscall.S_IFSOCK:
		return "a socket"
	case syscall.S_IFCHR, syscall.S_IFBLK:
		return "a device"
	}
	return "something else"
}

// split checks the encoding and returns the lines without their ends. UTF-8, with or without a byte order mark; lines
// end with LF or CR LF.
func split(path string, data []byte, skip []Position) ([]string, *SyntaxError) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
		err := checkLine(Position{File: path, Line: i + 1}, lines[i])
		if err != nil && !slices.ContainsFunc(skip, func(at Position) bool { return at.File == path && at.Line == i+1 }) {
			return nil, err
		}
	}
	return lines, nil
}

// checkLine refuses what a reader of the line could not see as it is.
func checkLine(pos Position, line string) *SyntaxError {
	if len(line) > maxLine {
		pos.Col = 1
		return &SyntaxError{Pos: pos, Message: "the line is longer than 64 KiB", Hint: "Divide the list into several lines of the same key."}
	}
	col := 0
	for i, r := range line {
		col++
		pos.Col = col
		at := func(message, hint string) *SyntaxError {
			return &SyntaxError{Pos: pos, Line: line, Width: 1, Message: message, Hint: hint}
		}
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(line[i:], "\uFFFD"):
			if pos.Line == 1 && col == 1 && (strings.HasPrefix(line, "\xff\xfe") || strings.HasPrefix(line, "\xfe\xff")) {
				return at("the file is UTF-16", "Save it as UTF-8.")
			}
			return at("the line is not valid UTF-8", `Save the file as UTF-8; a byte that is part of a name is written as \xNN in double quotes.`)
		case r == 0:
			return at("the line holds a NUL byte", "Save the file as plain UTF-8 text.")
		case r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0:
			return at(fmt.Sprintf("the line holds the control character U+%04X", r), `Write it as \xNN in double quotes if it belongs to a name, else delete it.`)
		case hidden(r):
			return at(fmt.Sprintf("the line holds the invisible character U+%04X", r), `Delete it: a rule must read as it acts. If it belongs to a name, write its bytes as \xNN in double quotes.`)
		}
	}
	return nil
}
