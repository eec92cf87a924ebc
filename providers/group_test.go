package providers_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pysandboxes/pysandboxes/core/policy"
	"github.com/pysandboxes/pysandboxes/core/profile"
	"github.com/pysandboxes/pysandboxes/providers/cgroup"
	"github.com/pysandboxes/pysandboxes/providers/contract"
)

// limited are the limits of a profile of one line.
func limited(t *testing.T, key, value string) (contract.Limits, *policy.Policy) {
	t.Helper()
	prof, err := profile.Load(profile.Options{Cwd: "/", Home: "/",
		Overrides: []profile.Override{{Key: key, Value: value, Origin: profile.OriginCode}}})
	require.NoError(t, err)
	pol, _, err := policy.Compile(prof, policy.Context{Cwd: "/", Home: "/"})
	require.NoError(t, err)
	return contract.LimitsOf(pol), pol
}

// groups are the control groups that are there.
func groups(t *testing.T) []string {
	place, err := cgroup.Here()
	if err != nil {
		t.Skip(err)
	}
	found, err := filepath.Glob(filepath.Join(place.String(), "pysandboxes-[0-9]*"))
	require.NoError(t, err)
	return found
}

// Shared memory, which no resource limit counts, ends the sandbox in its group; another kill is told from that; nothing stays.
func TestGroupBoundsMemory(t *testing.T) {
	before := groups(t)
	for name, c := range commands(t, "eat") {
		c.Limits, _ = limited(t, "limit-memory", "32MB")
		require.NotNil(t, c.Limits.Group)
		assert.Zero(t, c.Limits.Data)
		p := start(t, c)
		s, err := p.Wait()
		require.NoError(t, err)
		assert.Equal(t, syscall.SIGKILL, s.Signal, name)
		assert.True(t, p.OutOfMemory(), name)
	}
	for name, c := range commands(t, "die=9") {
		c.Limits, _ = limited(t, "limit-memory", "32MB")
		p := start(t, c)
		s, err := p.Wait()
		require.NoError(t, err)
		assert.Equal(t, syscall.SIGKILL, s.Signal, name)
		assert.False(t, p.OutOfMemory(), name)
	}
	assert.Equal(t, before, groups(t))
}

func TestGroupBoundsProcesses(t *testing.T) {
	groups(t)
	for name, c := range commands(t, "spin") {
		c.Limits, _ = limited(t, "limit-processes", "1")
		p := start(t, c)
		place, _ := cgroup.Here()
		mine, err := filepath.Glob(filepath.Join(place.String(), "pysandboxes-[0-9]*", "pids.max"))
		require.NoError(t, err)
		require.Len(t, mine, 1, name)
		data, err := os.ReadFile(mine[0])
		require.NoError(t, err)
		assert.Equal(t, "1\n", string(data), name)
		require.NoError(t, p.Kill())
		_, err = p.Wait()
		require.NoError(t, err)
	}
}

// Without a group the limit is each process's own, and the start says so with the line that it concerns.
func TestLimitsWithoutAGroupAreLabelled(t *testing.T) {
	if _, err := cgroup.Here(); err == nil {
		t.Skip("this machine has control groups to make")
	}
	for _, c := range []struct {
		key, value string
		root       bool
		want       string
	}{
		{"limit-memory", "32MB", false, "limit-memory is partial"},
		{"limit-processes", "9", true, "limit-processes is not held: the kernel spares root"},
		{"limit-processes", "9", false, "limit-processes is partial: it counts all processes of this user"},
	} {
		limits, pol := limited(t, c.key, c.value)
		assert.Nil(t, limits.Group)
		gaps := contract.LimitGaps(pol, c.root)
		require.Len(t, gaps, 1)
		assert.Contains(t, gaps[0].Text, c.want)
		assert.Contains(t, gaps[0].Text, "no control group for")
		assert.Equal(t, "code", gaps[0].Rule.String())
	}
	limits, pol := limited(t, "limit-memory", "32MB")
	assert.Equal(t, uint64(48<<20), limits.Data, "with what an interpreter maps by itself")
	assert.Len(t, contract.LimitGaps(pol, true), 1)
	_, pol = limited(t, "limit-open-files", "32")
	assert.Empty(t, contract.LimitGaps(pol, true), "held fully")
}
