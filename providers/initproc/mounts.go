//go:build linux && (amd64 || arm64)

package initproc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pysandboxes/pysandboxes/providers/plan"
)

// quiet are the attributes of what only init puts there: no programs, no devices, no set-user-ID.
const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC

// setUpMounts changes this process's mount namespace, which is its own. It runs with a capability that the program never
// has, and before Landlock, under which nothing can be mounted.
func setUpMounts(m *plan.Mounts) (err error) {
	defer func() {
		if err != nil {
			err = &stageError{plan.StageMounts, fmt.Errorf("files of the sandbox's own: %w", err)}
		}
	}()
	// Else what root mounts here would show on the host. What the host mounts or takes away still shows here: a copy that
	// knew nothing of it would keep a disk busy that was unmounted.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("part from the host's mounts: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // it was removed: no path leads there, and nothing lies beneath
	}
	was, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the working folder: %w", err)
	}
	defer unix.Close(was)
	for _, steps := range []struct {
		what  string
		paths []string
		do    func(path string) error
	}{
		{"keep the name of", m.Pinned, func(path string) error { return mountAgain(path, 0) }},
		{"make read only", m.ReadOnly, func(path string) error { return mountAgain(path, unix.MOUNT_ATTR_RDONLY) }},
	} {
		for _, path := range steps.paths {
			if err := steps.do(path); err != nil {
				return fmt.Errorf("%s %s: %w", steps.what, path, err)
			}
		}
	}
	for _, p := range m.Private {
		if err := mountPrivate(p); err != nil {
			return fmt.Errorf("a folder of the sandbox's own at %s: %w", p.Path, err)
		}
	}
	if err := hide(m.Hidden); err != nil {
		return err
	}
	return stepInside(m, dir, was)
}

// place opens a path for a look. A link on the way would be one that was put there since the supervisor looked.
func place(path string) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		if err != unix.EINTR && err != unix.EAGAIN {
			return fd, err
		}
	}
}

// attach mounts a detached mount on what a descriptor is open on.
func attach(mount, at int) error {
	return unix.MoveMount(mount, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// mountAgain mounts what lies at a path on itself, with all that is mounted beneath. What something is mounted on can be
// neither renamed nor removed by who sees the mount.
func mountAgain(path string, attributes uint64) error {
	at, err := place(path)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	copied, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(copied)
	if attributes != 0 {
		// Only adds: what the host's mount forbids is locked in a user namespace, and stays.
		set := unix.MountAttr{Attr_set: attributes}
		if err := unix.MountSetattr(copied, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &set); err != nil {
			return err
		}
	}
	return attach(copied, at)
}

// memory makes a file system in memory that is mounted nowhere yet.
func memory(attributes int, options ...[2]string) (int, error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, o := range options {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return -1, fmt.Errorf("%s=%s: %w", o[0], o[1], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attributes)
}

// mountPrivate covers a folder by an empty one. What is exposed beneath it by a rule of its own was never meant to be
// private: the provider plans no such folder then.
func mountPrivate(p plan.Private) error {
	at, err := place(p.Path)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	options := [][2]string{{"mode", "1777"}}
	if p.Size > 0 {
		options = append(options, [2]string{"size", strconv.FormatUint(p.Size, 10)})
	}
	own, err := memory(quiet, options...)
	if err != nil {
		return err
	}
	defer unix.Close(own)
	return attach(own, at)
}

// hide puts a file that nobody may open, or an empty folder, in the place of each path. One that is gone needs no hiding.
func hide(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	masks, err := memory(quiet, [2]string{"mode", "755"}, [2]string{"size", "64k"})
	if err != nil {
		return err
	}
	defer unix.Close(masks)
	// A device of no driver, where no devices are: not even root may open it. It is the one that everybody may make.
	if err := unix.Mknodat(masks, "file", unix.S_IFCHR, 0); err != nil {
		return fmt.Errorf("a file that nobody may open: %w", err)
	}
	if err := unix.Mkdirat(masks, "folder", 0); err != nil {
		return fmt.Errorf("an empty folder: %w", err)
	}
	// Parts of a file system can be mounted elsewhere only while it is mounted somewhere. On the root it is in nobody's
	// way: no path that begins there crosses into it.
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	if err := attach(masks, root); err != nil {
		return fmt.Errorf("what hides files: %w", err)
	}
	for _, path := range paths {
		if err := cover(masks, path); err != nil {
			return fmt.Errorf("hide %s: %w", path, err)
		}
	}
	// By the working folder, since "/" does not mean it.
	if err := unix.Fchdir(masks); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("take what hides files off the root: %w", err)
	}
	return nil // stepInside leaves it
}

func cover(masks int, path string) error {
	at, err := place(path)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	name := "file"
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		name = "folder"
	case unix.S_IFLNK:
		return nil // a link is judged by what it leads to
	}
	mask, err := unix.OpenTree(masks, name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(mask)
	set := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(mask, "", unix.AT_EMPTY_PATH, &set); err != nil {
		return err
	}
	return attach(mask, at)
}

// stepInside enters the working folder again, and opens anew what was inherited: a folder that was open before leads past
// what was mounted on it, or above it, since.
func stepInside(m *plan.Mounts, dir string, was int) error {
	enter := func() error { return unix.Fchdir(was) } // also where this user could not go by the path
	if covered(m, dir) {
		enter = func() error { return unix.Chdir(dir) }
	}
	if err := enter(); err != nil {
		return fmt.Errorf("the working folder %s: %w", dir, err)
	}
	for fd := range 3 {
		if err := reopen(m, fd); err != nil {
			return fmt.Errorf("descriptor %d: %w", fd, err)
		}
	}
	return nil
}

// covered tells that something was mounted on a folder, or above it.
func covered(m *plan.Mounts, dir string) bool {
	over := func(path string) bool { return dir == path || strings.HasPrefix(dir, path+"/") }
	return slices.ContainsFunc(slices.Concat(m.Pinned, m.ReadOnly, m.Hidden), over) ||
		slices.ContainsFunc(m.Private, func(p plan.Private) bool { return over(p.Path) })
}

// reopen gives a descriptor that is open on a folder the same folder as it is seen now.
func reopen(m *plan.Mounts, fd int) error {
	var before, after unix.Stat_t
	if err := unix.Fstat(fd, &before); err != nil {
		return nil // it is closed
	}
	if before.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return fmt.Errorf("it is a folder, and where it lies cannot be told: %w", err)
	}
	if !covered(m, path) {
		return nil
	}
	seen, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(seen)
	if err := unix.Fstat(seen, &after); err != nil {
		return err
	}
	if before.Dev != after.Dev || before.Ino != after.Ino {
		return fmt.Errorf("it is the folder %s, in whose place stands another inside", path)
	}
	return unix.Dup3(seen, fd, 0)
}
