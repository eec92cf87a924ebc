//go:build linux && (amd64 || arm64)

package seccomp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestALearningRunIsLookedAtAndNotHeld(t *testing.T) {
	const i386 = 0x40000003
	for name, c := range map[string]struct {
		arch, nr uint32
		args     []uint32
		want     Verdict
	}{
		"open":                          {auditArch, unix.SYS_OPENAT, []uint32{0, 0, unix.O_RDWR}, Notify},
		"open for the path alone":       {auditArch, unix.SYS_OPENAT, []uint32{0, 0, unix.O_PATH | unix.O_DIRECTORY}, Allow},
		"exec":                          {auditArch, unix.SYS_EXECVE, nil, Notify},
		"connect":                       {auditArch, unix.SYS_CONNECT, nil, Notify},
		"sendto with an address":        {auditArch, unix.SYS_SENDTO, []uint32{3, 4096, 9, 0, 4096, 16}, Notify},
		"sendto without one":            {auditArch, unix.SYS_SENDTO, []uint32{3, 4096, 9, 0, 0, 0}, Allow},
		"a question to a name server":   {auditArch, unix.SYS_SENDTO, []uint32{3, 4096, 40, unix.MSG_NOSIGNAL, 0, 0}, Notify},
		"more than any such question":   {auditArch, unix.SYS_SENDTO, []uint32{3, 4096, 4096, unix.MSG_NOSIGNAL, 0, 0}, Allow},
		"times by descriptor":           {auditArch, unix.SYS_UTIMENSAT, []uint32{3, 0}, Allow},
		"times by path":                 {auditArch, unix.SYS_UTIMENSAT, []uint32{3, 4096}, Notify},
		"read":                          {auditArch, unix.SYS_READ, nil, Allow},
		"a look":                        {auditArch, unix.SYS_FSTAT, nil, Allow},
		"what a sandbox never may":      {auditArch, unix.SYS_PTRACE, nil, Allow},
		"a call newer than the tables":  {auditArch, 5000, nil, Allow},
		"another calling convention":    {i386, unix.SYS_READ, nil, Allow},
		"the first call":                {auditArch, 0, nil, Allow},
		"a number that is none at all":  {auditArch, 1 << 29, nil, Allow},
		"the same number, another arch": {i386, unix.SYS_OPENAT, nil, Allow},
	} {
		assert.Equal(t, c.want, ran(t, observing(), c.arch, c.nr, c.args...), name)
	}
	for _, r := range append(observed, machineObserved...) {
		if len(r.Tests) == 0 {
			assert.Equal(t, Notify, ran(t, observing(), auditArch, r.NR), r.Name)
		}
	}
	_, err := ObserveFilter()
	require.NoError(t, err)
}
