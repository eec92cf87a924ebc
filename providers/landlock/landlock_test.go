package landlock

import (
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

func TestWhatCannotBeHeldStopsTheStart(t *testing.T) {
	dir := t.TempDir()
	_, err := Provider{}.Prepare(compile(t, "expose-ro="+dir, "ignore=*.key"), child())
	require.Error(t, err)
	assert.Contains(t, err.Error(), ".py-sandboxes:2")
	assert.True(t, strings.HasSuffix(err.Error(), "ignore-best-effort=true"), "%v", err)

	cmd, err := Provider{}.Prepare(compile(t, "expose-ro="+dir, "ignore=*.key", "ignore-best-effort=true"), child())
	require.NoError(t, err)
	assert.Contains(t, texts(cmd.Gaps), "held by the Python layer only")

	_, err = Provider{}.Prepare(compile(t, "expose-ro="+dir, "ignore=/elsewhere/*.key"), child())
	assert.NoError(t, err, "a rule for another place is in nobody's way")

	_, err = Provider{}.Prepare(compile(t, "expose-ro="+dir+",/data"), child())
	assert.ErrorContains(t, err, "no mount namespace")
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

func TestMayMatchIn(t *testing.T) {
	for _, c := range []struct {
		glob, folder string
		want         bool
	}{
		{"*.key", "/a", true},
		{"/a/b/c", "/a/b", true},
		{"/a/*/c", "/a/b", true},
		{"/a/bb*", "/a/b", true}, // errs on the side of yes
		{"/a/b", "/a/bb", false},
		{"/x/**", "/a", false},
		{"/**/secret", "/a", true},
	} {
		assert.Equal(t, c.want, mayMatchIn(c.glob, c.folder), "%s in %s", c.glob, c.folder)
	}
}

func texts(gaps []contract.Gap) string {
	var all []string
	for _, g := range gaps {
		all = append(all, g.Text)
	}
	return strings.Join(all, "\n")
}
