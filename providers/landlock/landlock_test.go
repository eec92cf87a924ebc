package landlock

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/providers/contract"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

func compile(t *testing.T, lines ...string) *policy.Policy {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, ".py-sandboxes")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	p, err := profile.Load(profile.Options{Path: path, Platform: "linux", Home: dir, Cwd: dir})
	require.NoError(t, err)
	pol, _, err := policy.Compile(p, policy.Context{Cwd: dir, Home: dir})
	require.NoError(t, err)
	return pol
}

func child() contract.Child { return contract.Child{Argv: []string{"/bin/sh"}, InitPath: "/bin/true"} }

// granted is what the rules of the plan give for a path of their own.
func granted(b *plan.Boundary, path string) plan.Access {
	var a plan.Access
	for _, r := range b.Rules {
		if r.Path == path {
			a |= r.Access
		}
	}
	return a
}

func TestPlanOfAnEmptyProfile(t *testing.T) {
	cmd, err := Provider{}.Prepare(compile(t), child())
	require.NoError(t, err)
	b := cmd.Boundary
	require.NotNil(t, b)
	sh, err := filepath.EvalSymlinks("/bin/sh")
	require.NoError(t, err)
	assert.Equal(t, plan.Read|plan.Execute, granted(b, sh))
	assert.Equal(t, plan.Read|plan.Write, granted(b, "/dev/null"))
	assert.Zero(t, granted(b, "/etc/passwd"))
	assert.False(t, b.Filter.Inet || b.Filter.Exec || b.Filter.Fork || b.Filter.UnixDatagram || b.Filter.Metadata)
	assert.Equal(t, "/", b.Outside)
	for _, r := range b.Rules {
		assert.NotContains(t, r.Path, "/proc/self")
		if r.Path != "/dev/null" {
			assert.Zero(t, r.Access&plan.Write, "%s is not writable", r.Path)
		}
	}
}

func TestPlanFollowsTheRules(t *testing.T) {
	ro, rw := t.TempDir(), t.TempDir()
	pol := compile(t, "expose-ro="+ro, "expose-rw="+rw, "net=ALLOW|TCP|127.0.0.1|80|OUT", "python-api=ALLOW:process-exec")
	cmd, err := Provider{}.Prepare(pol, child())
	require.NoError(t, err)
	b := cmd.Boundary
	assert.Equal(t, plan.Read|plan.Execute, granted(b, ro))
	assert.Equal(t, plan.Read|plan.Write|plan.Execute|plan.Device, granted(b, rw))
	f := b.Filter
	assert.True(t, f.Inet && f.Exec && f.Fork && f.Metadata && f.UnixDatagram)
	assert.False(t, f.Devices, "no device is exposed")
	assert.Equal(t, DefaultNetwork, cmd.Network)
	assert.False(t, f.UDP, "the rule is for TCP and no name is looked up")
	assert.NotNil(t, cmd.Judge)
}

func TestReadOnlyExposureRunsNothingWithoutAGrant(t *testing.T) {
	ro := t.TempDir()
	cmd, err := Provider{}.Prepare(compile(t, "expose-ro="+ro), child())
	require.NoError(t, err)
	assert.Equal(t, plan.Read, granted(cmd.Boundary, ro))
}

func TestFilesThatARuleHides(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.key", "b", "sub/c.key"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	cmd, err := Provider{}.Prepare(compile(t, "expose-ro="+dir, "ignore=*.key"), child())
	require.NoError(t, err)
	m := cmd.Boundary.Mounts
	assert.Equal(t, []string{dir + "/a.key", dir + "/sub/c.key"}, m.Hidden)
	assert.Contains(t, m.Needed, ".py-sandboxes:2")
	assert.True(t, strings.HasSuffix(m.Needed, "ignore-best-effort=true"), m.Needed)
	assert.Empty(t, m.Pinned, "a basename hides wherever its folder goes")

	cmd, err = Provider{}.Prepare(compile(t, "expose-ro="+dir, "ignore=*.key", "ignore-best-effort=true"), child())
	require.NoError(t, err)
	assert.Empty(t, cmd.Boundary.Mounts.Needed)
	assert.Contains(t, cmd.Boundary.Mounts.Without[0], "held by the Python layer only")

	cmd, err = Provider{}.Prepare(compile(t, "expose-rw="+dir, "ignore="+dir+"/sub/c.key"), child())
	require.NoError(t, err)
	assert.Equal(t, []string{dir + "/sub"}, cmd.Boundary.Mounts.Pinned)

	cmd, err = Provider{}.Prepare(compile(t, "expose-ro="+dir, "ignore=/elsewhere/*.key"), child())
	require.NoError(t, err)
	assert.Nil(t, cmd.Boundary.Mounts, "a rule for another place is in nobody's way")

	cmd, err = Provider{}.Prepare(compile(t, "expose-ro="+dir+"/a.key", "ignore=*.key"), child())
	require.NoError(t, err)
	assert.Nil(t, cmd.Boundary.Mounts, "what is exposed by itself and hidden has no rule")
	assert.Zero(t, granted(cmd.Boundary, dir+"/a.key"))
}

// What is too much to hide one by one stops the start, or is said where the profile accepts it.
func TestMoreThanCanBeHidden(t *testing.T) {
	dir := t.TempDir()
	for n := range 5001 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.key", n)), nil, 0o644))
	}
	_, err := Provider{}.Prepare(compile(t, "expose-ro="+dir, "ignore=*.key"), child())
	assert.ErrorContains(t, err, "more than 5000 files")
	cmd, err := Provider{}.Prepare(compile(t, "expose-ro="+dir, "ignore=*.key", "ignore-best-effort=true"), child())
	require.NoError(t, err)
	assert.Nil(t, cmd.Boundary.Mounts)
	assert.Contains(t, texts(cmd.Gaps), "held by the Python layer only: they hide more than 5000 files")
}

func TestWhatCannotBeHeldStopsTheStart(t *testing.T) {
	_, err := Provider{}.Prepare(compile(t, "expose-ro="+t.TempDir()+",/data"), child())
	assert.ErrorContains(t, err, "no mount namespace")
}

func TestSharedMemoryIsTheSandboxsOwn(t *testing.T) {
	cmd, err := Provider{}.Prepare(compile(t, "expose-rw=/dev/shm", "limit-memory=64MB"), child())
	require.NoError(t, err)
	require.NotNil(t, cmd.Boundary.Mounts)
	assert.Equal(t, []plan.Private{{Path: "/dev/shm", Size: 64 << 20}}, cmd.Boundary.Mounts.Private)
	assert.Contains(t, cmd.Boundary.Mounts.Without[0], "/dev/shm is the host's")
	for _, rule := range []string{"expose-ro=/dev/shm", "expose-rw=" + t.TempDir()} {
		cmd, err := Provider{}.Prepare(compile(t, rule), child())
		require.NoError(t, err)
		assert.Nil(t, cmd.Boundary.Mounts, rule)
	}
}

func TestMissingExposureIsSaid(t *testing.T) {
	cmd, err := Provider{}.Prepare(compile(t, "expose-rw="+t.TempDir()+"/later"), child())
	require.NoError(t, err)
	assert.Contains(t, texts(cmd.Gaps), "does not exist")
	assert.Contains(t, texts(cmd.Gaps), "end the rule with a slash")
	cmd, err = Provider{}.Prepare(compile(t, "expose-ro="+t.TempDir()+"/later"), child())
	require.NoError(t, err)
	assert.NotContains(t, texts(cmd.Gaps), "slash", "nothing is made for a rule that only reads")

	later := t.TempDir() + "/later"
	cmd, err = Provider{}.Prepare(compile(t, "expose-rw="+later+"/"), child())
	require.NoError(t, err)
	assert.Empty(t, cmd.Gaps, "whoever starts the child makes it")
	assert.Equal(t, plan.Read|plan.Write|plan.Device, granted(cmd.Boundary, later))
}

func TestWhatIsAlwaysSoIsNotSaidAtEachStart(t *testing.T) {
	for _, g := range (Provider{}).Gaps(compile(t, "net=ALLOW|TCP|127.0.0.1|80|OUT", "expose-ro=/no/such/place")) {
		assert.False(t, g.Standing, g.Text)
	}
}

func TestProgramThatIsNone(t *testing.T) {
	c := child()
	c.Argv[0] = "/no/such/python"
	_, err := Provider{}.Prepare(compile(t), c)
	assert.ErrorContains(t, err, "/no/such/python")

	c.Argv[0] = filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(c.Argv[0], []byte("#!/bin/sh\n"), 0o755))
	_, err = Provider{}.Prepare(compile(t), c)
	assert.ErrorContains(t, err, "no ELF program")
}

func TestProofFollowsTheRules(t *testing.T) {
	for _, c := range []struct {
		rules []plan.Rule
		path  string
		write bool
	}{
		{nil, "/", false},
		{[]plan.Rule{{Path: "/usr", Access: plan.Read}}, "/", false},
		{[]plan.Rule{{Path: "/", Access: plan.Read}}, "/proc/self/comm", true},
		{[]plan.Rule{{Path: "/", Access: plan.Read}, {Path: "/proc", Access: plan.Write}}, "", false},
		{[]plan.Rule{{Path: "/", Access: plan.Read | plan.Write}}, "", false},
	} {
		path, write := provable(c.rules)
		assert.Equal(t, c.path, path, "%v", c.rules)
		assert.Equal(t, c.write, write, "%v", c.rules)
	}
}

func texts(gaps []contract.Gap) string {
	var all []string
	for _, g := range gaps {
		all = append(all, g.Text)
	}
	return strings.Join(all, "\n")
}
