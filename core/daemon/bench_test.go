package daemon

import (
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/core/wire"
)

// BenchmarkQuestion is a round trip as the guard sees it: a blocking send and receive on a thread of its own.
func BenchmarkQuestion(b *testing.B) {
	prof, err := profile.Load(profile.Options{Cwd: "/", Home: "/",
		Overrides: []profile.Override{{Key: "expose-ro", Value: "/tmp", Origin: profile.OriginCode}}})
	require.NoError(b, err)
	pol, _, err := policy.Compile(prof, policy.Context{Cwd: "/", Home: "/"})
	require.NoError(b, err)
	for name, path := range map[string]string{"allowed": "/tmp/x", "refused": "/etc/passwd"} {
		b.Run(name, func(b *testing.B) {
			s := newServer(&judge{policy: pol, names: names{live: pol.Live()}, denials: &denials{}}, nil, slog.New(slog.NewTextHandler(io.Discard, nil)))
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			require.NoError(b, err)
			ours := &socket{fds[0]}
			s.adopt(ours, func() { s.questions(ours) })
			buf := make([]byte, wire.MaxMessage)
			ask := func(q wire.Question) {
				data, err := q.Encode()
				require.NoError(b, err)
				_, err = unix.Write(fds[1], data)
				require.NoError(b, err)
				_, err = unix.Read(fds[1], buf)
				require.NoError(b, err)
			}
			ask(wire.Question{Seq: 1, Op: wire.OpHello, Version: wire.Version})
			q := file(path)
			q.Seq = 2
			b.ReportAllocs()
			for b.Loop() {
				ask(q)
			}
			unix.Close(fds[1])
			s.stop()
		})
	}
}
