package providers_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers"
	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// ownFiles skips where no mount namespace is to be had.
func ownFiles(t *testing.T) {
	t.Helper()
	kernelBoundary(t)
	if ok, why := providers.NamespacesHere(); !ok {
		t.Skip(why)
	}
}

// mounted is a folder that is exposed for writing, with what its plan holds, and a command in it.
func mounted(t *testing.T, ops ...string) (dir string, c providers.Command) {
	dir = t.TempDir()
	for _, folder := range []string{"a/b", "secrets", "other"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o755))
	}
	for _, file := range []string{"profile", "a/b/profile", "a/hidden", "secrets/key", "free", "other/f"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte("text"), 0o666))
	}
	for i, op := range ops {
		ops[i] = strings.ReplaceAll(op, "@", dir)
	}
	c = confined(ops...)
	expose(&c, plan.Read|plan.Write, dir)
	c.Boundary.Mounts = &plan.Mounts{
		Pinned:   []string{dir + "/a", dir + "/a/b"},
		ReadOnly: []string{dir + "/profile", dir + "/a/b/profile"},
		Hidden:   []string{dir + "/a/hidden", dir + "/secrets", dir + "/gone"},
		Needed:   "what only they hold",
	}
	return dir, c
}

// mountCases are what is refused, each with what works in its neighbourhood, and what it gives where there is no plan.
var mountCases = []struct{ op, inside, without string }{
	{"write=@/profile", "EROFS", "ok"},
	{"truncate=@/profile", "EROFS", "ok"},
	{"read=@/profile", "ok", "ok"},
	{"read=@/a/hidden", "EACCES", "ok"},
	{"write=@/a/hidden", "EACCES", "ok"},
	{"stat=@/a/hidden", "20000 0", "100644 4"},
	{"stat=@/secrets", "40000 40", ""},
	{"read=@/secrets/key", "masked gone", "ok"},
	{"create=@/secrets/new", "masked rofs", "ok"},
	{"link=@/profile,@/linked", "EXDEV", "ok"},
	{"link=@/a/hidden,@/linked2", "EXDEV", "ok"},
	{"move=@/other/f,@/profile", "EBUSY", "ok"},
	{"move=@/a/b/profile,@/a/b/moved", "EBUSY", "ok"},
	{"remove=@/a/hidden", "EBUSY", "ok"},
	{"move=@/a/b,@/a/c", "EBUSY", "ok"},
	{"move=@/a,@/c", "EBUSY", "ok"},
	{"write=@/free", "ok", "ok"},
	{"create=@/a/b/new", "ok", ""},
	{"move=@/free,@/other/free", "ok", "ok"},
	{"mount", "EPERM", ""},
	{"unshare", "EPERM", ""},
}

func TestFilesOfTheSandboxsOwn(t *testing.T) {
	everyone(t)
	ownFiles(t)
	var ops []string
	for _, c := range mountCases {
		ops = append(ops, c.op)
	}
	dir, c := mounted(t, ops...)
	if os.Geteuid() == 0 {
		c.Boundary.KeepCaps = []int{unix.CAP_DAC_OVERRIDE}
	}
	before := mountsOf(t)
	got, s := outcome(t, c)
	assert.Zero(t, s.Code)
	for _, k := range mountCases {
		want := k.inside
		// Root may look into any folder; what it finds there is empty.
		switch root := os.Geteuid() == 0; {
		case want == "masked gone" && root:
			want = "ENOENT"
		case want == "masked rofs" && root:
			want = "EROFS"
		case strings.HasPrefix(want, "masked"):
			want = "EACCES"
		}
		assert.Equal(t, want, got[strings.ReplaceAll(k.op, "@", dir)], k.op)
	}
	assert.Equal(t, before, mountsOf(t), "nothing shows on the host")
	for _, file := range []string{"profile", "a/hidden", "secrets/key"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		assert.Equal(t, "text", string(text), file)
	}
}

// The negative control: each works where the plan holds nothing.
func TestWithoutFilesOfItsOwn(t *testing.T) {
	everyone(t)
	kernelBoundary(t)
	for _, k := range mountCases {
		if k.without == "" {
			continue
		}
		dir, c := mounted(t, k.op)
		c.Boundary.Mounts = nil
		got, _ := outcome(t, c)
		assert.Equal(t, k.without, got[strings.ReplaceAll(k.op, "@", dir)], k.op)
	}
}

func mountsOf(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	return bytes.Count(data, []byte("\n"))
}

// A working folder, and a folder that was open before, lead past what is mounted since, unless they are entered again.
func TestFoldersThatWereOpenBefore(t *testing.T) {
	everyone(t)
	ownFiles(t)
	dir, c := mounted(t, "write=profile", "read=../hidden", "cwd", "within=profile", "write=new")
	c.Child.Dir = dir + "/a/b"
	require.NoError(t, os.WriteFile(dir+"/a/b/new", nil, 0o666))
	folder, err := os.Open(dir + "/a/b")
	require.NoError(t, err)
	defer folder.Close()
	c.Child.Stdin = folder
	got, _ := outcome(t, c)
	assert.Equal(t, map[string]string{"write=profile": "EROFS", "read=../hidden": "EACCES", "cwd": dir + "/a/b", "within=profile": "EROFS", "write=new": "ok"}, got)
}

// A working folder that nothing was mounted on stays what it was, also where no path leads there any more.
func TestAWorkingFolderThatIsGone(t *testing.T) {
	everyone(t)
	ownFiles(t)
	dir, c := mounted(t, "cwd", "read=@/a/hidden")
	here := filepath.Join(t.TempDir(), "gone")
	require.NoError(t, os.Mkdir(here, 0o755))
	before, err := os.Getwd()
	require.NoError(t, err)
	require.NoError(t, os.Chdir(here)) // the child inherits it
	defer func() { assert.NoError(t, os.Chdir(before)) }()
	require.NoError(t, os.Remove(here))
	got, _ := outcome(t, c)
	assert.Equal(t, map[string]string{"cwd": "", "read=" + dir + "/a/hidden": "EACCES"}, got)
}

func TestPrivateMemory(t *testing.T) {
	everyone(t)
	ownFiles(t)
	dir := t.TempDir()
	name := filepath.Join(dir, "host")
	require.NoError(t, os.WriteFile(name, nil, 0o666))
	c := confined("list="+dir, "create="+dir+"/own", "list="+dir+"/.", "stat="+dir)
	expose(&c, plan.Read|plan.Write, dir)
	c.Boundary.Mounts = &plan.Mounts{Private: []plan.Private{{Path: dir, Size: 1 << 20}}}
	got, _ := outcome(t, c)
	assert.Equal(t, map[string]string{"list=" + dir: "0", "create=" + dir + "/own": "ok", "list=" + dir + "/.": "1", "stat=" + dir: "41777 60"}, got)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

// What cannot be mounted stops a start that needs it, and is said by one that does not.
func TestFilesOfItsOwnThatCannotBeHad(t *testing.T) {
	everyone(t)
	ownFiles(t)
	dir, c := mounted(t, "write=@/profile")
	c.Boundary.Mounts.ReadOnly = append(c.Boundary.Mounts.ReadOnly, dir+"/not-there")
	_, err := providers.Start(c)
	require.ErrorContains(t, err, "what only they hold")
	assert.ErrorContains(t, err, "make read only "+dir+"/not-there: no such file or directory")

	c.Boundary.Mounts.Needed, c.Boundary.Mounts.Without = "", []string{"the profile may be written"}
	c.Child.Stdout, err = os.Open(os.DevNull)
	require.NoError(t, err)
	defer c.Child.Stdout.Close()
	p, err := providers.Start(c)
	require.NoError(t, err)
	_, err = p.Wait()
	require.NoError(t, err)
	assert.Contains(t, strings.Join(p.Notes(), "\n"), "the profile may be written, since there are no files of the sandbox's own")
}

func TestWhatAStartCameToIsSaid(t *testing.T) {
	ownFiles(t)
	dir, c := mounted(t, "write=@/free")
	c.Network, c.Boundary.Filter.Inet, c.Judge = providers.Either, true, anywhere{}
	for _, k := range []struct {
		change func(*providers.Command)
		want   string
	}{
		{func(*providers.Command) {}, "landlock: network walled, as can be had here; files of its own, which its profile needs"},
		{func(c *providers.Command) { c.Network = providers.Unwalled }, "network unwalled, the default; files"},
		{func(c *providers.Command) { c.Child.Network = providers.Unwalled }, "network unwalled, as was asked for; files"},
		{func(c *providers.Command) { c.Network, c.Boundary.Mounts = "", nil }, "landlock: no network"},
		{func(c *providers.Command) { c.Provider, c.Boundary = "subprocess", nil }, "subprocess: no kernel boundary"},
	} {
		k.change(&c)
		c.Child.Stdout = nil
		p, err := providers.Start(c)
		require.NoError(t, err, dir)
		_, err = p.Wait()
		require.NoError(t, err)
		assert.Contains(t, p.How(), k.want)
	}
}
