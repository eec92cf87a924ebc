package providers_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// probe is the static program that plays init and the sandboxed program (internal/probe), in a folder that everyone
// may read.
var probe string

// Variables by which a test runs itself again as another user.
const (
	probeVariable = "PYSANDBOXES_TEST_PROBE"
	nobody        = 65534
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if probe = os.Getenv(probeVariable); probe != "" {
		if os.Getenv(hostVariable) != "" {
			if err := hostNetwork(); err != nil {
				fmt.Fprintln(os.Stderr, "the network of the test:", err)
				return 1
			}
		}
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "providers-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	probe = filepath.Join(dir, "probe")
	build := exec.Command("go", "build", "-o", probe, "./internal/probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "build the probe: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// everyone runs the test again as an unprivileged user, where it runs as root.
func everyone(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	t.Run("as nobody", func(t *testing.T) {
		self := filepath.Join(filepath.Dir(probe), "test")
		if _, err := os.Stat(self); err != nil {
			mine, err := os.Executable()
			require.NoError(t, err)
			data, err := os.ReadFile(mine)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(self, data, 0o755))
		}
		name := strings.Split(t.Name(), "/")[0]
		c := exec.Command(self, "-test.run", "^"+name+"$", "-test.v")
		c.Dir = "/"
		c.Env = []string{probeVariable + "=" + probe, "TMPDIR=/tmp", "PATH=" + os.Getenv("PATH")}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "PASS: "+name)
	})
}

// kernelBoundary skips where the default provider cannot work at all.
func kernelBoundary(t *testing.T) {
	t.Helper()
	if p, _, err := providers.Choose("landlock"); err != nil {
		t.Skip(err)
	} else if r := p.Probe(); !r.Usable {
		t.Skip(r.Why)
	}
}

// command runs the probe with these operations, without a boundary.
func command(ops ...string) providers.Command {
	return providers.Command{
		Provider: "subprocess",
		Child:    providers.Child{Argv: append([]string{probe}, ops...), InitPath: probe},
	}
}

// anywhere is a judge that allows every network call.
type anywhere struct{}

func (anywhere) Net(policy.NetQuestion) policy.Decision { return policy.Decision{Allow: true} }

// confined runs the probe in a boundary that lets it run and nothing else.
func confined(ops ...string) providers.Command {
	c := command(ops...)
	c.Provider = "landlock"
	c.Boundary = &plan.Boundary{
		Rules:   []plan.Rule{{Path: probe, Access: plan.Read | plan.Execute}},
		Outside: "/",
	}
	return c
}

// outcome starts the command and collects what the operations printed, by operation.
func outcome(t *testing.T, c providers.Command) (map[string]string, providers.Status) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	c.Child.Stdout = w
	if c.Child.Stderr == nil {
		c.Child.Stderr = os.Stderr
	}
	p, err := providers.Start(c)
	w.Close()
	require.NoError(t, err)
	out, err := io.ReadAll(r)
	require.NoError(t, err)
	s, err := p.Wait()
	require.NoError(t, err)
	results := map[string]string{}
	for line := range bytes.Lines(out) {
		op, result, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		require.True(t, ok, "%q", line)
		results[op] = result
	}
	return results, s
}
