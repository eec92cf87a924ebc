//go:build linux && (amd64 || arm64)

package metadata

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/core/asker"
	"github.com/pysandboxes/pysandboxes/providers/plan"
	"github.com/pysandboxes/pysandboxes/providers/seccomp"
)

// A test runs this program again as a process under the filter, with what to do there as an argument.
const asCaller = "metadata-caller"

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == asCaller {
		behave(os.Args[2] == "filtered", os.Args[3])
		return
	}
	os.Exit(m.Run())
}

// attempt is one call, in the folder that is exposed for writing (inside) or beside it (outside).
type attempt struct {
	name string
	try  func(dir string) error
}

func raw(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, e := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); e != 0 {
		return e
	}
	return nil
}

func at(s string) uintptr {
	b := append([]byte(s), 0)
	return uintptr(unsafe.Pointer(&b[0]))
}

// on opens a file and acts on the descriptor.
func on(name string, flags int, act func(fd int) error) func(string) error {
	return func(dir string) error {
		fd, err := unix.Open(filepath.Join(dir, name), flags, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return act(fd)
	}
}

var moments = [4]int64{1000, 500, 2000, 700}

const here = ^uintptr(99) // AT_FDCWD

// attempts are all calls of the table and the ways to name a file.
var attempts = []attempt{
	{"chmod", func(d string) error { return unix.Fchmodat(unix.AT_FDCWD, d+"/file", 0o640, 0) }},
	{"chmod of a folder", func(d string) error { return unix.Fchmodat(unix.AT_FDCWD, d+"/sub", 0o711, 0) }},
	{"chmod by a descriptor", on("file", unix.O_RDONLY, func(fd int) error { return unix.Fchmod(fd, 0o604) })},
	{"chmod by O_PATH", on("file", unix.O_PATH, func(fd int) error { return unix.Fchmod(fd, 0o604) })},
	{"chmod by a folder's descriptor", on("", unix.O_PATH|unix.O_DIRECTORY, func(fd int) error { return unix.Fchmodat(fd, "file", 0o622, 0) })},
	{"chmod by a folder and ..", on("sub", unix.O_RDONLY, func(fd int) error { return unix.Fchmodat(fd, "../file", 0o606, 0) })},
	{"chmod through a link", func(d string) error { return unix.Fchmodat(unix.AT_FDCWD, d+"/link", 0o660, 0) }},
	{"chmod through an absolute link", func(d string) error { return unix.Fchmodat(unix.AT_FDCWD, d+"/absolute", 0o661, 0) }},
	{"chmod of a dangling link", func(d string) error { return unix.Fchmodat(unix.AT_FDCWD, d+"/dangling", 0o660, 0) }},
	{"chmod through /proc/self/fd", on("file", unix.O_RDONLY, func(fd int) error {
		return unix.Fchmodat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), 0o664, 0)
	})},
	{"chmod relative", func(d string) error {
		if err := os.Chdir(d); err != nil {
			return err
		}
		return unix.Fchmodat(unix.AT_FDCWD, "file", 0o600, 0)
	}},
	{"fchmodat2 without following", func(d string) error {
		return raw(unix.SYS_FCHMODAT2, here, at(d+"/link"), 0o600, unix.AT_SYMLINK_NOFOLLOW)
	}},
	{"fchmodat2 of an unknown flag", func(d string) error { return raw(unix.SYS_FCHMODAT2, here, at(d+"/file"), 0o600, 0x8000) }},
	{"chmod of nothing", func(d string) error { return unix.Fchmodat(unix.AT_FDCWD, "", 0o600, 0) }},
	{"chmod of what is not there", func(d string) error { return unix.Fchmodat(unix.AT_FDCWD, d+"/none", 0o600, 0) }},
	{"chmod beneath a file", func(d string) error { return unix.Fchmodat(unix.AT_FDCWD, d+"/file/x", 0o600, 0) }},
	{"chmod of a name too long", func(d string) error { return unix.Fchmodat(unix.AT_FDCWD, strings.Repeat("x/", 3000), 0o600, 0) }},
	{"chmod by a bad address", func(d string) error { return raw(unix.SYS_FCHMODAT, here, 8, 0o600) }},
	{"chmod by no descriptor", func(d string) error { return unix.Fchmod(999, 0o600) }},
	{"chmod by no folder", func(d string) error { return unix.Fchmodat(999, "file", 0o600, 0) }},
	{"chown", func(d string) error { return unix.Fchownat(unix.AT_FDCWD, d+"/file", os.Getuid(), -1, 0) }},
	{"chown to another", func(d string) error { return unix.Fchownat(unix.AT_FDCWD, d+"/file", 12345, 12345, 0) }},
	{"chown of a link", func(d string) error {
		return unix.Fchownat(unix.AT_FDCWD, d+"/link", -1, os.Getgid(), unix.AT_SYMLINK_NOFOLLOW)
	}},
	{"chown by a descriptor", on("file", unix.O_RDONLY, func(fd int) error { return unix.Fchown(fd, -1, os.Getgid()) })},
	{"chown by an empty path", on("file", unix.O_RDONLY, func(fd int) error { return unix.Fchownat(fd, "", -1, os.Getgid(), unix.AT_EMPTY_PATH) })},
	{"chown by an empty path without the flag", on("file", unix.O_RDONLY, func(fd int) error { return unix.Fchownat(fd, "", -1, os.Getgid(), 0) })},
	{"utimensat", func(d string) error {
		return raw(unix.SYS_UTIMENSAT, here, at(d+"/file"), uintptr(unsafe.Pointer(&moments)), 0)
	}},
	{"utimensat of a link", func(d string) error {
		return raw(unix.SYS_UTIMENSAT, here, at(d+"/link"), uintptr(unsafe.Pointer(&moments)), unix.AT_SYMLINK_NOFOLLOW)
	}},
	{"utimensat now", func(d string) error { return raw(unix.SYS_UTIMENSAT, here, at(d+"/touched"), 0, 0) }},
	{"utimensat by a descriptor", on("sub", unix.O_RDONLY, func(fd int) error {
		return raw(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&moments)), 0)
	})},
	{"utimensat of nothing", func(string) error { return raw(unix.SYS_UTIMENSAT, here, 0, 0, 0) }},
	{"utimensat by a bad address", func(d string) error { return raw(unix.SYS_UTIMENSAT, here, at(d+"/file"), 8, 0) }},
	{"setxattr", func(d string) error { return unix.Setxattr(d+"/file", "user.a", []byte("value"), 0) }},
	{"setxattr, empty", func(d string) error { return unix.Setxattr(d+"/file", "user.b", nil, 0) }},
	{"setxattr that must be there", func(d string) error { return unix.Setxattr(d+"/file", "user.no", []byte("v"), unix.XATTR_REPLACE) }},
	{"setxattr of a link", func(d string) error { return unix.Lsetxattr(d+"/link", "user.a", []byte("value"), 0) }},
	{"setxattr by a descriptor", on("file", unix.O_RDONLY, func(fd int) error { return unix.Fsetxattr(fd, "user.c", []byte("x"), 0) })},
	{"setxattr of a label", func(d string) error { return unix.Setxattr(d+"/file", "trusted.x", []byte("value"), 0) }},
	{"setxattr too long", func(d string) error { return raw(unix.SYS_SETXATTR, at(d+"/file"), at("user.a"), at("x"), 1<<17, 0) }},
	{"setxattr without a name", func(d string) error { return raw(unix.SYS_SETXATTR, at(d+"/file"), at(""), at("x"), 1, 0) }},
	{"removexattr", func(d string) error { return unix.Removexattr(d+"/file", "user.a") }},
	{"removexattr of what is not there", func(d string) error { return unix.Removexattr(d+"/file", "user.none") }},
	{"removexattr by a descriptor", on("file", unix.O_RDONLY, func(fd int) error { return unix.Fremovexattr(fd, "user.c") })},
	{"chmod of what has lost its name", func(d string) error {
		fd, err := unix.Open(d, unix.O_TMPFILE|unix.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		return unix.Fchmod(fd, 0o640)
	}},
	{"chmod of a pipe", func(string) error {
		var fds [2]int
		if err := unix.Pipe(fds[:]); err != nil {
			return err
		}
		return unix.Fchmod(fds[0], 0o600)
	}},
	{"chmod of a socket", func(string) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Fchmod(fds[0], 0o600)
	}},
	{"chmod of anonymous memory", func(string) error {
		fd, err := unix.MemfdCreate("x", 0)
		if err != nil {
			return err
		}
		return unix.Fchmod(fd, 0o640)
	}},
}

// everywhere are those that name nothing of their folder, so that it does not matter where that lies.
var everywhere = []string{"chmod of nothing", "chmod of a name too long", "chmod by a bad address", "chmod by no descriptor",
	"chmod by no folder", "utimensat of nothing", "chmod of anonymous memory", "chmod of a pipe", "chmod of a socket"}

// kept are what a caller that root runs keeps, and the worker with it: it must not be less, or it may not look at the caller.
var kept = []int{unix.CAP_CHOWN, unix.CAP_FOWNER, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID}

// behave is the process under the filter.
func behave(filtered bool, dir string) {
	runtime.LockOSThread()
	unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_SYS_ADMIN, 0, 0, 0)
	Lessen(kept)
	if filtered {
		filter, err := seccomp.Filter(seccomp.Needs{Metadata: true, Exec: true, Fork: true})
		if err == nil {
			err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		}
		var listener int
		if err == nil {
			listener, err = seccomp.Install(filter, true)
		}
		if err == nil {
			err = plan.Send(plan.FDControl, plan.Message{Kind: plan.Listener}, listener)
		}
		if err == nil {
			_, _, err = plan.Receive(plan.FDControl)
		}
		if err != nil {
			fmt.Println("setup", err)
			os.Exit(1)
		}
		unix.Close(listener)
	}
	todo := attempts
	if _, err := os.Lstat(filepath.Join(dir, "flip")); err == nil {
		todo = nil
		flip(dir)
	}
	for _, a := range todo {
		err := a.try(dir)
		e, _ := err.(syscall.Errno)
		fmt.Printf("%s\t%d\n", a.name, int(e))
	}
}

// flips is how often the race is run.
const flips = 5000

// flip changes the mode of a file by a path that another thread points here and there.
func flip(dir string) {
	stop := make(chan bool)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				os.Rename(filepath.Join(dir, [2]string{"to-in", "to-out"}[i%2]), filepath.Join(dir, "flip"))
				os.Symlink([2]string{"file", "../outside/file"}[i%2], filepath.Join(dir, [2]string{"to-in", "to-out"}[i%2]))
			}
		}
	}()
	for range flips {
		unix.Fchmodat(unix.AT_FDCWD, filepath.Join(dir, "flip"), 0o666, 0)
	}
	close(stop)
}

// folder is a tree to change, with outside beside it.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, name := range []string{"file", "touched"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), time.Unix(5, 0), time.Unix(5, 0)))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink(filepath.Join(dir, "file"), filepath.Join(dir, "absolute")))
	require.NoError(t, os.Symlink("none", filepath.Join(dir, "dangling")))
	return dir
}

// facts are what the calls can have changed.
func facts(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	for _, name := range []string{".", "file", "touched", "sub", "link"} {
		var st unix.Stat_t
		path := filepath.Join(dir, name)
		require.NoError(t, unix.Lstat(path, &st))
		labels := make([]byte, 1024)
		n, _ := unix.Llistxattr(path, labels)
		list := strings.Split(strings.TrimRight(string(labels[:max(n, 0)]), "\x00"), "\x00")
		slices.Sort(list)
		modified := st.Mtim.Sec
		if name == "." || modified > 1000000 {
			modified = -1 // now
		}
		out = append(out, fmt.Sprintf("%s %o %d:%d %d.%d %v", name, st.Mode, st.Uid, st.Gid, modified, min(st.Mtim.Nsec, 700), list))
	}
	return out
}

// asked is what a permit was asked.
type asked struct {
	mu    sync.Mutex
	paths []string
}

// ran is what a caller printed: the errno of each attempt.
func ran(t *testing.T, dir string, permit Permit) map[string]syscall.Errno {
	t.Helper()
	got := answered(t, dir, permit != nil, func(listener int) {
		serve(listener, New(permit, kept))
	})
	require.Len(t, got, len(attempts))
	return got
}

func answered(t *testing.T, dir string, filtered bool, answers func(listener int)) map[string]syscall.Errno {
	t.Helper()
	how := "bare"
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "control")
	if filtered {
		how = "filtered"
	}
	c := exec.Command(os.Args[0], asCaller, how, dir)
	c.ExtraFiles = []*os.File{theirs}
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	theirs.Close()
	if filtered {
		_, listener, err := plan.Receive(pair[0])
		require.NoError(t, err)
		go answers(listener)
		require.NoError(t, plan.Send(pair[0], plan.Message{Kind: plan.Taken}))
	}
	got := map[string]syscall.Errno{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		name, number, _ := strings.Cut(lines.Text(), "\t")
		var e int
		fmt.Sscan(number, &e)
		got[name] = syscall.Errno(e)
	}
	require.NoError(t, c.Wait())
	return got
}

// serve is the least of a broker.
func serve(listener int, w *Worker) {
	defer w.Close(func() {})
	receive(listener, func(n seccomp.Notification) {
		done := make(chan bool)
		w.Do(n, func() bool { return seccomp.Valid(listener, n.ID) }, func(e unix.Errno) {
			seccomp.Refuse(listener, n.ID, e) // 0 is success
			close(done)
		})
		<-done
	})
}

func receive(listener int, take func(seccomp.Notification)) {
	defer unix.Close(listener)
	for {
		fds := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil || fds[0].Revents&unix.POLLIN == 0 {
			return
		}
		n, err := seccomp.Receive(listener)
		if err != nil {
			continue
		}
		take(n)
	}
}

// A change that is permitted is as it is without a sandbox: the same error or none, and the same file afterwards.
func TestWhatIsPermittedIsAsBare(t *testing.T) {
	bare, held := folder(t), folder(t)
	want := ran(t, bare, nil)
	got := ran(t, held, func(path, _ string) bool { return path == held || strings.HasPrefix(path, held+"/") })
	for _, a := range attempts {
		assert.Equal(t, want[a.name], got[a.name], a.name)
	}
	assert.Equal(t, facts(t, bare), facts(t, held))
}

func TestWhatIsNotPermittedIsNotChanged(t *testing.T) {
	dir := folder(t)
	before := facts(t, dir)
	want := ran(t, folder(t), nil)
	var a asked
	got := ran(t, dir, func(path, op string) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.paths = append(a.paths, op+" "+path)
		return false
	})
	assert.Equal(t, before, facts(t, dir))
	for _, one := range attempts {
		if want[one.name] == 0 && !slices.Contains(everywhere, one.name) && !strings.Contains(one.name, "lost its name") {
			assert.Equal(t, syscall.EACCES, got[one.name], one.name)
		}
	}
	a.mu.Lock() // the last question may still be under way when its program has ended
	defer a.mu.Unlock()
	for _, line := range []string{"chmod " + dir + "/file", "chmod " + dir + "/sub", "chown " + dir + "/link", "utime " + dir + "/link",
		"setxattr " + dir + "/file", "removexattr " + dir + "/file"} {
		assert.Contains(t, a.paths, line, "a refusal is asked for by the canonical path")
	}
}

// A link that leads out of the exposed folder, and one that leads into it.
func TestWhereALinkLeadsDecides(t *testing.T) {
	dir, outside := folder(t), folder(t)
	require.NoError(t, os.Remove(dir+"/link"))
	require.NoError(t, os.Symlink(outside+"/file", dir+"/link"))
	before := facts(t, outside)
	got := ran(t, dir, func(path, _ string) bool { return strings.HasPrefix(path, dir+"/") })
	assert.Equal(t, syscall.EACCES, got["chmod through a link"])
	assert.Zero(t, got["chown of a link"], "the link itself lies within")
	assert.Equal(t, before, facts(t, outside))
}

func TestAFaultRefusesOneCall(t *testing.T) {
	dir := folder(t)
	first := true
	got := ran(t, dir, func(path, _ string) bool {
		if first {
			first = false
			panic("a fault")
		}
		return true
	})
	assert.Equal(t, syscall.EACCES, got["chmod"])
	assert.Zero(t, got["chmod of a folder"])
}

// A path that changes between the decision and the call: none of the tries gets out. The control decides as well, and lets the
// call go on in its caller.
func TestALinkThatChanges(t *testing.T) {
	for name, c := range map[string]struct {
		answers func(dir string, listener int)
		escapes bool
	}{
		"made on what was decided on": {func(dir string, listener int) {
			serve(listener, New(func(path, _ string) bool { return strings.HasPrefix(path, dir+"/") }, kept))
		}, false},
		"let go on": {func(dir string, listener int) {
			receive(listener, func(n seccomp.Notification) {
				who := &caller{asker.Thread(n.Thread)}
				if fd, e := who.open(calls[n.NR].file, n.Args[:]); e == 0 {
					inside := strings.HasPrefix(asker.Named(fd), dir+"/")
					unix.Close(fd)
					if inside {
						seccomp.Continue(listener, n.ID)
						return
					}
				}
				seccomp.Refuse(listener, n.ID, unix.EACCES)
			})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			place := folder(t)
			inside, outside := filepath.Join(place, "inside"), filepath.Join(place, "outside")
			for _, dir := range []string{inside, outside} {
				require.NoError(t, os.Mkdir(dir, 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
			}
			require.NoError(t, os.Symlink("file", filepath.Join(inside, "flip")))
			answered(t, inside, true, func(listener int) { c.answers(inside, listener) })
			info, err := os.Stat(filepath.Join(outside, "file"))
			require.NoError(t, err)
			assert.Equal(t, c.escapes, info.Mode().Perm() == 0o666)
			info, err = os.Stat(filepath.Join(inside, "file"))
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o666), info.Mode().Perm(), "what leads inside is changed")
		})
	}
}
