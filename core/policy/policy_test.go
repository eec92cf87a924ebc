package policy

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/profile"
)

// world is a temporary folder with a profile, and what it is compiled against.
type world struct {
	dir       string
	env       map[string]string
	resolver  fakeResolver
	slept     []time.Duration
	overrides []profile.Override
	ctx       Context
	warnings  []profile.Warning
}

func newWorld(t *testing.T) *world {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return &world{dir: dir, env: map[string]string{}, resolver: fakeResolver{}}
}

// file makes a file beneath the world's folder.
func (w *world) file(t *testing.T, name, text string) string {
	path := filepath.Join(w.dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func (w *world) folder(t *testing.T, name string) string {
	path := filepath.Join(w.dir, name)
	require.NoError(t, os.MkdirAll(path, 0o700))
	return path
}

func (w *world) try(t *testing.T, lines ...string) (*Policy, error) {
	path := w.file(t, profile.Name, strings.Join(lines, "\n")+"\n")
	p, err := profile.Load(profile.Options{Path: path, Overrides: w.overrides, Env: w.env, Platform: "linux", Home: w.dir, Cwd: w.dir})
	if err != nil {
		return nil, err
	}
	w.ctx.Resolver = w.resolver
	w.ctx.Sleep = func(d time.Duration) { w.slept = append(w.slept, d) }
	pol, warnings, err := Compile(p, w.ctx)
	w.warnings = warnings
	return pol, err
}

func (w *world) policy(t *testing.T, lines ...string) *Policy {
	t.Helper()
	pol, err := w.try(t, lines...)
	require.NoError(t, err)
	return pol
}

// warned joins the warnings of the last compilation.
func (w *world) warned() string {
	var out []string
	for _, x := range w.warnings {
		out = append(out, x.Pos.String()+": "+x.Text)
	}
	return strings.Join(out, "\n")
}

// fakeResolver answers from a table; a name in failures fails so many times first.
type fakeResolver map[string][]string

var errPassing = &net.DNSError{Err: "server misbehaving", IsTemporary: true}

func (f fakeResolver) LookupIP(host string) ([]netip.Addr, error) {
	texts, ok := f[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var out []netip.Addr
	for i, s := range texts {
		switch s {
		case "later":
			f[host] = texts[i+1:]
			return nil, errPassing
		case "never":
			return nil, errPassing
		case "panic":
			panic("a resolver's own fault")
		case "other":
			return nil, errors.New("something else")
		}
		out = append(out, netip.MustParseAddr(s))
	}
	return out, nil
}
