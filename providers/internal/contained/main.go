//go:build linux && (amd64 || arm64)

// Command contained runs a program the way a container runtime would: under Docker's default seccomp profile, without
// capabilities, with a root that cannot be written, without /proc or /sys. It is for tests, which so learn what works in a
// container where no container engine is at hand.
//
//	contained [-docker] [-without CALL,…] [-drop] [-read-only] [-no-proc] [-no-sys] [-user N] -- PROGRAM …
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	docker := flag.Bool("docker", false, "Docker's default seccomp profile for a container without capabilities")
	without := flag.String("without", "", "system calls that give ENOSYS besides, as under an older profile")
	drop := flag.Bool("drop", false, "no capabilities, and none that come back")
	readOnly := flag.Bool("read-only", false, "a root that cannot be written (needs root)")
	noProc := flag.Bool("no-proc", false, "no /proc (needs root)")
	noSys := flag.Bool("no-sys", false, "no /sys (needs root)")
	user := flag.Int("user", -1, "another user (needs root)")
	flag.Parse()
	runtime.LockOSThread() // what follows belongs to this thread, which execs
	must("read-only root", when(*readOnly || *noProc || *noSys, func() error { return mounts(*readOnly, *noProc, *noSys) }))
	must("user", when(*user >= 0, func() error { return become(*user) }))
	must("capabilities", when(*drop, dropAll))
	must("no_new_privs", when(*docker || *drop || *without != "", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }))
	// Read before a filter may forbid to look.
	path, err := exec.LookPath(flag.Arg(0))
	must("program", err)
	must("filter", when(*docker, installDocker))
	must("calls left out", when(*without != "", func() error { return leaveOut(strings.Split(*without, ",")) }))
	must(path, syscall.Exec(path, flag.Args(), os.Environ()))
}

func must(what string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "contained: %s: %v\n", what, err)
		os.Exit(99)
	}
}

func when(wanted bool, do func() error) error {
	if !wanted {
		return nil
	}
	return do()
}

// mounts changes a mount namespace of this thread's own. /tmp stays as it is: a container has a tmpfs or a volume there.
func mounts(readOnly, noProc, noSys bool) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if readOnly {
		if err := unix.Mount("/tmp", "/tmp", "", unix.MS_BIND, ""); err != nil {
			return err
		}
		if err := unix.Mount("/", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			return err
		}
	}
	for path, hide := range map[string]bool{"/proc": noProc, "/sys": noSys} {
		if hide {
			if err := unix.Mount("none", path, "tmpfs", unix.MS_RDONLY, "size=4k"); err != nil {
				return err
			}
		}
	}
	return nil
}

// become is for this thread alone: the runtime's would be for all of them, and they end with the exec.
func become(user int) error {
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return e
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(user), uintptr(user), uintptr(user)); e != 0 {
		return e
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(user), uintptr(user), uintptr(user)); e != 0 {
		return e
	}
	return nil
}

func dropAll() error {
	for c := uintptr(0); ; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			break // past the last, or not ours to drop
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
