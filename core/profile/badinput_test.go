package profile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each kind of bad input: a clear error with its place, nothing of the profile loaded, no hang.
func TestBadInput(t *testing.T) {
	utf16 := "\xff\xfee\x00n\x00v\x00"
	for name, c := range map[string]struct {
		text string
		says string
		at   string // line and column
	}{
		"UTF-16":                         {utf16, "the file is UTF-16", ":1:1"},
		"UTF-16, big end first":          {"\xfe\xff\x00e", "the file is UTF-16", ":1:1"},
		"Latin-1":                        {"env=A=1\nexpose-ro=/caf\xe9", "not valid UTF-8", ":2:15"},
		"NUL":                            {"env=A=1\nenv=B=\x002", "NUL byte", ":2:7"},
		"a byte order mark in the text":  {"env=A=1\n\ufeffenv=B=2", "invisible character", ":2:1"},
		"a lone CR":                      {"env=A=1\renv=B=2", "control character U+000D", ":1:8"},
		"an unclosed double quote":       {"expose-ro=\"/a\nexpose-ro=/b", "the quote is not closed", ":1:11"},
		"an unclosed single quote":       {"expose-ro='/a, \"/b\"", "the quote is not closed", ":1:11"},
		"an unclosed ${":                 {"env=A=${B:-${C}", "is not closed", ":1:7"},
		"a line of 1 MB":                 {"env=A=1\nenv=B=" + strings.Repeat("x", 1<<20), "longer than 64 KiB", ":2:1"},
		"a comment of 1 MB":              {"#" + strings.Repeat("x", 1<<20), "longer than 64 KiB", ":1:1"},
		"defaults nested without end":    {"env=A=" + strings.Repeat("${B:-", 10_000) + strings.Repeat("}", 10_000), "nested too deep", ":1:"},
		"a default that needs itself":    {"expose-ro=${NO:-${NO}}", "the variable NO is not set", ":1:17"},
		"a scalar with two values":       {"os-sandbox=auto\nenv=A=1\nos-sandbox=none", "os-sandbox is set twice, first at", ":3:1"},
		"a lock and a file to learn":     {"learn=false\nlearn=x", "learn is set twice", ":2:1"},
		"a word without a value":         {"env", "this is not a rule", ":1:1"},
		"binary":                         {"\x7fELF\x02\x01\x01\x00", "control character U+007F", ":1:1"},
		"an escape for a terminal":       {"env=A=\x1b]0;owned\x07", "control character U+001B", ":1:7"},
		"an include of the folder above": {`include ".."`, "is a folder", ":1"},
		"an include of itself":           {`include "./sub/../.py-sandboxes"`, "circle", ":1"},
	} {
		p, err := loadText(t, c.text)
		assert.Nil(t, p, name)
		require.Error(t, err, name)
		assert.ErrorContains(t, err, c.says, name)
		assert.ErrorContains(t, err, Name+c.at, name)
		assert.Less(t, len(err.Error()), 2000, "%s: an error is for people", name)
		assert.NotContains(t, err.Error(), "\x1b", name)
	}
	p, err := loadText(t, "\ufeffenv=A=1\r\nenv=B=2\r\n")
	require.NoError(t, err, "a byte order mark at the start and CR LF are what some editors write")
	assert.Len(t, p.Rules, 2)
}

// Files that are no files, and files that cannot be read. TestBadFiles has those that an include meets too.
func TestBadPlaces(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, syscall.Mkfifo(at("fifo"), 0o600))
	require.NoError(t, os.Symlink("two", at("one")))
	require.NoError(t, os.Symlink("one", at("two")))
	require.NoError(t, os.WriteFile(at("file"), nil, 0o600))
	require.NoError(t, os.WriteFile(at("unreadable"), []byte("env=A=1"), 0))
	require.NoError(t, os.Symlink("/proc/kmsg", at("log"))) // a regular file by its type, which gives nothing until the kernel speaks
	for name, says := range map[string]string{"log": "", ".": "is a folder", "fifo": "is a FIFO", "one": "too many levels", "file/x": "not a directory", "unreadable": "permission denied"} {
		if name == "unreadable" && os.Geteuid() == 0 {
			continue // root reads it
		}
		done := make(chan error, 1)
		go func() { _, err := Load(Options{Path: at(name), Cwd: dir}); done <- err }()
		select {
		case err := <-done:
			if name == "log" && err == nil {
				continue // it had something to say, all of it comments
			}
			assert.ErrorContains(t, err, dir, name)
			if name != "log" {
				assert.ErrorContains(t, err, says, name)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("loading", name, "hangs")
		}
	}
}

// What a variable of the host holds is text: it opens no quote, no further ${} and no comment.
func TestVariablesAreNotReadAgain(t *testing.T) {
	p, err := Load(Options{Overrides: []Override{{"expose-ro", "/x${V}", OriginCode}}, Env: map[string]string{"V": `"${HOME}", # $(id)`}})
	require.NoError(t, err)
	assert.Equal(t, []string{`/x"${HOME}", # $(id)`}, p.Rules[0].Items)
}
