package providers_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/broker"
	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/providers"
	"github.com/pysandboxes/pysandboxes/providers/landlock"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// tree is a folder with a file and a folder in it, for whoever runs the test.
func tree(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("text"), 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	return dir
}

// Each operation is refused inside, and the same one works under subprocess where the machine lets it at all: else
// the refusal would prove nothing.
func TestDenyByDefault(t *testing.T) {
	everyone(t)
	kernelBoundary(t)
	dir := tree(t)
	other := strconv.Itoa(os.Getpid())
	for _, c := range []struct {
		op      string
		want    string
		without string // under subprocess; "" where that depends on the machine
	}{
		{"read=" + dir + "/f", "EACCES", "ok"},
		{"read=" + dir, "EACCES", "ok"},
		{"read=/proc/self/status", "EACCES", "ok"},
		{"write=" + dir + "/f", "EACCES", "ok"},
		{"create=" + dir + "/new", "EACCES", "ok"},
		{"mkdir=" + dir + "/newdir", "EACCES", "ok"},
		{"truncate=" + dir + "/f", "EACCES", "ok"},
		{"chmod=" + dir + "/f", "EACCES", "ok"},
		{"link=" + dir + "/f," + dir + "/g", "EACCES", "ok"},
		{"move=" + dir + "/f," + dir + "/sub/f", "EACCES", "ok"},
		{"remove=" + dir + "/sub/f", "EACCES", "ok"},
		{"tcp", "EACCES", "ok"},
		{"udp6", "EACCES", ""},
		{"raw", "EACCES", ""},
		{"packet", "EACCES", ""},
		{"alg", "EACCES", ""},
		{"netlink", "EACCES", "ok"},
		{"unixgram", "EACCES", "ok"},
		{"fork", "EPERM", "ok"},
		{"sibling", "EPERM", ""},
		{"newpid", "EPERM", ""},
		{"clone3", "ENOSYS", "EINVAL"},
		{"exec=" + probe, "EACCES", ""},
		{"spawn=" + probe, "EPERM", "3"},
		{"ptrace=" + other, "EPERM", ""},
		{"readmem=" + other, "EPERM", ""},
		{"unshare", "EPERM", ""},
		{"mount", "EPERM", ""},
		{"chroot=/", "EPERM", ""},
		{"io_uring", "ENOSYS", ""},
		{"bpf", "EPERM", ""},
		{"keyctl", "EPERM", ""},
		{"shmget", "EPERM", ""},
		{"handle=/", "EPERM", ""},
		{"tiocsti", "EPERM", ""},
		{"signal=" + other, "EPERM", "ok"},
		{"limits=" + other, "EPERM", "ok"},
		{"priority=" + other, "EPERM", "ok"},
		{"survive", "EPERM", "ok"},

		{"unix", "ok", "ok"},
		{"socketpair", "ok", "ok"},
		{"thread", "ok", "ok"},
		{"memfd", "ok", "ok"},
		{"limits=0", "ok", "ok"},
		{"priority=0", "ok", "ok"},
		{"status=nnp", "1", "0"},
		{"status=seccomp", "2", "0"},
		{"core", "1/1", "1/1"},
		{"nocore", "ok 1/1", "ok 0/0"},
	} {
		t.Run(c.op, func(t *testing.T) {
			got, status := outcome(t, confined(c.op))
			assert.Equal(t, c.want, got[c.op])
			assert.Zero(t, status)
			if c.without != "" {
				got, _ = outcome(t, command(c.op))
				assert.Equal(t, c.without, got[c.op], "without a boundary")
			}
		})
	}
}

// What an older Landlock lacks the filter makes up for: the same operations are refused, if by other errors. What each
// version does judge must not be lost either.
func TestOlderKernels(t *testing.T) {
	everyone(t)
	kernelBoundary(t)
	other := strconv.Itoa(os.Getpid())
	abi, err := landlock.ABI()
	require.NoError(t, err)
	for _, c := range []struct {
		op   string // @ is a folder that is exposed to be read
		from int    // the first ABI that gives the second answer
		then [2]string
	}{
		{"read=@/f", 1, [2]string{"", "ok"}},
		{"write=@/f", 1, [2]string{"", "EACCES"}},
		{"truncate=@/f", 3, [2]string{"EPERM", "EACCES"}},
		{"empty=@/f", 3, [2]string{"EACCES", "EACCES"}},
		{"move=@/f,@/sub/f", 1, [2]string{"", "EACCES"}},
		{"link=@/f,@/sub/g", 1, [2]string{"", "EACCES"}},
		{"remove=@/f", 1, [2]string{"", "EACCES"}},
		{"signal=" + other, 6, [2]string{"EPERM", "EPERM"}},
		{"owner=" + other, 6, [2]string{"EPERM", "ok"}}, // the signal itself is held then
		{"ownerex=" + other, 6, [2]string{"EPERM", "ok"}},
		{"fioowner=" + other, 6, [2]string{"EPERM", "ok"}},
		{"geometry=/dev/urandom", 5, [2]string{"EACCES", "EACCES"}},
		{"chattr=@/f", 1, [2]string{"", "EPERM"}},
		{"tcp", 1, [2]string{"", "EACCES"}},
		{"fork", 1, [2]string{"", "EPERM"}},
	} {
		for old := 1; old <= abi; old++ {
			dir := tree(t)
			t.Run(c.op+" on "+strconv.Itoa(old), func(t *testing.T) {
				op := strings.ReplaceAll(c.op, "@", dir)
				cmd := confined(op)
				cmd.Boundary.ABI = old
				cmd.Boundary.Rules = append(cmd.Boundary.Rules, plan.Rule{Path: dir, Access: plan.Read},
					plan.Rule{Path: "/dev/urandom", Access: plan.Read})
				got, _ := outcome(t, cmd)
				want := c.then[1]
				if old < c.from {
					want = c.then[0]
				}
				assert.Equal(t, want, got[op])
			})
		}
		op := strings.ReplaceAll(c.op, "@", tree(t))
		got, _ := outcome(t, command(op))
		assert.Equal(t, "ok", got[op], "%s without a boundary", op)
	}
}

func TestAPlanForANewerKernelDoesNotStart(t *testing.T) {
	everyone(t)
	kernelBoundary(t)
	c := confined("read=/")
	c.Boundary.ABI = 99
	_, err := providers.Start(c)
	assert.ErrorContains(t, err, "the plan is for Landlock ABI 99")
}

func TestExposures(t *testing.T) {
	everyone(t)
	kernelBoundary(t)
	dir, locked := tree(t), tree(t)
	f := filepath.Join(dir, "f")
	c := confined("read="+f, "read="+dir, "read="+dir+"/..", "write="+f, "create="+dir+"/new", "move="+dir+"/new,"+dir+"/sub/new",
		"truncate="+f, "chmod="+f, "remove="+f, "read="+locked+"/f", "write="+locked+"/f", "remove="+locked+"/f", "exec="+locked+"/f")
	c.Boundary.Rules = append(c.Boundary.Rules,
		plan.Rule{Path: dir, Access: plan.Read | plan.Write},
		plan.Rule{Path: locked, Access: plan.Read},
		plan.Rule{Path: dir + "/no/such", Access: plan.Read, Optional: true})
	c.Boundary.Filter.Metadata = true
	c.Files = writableIn(dir)
	got, _ := outcome(t, c)
	assert.Equal(t, map[string]string{
		"read=" + f: "ok", "read=" + dir: "ok", "read=" + dir + "/..": "EACCES", "write=" + f: "ok",
		"create=" + dir + "/new": "ok", "move=" + dir + "/new," + dir + "/sub/new": "ok", "truncate=" + f: "ok",
		"chmod=" + f: "ok", "remove=" + f: "ok",
		"read=" + locked + "/f": "ok", "write=" + locked + "/f": "EACCES", "remove=" + locked + "/f": "EACCES",
		"exec=" + locked + "/f": "EACCES",
	}, got)
}

// record keeps what is refused to the command's program; what it returns gives it.
func record(c *providers.Command) func() []broker.Denial {
	var mu sync.Mutex
	var all []broker.Denial
	c.Denied = func(d broker.Denial) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, d)
	}
	return func() []broker.Denial {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// writableIn lets files in a folder be written.
type writableIn string

func (w writableIn) File(path string, a policy.Access, op string) policy.Decision {
	return policy.Decision{Allow: a == policy.Write && strings.HasPrefix(path, string(w)+"/"), Family: "file", Op: op, Subject: path}
}

// Where something is writable, what is not stays as it is, and who runs programs is held like everybody.
func TestMetadataOutsideIsRefusedAndSaid(t *testing.T) {
	everyone(t)
	kernelBoundary(t)
	for _, grant := range []bool{false, true} {
		dir, locked := tree(t), tree(t)
		c := confined("chmod="+dir+"/f", "chmod="+locked+"/f", "chmod="+dir+"/link", "chmod=/no/such")
		require.NoError(t, os.Symlink(locked+"/f", dir+"/link"))
		c.Boundary.Filter.Metadata, c.Boundary.Filter.Exec, c.Boundary.Filter.Fork = true, grant, grant
		c.Files = writableIn(dir)
		denied := record(&c)
		got, _ := outcome(t, c)
		denials := denied()
		assert.Equal(t, map[string]string{"chmod=" + dir + "/f": "ok", "chmod=" + locked + "/f": "EACCES",
			"chmod=" + dir + "/link": "EACCES", "chmod=/no/such": "ENOENT"}, got)
		require.Len(t, denials, 2)
		for _, d := range denials {
			assert.Equal(t, "chmod", d.Op)
			assert.Equal(t, locked+"/f", d.Subject)
			require.NotNil(t, d.Decision)
		}
	}
}

func TestNetworkRuleMakesInternetSockets(t *testing.T) {
	everyone(t)
	kernelBoundary(t)
	c := confined("tcp", "netlink", "raw", "alg")
	c.Boundary.Filter.Inet = true
	got, _ := outcome(t, c)
	assert.Equal(t, map[string]string{"tcp": "ok", "netlink": "ok", "raw": "EACCES", "alg": "EACCES"}, got)
}

func TestExecGrant(t *testing.T) {
	everyone(t)
	kernelBoundary(t)
	c := confined("spawn="+probe, "fork", "sibling", "newpid", "spawn=/bin/true")
	c.Boundary.Filter.Exec, c.Boundary.Filter.Fork = true, true
	got, _ := outcome(t, c)
	assert.Equal(t, map[string]string{"spawn=" + probe: "3", "fork": "ok", "sibling": "EPERM", "newpid": "EPERM",
		"spawn=/bin/true": "EACCES"}, got, "a grant opens what is exposed for it, no more")
}

func TestRefusedExecIsReported(t *testing.T) {
	everyone(t)
	kernelBoundary(t)
	c := confined("exec=/bin/sh")
	denied := record(&c)
	p := start(t, c)
	_, err := p.Wait()
	require.NoError(t, err)
	denials := denied() // told of before the caller has its answer
	require.Len(t, denials, 1, "init's own exec is no denial")
	assert.Equal(t, "exec", denials[0].Op)
	assert.Equal(t, "/bin/sh", denials[0].Subject)
}

func TestRootKeepsFileCapabilitiesOnly(t *testing.T) {
	everyone(t)
	kernelBoundary(t)
	c := confined("status=caps")
	c.Boundary.KeepCaps = []int{0, 1, 2, 3} // CHOWN to FOWNER
	got, _ := outcome(t, c)
	want := "f"
	if os.Geteuid() != 0 {
		want = "0"
	}
	assert.Equal(t, want, got["status=caps"])
}
