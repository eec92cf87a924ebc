package review

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
)

// place is a folder with profiles; `{dir}` in texts stands for it.
type place struct {
	dir string
	env map[string]string
}

func newPlace(t *testing.T) *place {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, d := range []string{"data", "data/deep", "out", "home/.ssh"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	return &place{dir: dir, env: map[string]string{"LANG": "C"}}
}

type resolver map[string]string

func (r resolver) LookupIP(host string) ([]netip.Addr, error) {
	if a, ok := r[host]; ok {
		return []netip.Addr{netip.MustParseAddr(a)}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (p *place) subject(t *testing.T, lines ...string) Subject {
	t.Helper()
	path := filepath.Join(p.dir, "profile")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(strings.Join(lines, "\n"), "{dir}", p.dir)+"\n"), 0o600))
	prof, err := profile.Load(profile.Options{Path: path, Env: p.env, Platform: "linux", Home: p.dir + "/home", Cwd: p.dir})
	require.NoError(t, err)
	pol, _, err := policy.Compile(prof, policy.Context{
		Runtime:  policy.Runtime{Read: []string{"/usr/lib/python3.11"}, Stdlib: []string{"/usr/lib/python3.11"}},
		Resolver: resolver{"api.example.com": "192.0.2.1", "other.example.com": "192.0.2.2"},
	})
	require.NoError(t, err)
	return Subject{prof, pol}
}

// plain takes the folder out of a text.
func (p *place) plain(text string) string { return strings.ReplaceAll(text, p.dir, "{dir}") }
