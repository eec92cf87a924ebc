//go:build linux

package seccomp

import "golang.org/x/sys/unix"

// auditArch is AUDIT_ARCH_X86_64 (linux/audit.h): the only calling convention the filter lets in.
const auditArch = 0xc000003e

// foreignABI is the bit that marks an x32 call, which shares auditArch with the 64-bit ones.
const foreignABI = 0x40000000

// machineAllowed are the calls that only this architecture has.
var machineAllowed = []Group{
	{
		Why:     "reading, writing and arranging files: Landlock decides on each path",
		Verdict: Allow,
		Calls: []Call{
			{unix.SYS_STAT, "stat"},
			{unix.SYS_LSTAT, "lstat"},
			{unix.SYS_ACCESS, "access"},
			{unix.SYS_READLINK, "readlink"},
			{unix.SYS_MKDIR, "mkdir"},
			{unix.SYS_RMDIR, "rmdir"},
			{unix.SYS_RENAME, "rename"},
			{unix.SYS_LINK, "link"},
			{unix.SYS_UNLINK, "unlink"},
			{unix.SYS_SYMLINK, "symlink"},
			{unix.SYS_GETDENTS, "getdents"},
			{unix.SYS_DUP2, "dup2"},
			{unix.SYS_INOTIFY_INIT, "inotify_init"},
		},
	},
	{
		Why:     "waiting, pipes and timers, which stay inside the process",
		Verdict: Allow,
		Calls: []Call{
			{unix.SYS_PIPE, "pipe"},
			{unix.SYS_EVENTFD, "eventfd"},
			{unix.SYS_SIGNALFD, "signalfd"},
			{unix.SYS_EPOLL_CREATE, "epoll_create"},
			{unix.SYS_EPOLL_WAIT, "epoll_wait"},
			{unix.SYS_EPOLL_CTL_OLD, "epoll_ctl_old"},
			{unix.SYS_EPOLL_WAIT_OLD, "epoll_wait_old"},
			{unix.SYS_POLL, "poll"},
			{unix.SYS_SELECT, "select"},
		},
	},
	{
		Why:     "threads and locks",
		Verdict: Allow,
		Calls: []Call{
			{unix.SYS_ARCH_PRCTL, "arch_prctl"},
			{unix.SYS_SET_THREAD_AREA, "set_thread_area"},
			{unix.SYS_GET_THREAD_AREA, "get_thread_area"},
		},
	},
	{
		Why:     "signals; Landlock's scope keeps them inside (rows of kernels without it: see compensate.go)",
		Verdict: Allow,
		Calls: []Call{
			{unix.SYS_PAUSE, "pause"},
		},
	},
	{
		Why:     "who am I, and giving rights up: no_new_privs stands",
		Verdict: Allow,
		Calls: []Call{
			{unix.SYS_GETPGRP, "getpgrp"},
		},
	},
	{
		Why:     "reading clocks and setting one's own timers",
		Verdict: Allow,
		Calls: []Call{
			{unix.SYS_TIME, "time"},
			{unix.SYS_ALARM, "alarm"},
		},
	},
}

// machineRefused are the calls that only this architecture has.
var machineRefused = []Group{
	{
		Why:     "loads, replaces or stops the kernel",
		Verdict: Errno(unix.EPERM),
		Calls: []Call{
			{unix.SYS_CREATE_MODULE, "create_module"},
			{unix.SYS_GET_KERNEL_SYMS, "get_kernel_syms"},
			{unix.SYS_QUERY_MODULE, "query_module"},
			{unix.SYS__SYSCTL, "_sysctl"},
			{unix.SYS_SYSFS, "sysfs"},
			{unix.SYS_USELIB, "uselib"},
			{unix.SYS_USTAT, "ustat"},
			{unix.SYS_IOPL, "iopl"},
			{unix.SYS_IOPERM, "ioperm"},
			{unix.SYS_MODIFY_LDT, "modify_ldt"},
		},
	},
}

// machineObserved are the older calls that a learning run looks at.
var machineObserved = []Rule{
	watch(unix.SYS_OPEN, "open", notPathOnly(1)...),
	watch(unix.SYS_CREAT, "creat"),
	watch(unix.SYS_UNLINK, "unlink"),
	watch(unix.SYS_RMDIR, "rmdir"),
	watch(unix.SYS_RENAME, "rename"),
	watch(unix.SYS_RENAMEAT, "renameat"),
	watch(unix.SYS_MKDIR, "mkdir"),
	watch(unix.SYS_LINK, "link"),
	watch(unix.SYS_SYMLINK, "symlink"),
	watch(unix.SYS_MKNOD, "mknod"),
	watch(unix.SYS_CHMOD, "chmod"),
	watch(unix.SYS_CHOWN, "chown"),
	watch(unix.SYS_LCHOWN, "lchown"),
	watch(unix.SYS_UTIME, "utime"),
	watch(unix.SYS_UTIMES, "utimes"),
	watch(unix.SYS_FUTIMESAT, "futimesat"),
}
