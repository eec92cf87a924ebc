package providers

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/providers/plan"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// loadedBy is a program of nothing but a loader's name.
func loadedBy(t *testing.T, loader string) string {
	t.Helper()
	const header, entry = 64, 56
	raw := make([]byte, header+entry)
	copy(raw, "\x7fELF\x02\x01\x01")
	e := binary.LittleEndian
	e.PutUint16(raw[16:], uint16(elf.ET_DYN))
	e.PutUint16(raw[18:], uint16(elf.EM_X86_64))
	e.PutUint32(raw[20:], 1)
	e.PutUint64(raw[32:], header) // the table of segments: one
	e.PutUint16(raw[54:], entry)
	e.PutUint16(raw[56:], 1)
	e.PutUint32(raw[header:], uint32(elf.PT_INTERP))
	e.PutUint64(raw[header+8:], header+entry)
	e.PutUint64(raw[header+32:], uint64(len(loader)+1))
	e.PutUint64(raw[header+40:], uint64(len(loader)+1))
	path := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(path, append(append(raw, loader...), 0), 0o755))
	return path
}

// Receiving messages is put to the supervisor only where answers to look-ups may come so.
func TestWhoReceivesByMessages(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755))
	for program, glibc := range map[string]bool{
		loadedBy(t, "/lib64/ld-linux-x86-64.so.2"):  true,
		loadedBy(t, "/lib/ld-linux-aarch64.so.1"):   true,
		loadedBy(t, "/lib/ld-musl-x86_64.so.1"):     false,
		loadedBy(t, "/opt/ld-linux/ld-musl-x86.so"): false,
		script:           false,
		script + ".none": false,
		"":               false,
	} {
		assert.Equal(t, glibc, usesGlibc(Child{Argv: []string{program}}), program)
		for _, exec := range []bool{false, true} {
			c := Command{Child: Child{Argv: []string{program}}, Boundary: &plan.Boundary{}, LooksUp: true}
			c.Boundary.Filter.Inet, c.Boundary.Filter.Exec = true, exec
			ask := inNetwork(c, Unwalled).Boundary.Filter.Ask
			assert.NotZero(t, ask&seccomp.AskReceive)
			assert.Equal(t, exec || !glibc, ask&seccomp.AskReceiveMessage != 0, program)
		}
	}
	if python, err := exec.LookPath("/usr/bin/python3"); err == nil {
		assert.NotEmpty(t, loaderOf(python))
	}
}
