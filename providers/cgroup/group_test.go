package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// These tests need a tree that this user may divide; they run wherever there is one.
func TestMain(m *testing.M) {
	switch os.Getenv("CGROUP_TEST_CHILD") {
	case "eat":
		var kept [][]byte
		for {
			page := make([]byte, 1<<20)
			for i := range page {
				page[i] = 1
			}
			if kept = append(kept, page); len(kept) > 1<<20 {
				os.Exit(3)
			}
		}
	case "share": // memory that no resource limit counts
		for {
			data, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
			if err != nil {
				os.Exit(3)
			}
			for i := range data {
				data[i] = 1
			}
		}
	case "fork":
		for n := 0; ; n++ {
			c := exec.Command("/proc/self/exe")
			c.Env = []string{"CGROUP_TEST_CHILD=sleep"}
			if err := c.Start(); err != nil {
				os.Exit(min(n, 100))
			}
		}
	case "leave":
		c := exec.Command("/proc/self/exe")
		c.Env = []string{"CGROUP_TEST_CHILD=sleep"}
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			os.Exit(3)
		}
		fmt.Print(c.Process.Pid)
		os.Exit(0)
	case "sleep":
		time.Sleep(time.Minute)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func group(t *testing.T, limits Limits) *Group {
	place, err := Here()
	if err != nil {
		t.Skip(err)
	}
	g, err := place.Make(limits)
	require.NoError(t, err)
	t.Cleanup(g.End)
	return g
}

func child(g *Group, what string) *exec.Cmd {
	c := exec.Command("/proc/self/exe")
	c.Env = []string{"CGROUP_TEST_CHILD=" + what}
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: g.FD()}
	return c
}

func signalOf(err error) syscall.Signal {
	if e, is := err.(*exec.ExitError); is {
		return e.Sys().(syscall.WaitStatus).Signal()
	}
	return 0
}

func TestMemoryEndsTheGroup(t *testing.T) {
	for _, how := range []string{"eat", "share"} {
		g := group(t, Limits{Memory: 64 << 20})
		assert.Equal(t, syscall.SIGKILL, signalOf(child(g, how).Run()), how)
		assert.True(t, g.OutOfMemory(), how)
		g.End()
		assert.NoDirExists(t, g.path)
	}
}

func TestAnotherKillIsNoLackOfMemory(t *testing.T) {
	g := group(t, Limits{Memory: 64 << 20})
	c := child(g, "sleep")
	require.NoError(t, c.Start())
	require.NoError(t, c.Process.Kill())
	assert.Equal(t, syscall.SIGKILL, signalOf(c.Wait()))
	assert.False(t, g.OutOfMemory())
}

func TestProcessesAreBounded(t *testing.T) {
	g := group(t, Limits{Processes: 40})
	require.NoError(t, g.BoundProcesses())
	c := child(g, "fork")
	err := c.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Less(t, exit.ExitCode(), 40, "each has threads of its own")
}

func TestTheEndTakesAllAlong(t *testing.T) {
	g := group(t, Limits{})
	out, err := child(g, "leave").Output()
	require.NoError(t, err)
	var left int
	_, err = fmt.Sscan(string(out), &left)
	require.NoError(t, err)
	require.NoError(t, unix.Kill(left, 0), "it outlived who started it")
	g.End()
	assert.NoDirExists(t, g.path)
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", left)) // it may be a zombie until somebody collects it
	if err == nil {
		assert.NotContains(t, string(data), filepath.Base(g.path)+"\n")
	}
}

func TestGroupsOfTheDeadAreSwept(t *testing.T) {
	g := group(t, Limits{})
	place, err := Here()
	require.NoError(t, err)
	dead := filepath.Join(place.path, prefix+"1-1")
	require.NoError(t, os.Mkdir(dead, 0o755))
	other := filepath.Join(place.path, "not-ours")
	require.NoError(t, os.Mkdir(other, 0o755))
	defer os.Remove(other)
	place.sweep()
	assert.NoDirExists(t, dead)
	assert.DirExists(t, g.path, "its maker lives")
	assert.DirExists(t, other)
}
