//go:build linux && (amd64 || arm64)

package seccomp

import "golang.org/x/sys/unix"

// refused lists what no sandbox may call, with the reason. A call that is in no table is refused as well
// (see Filter); the rows here exist because their reason or their error number matters.
var refused = []Group{
	{
		Why:     "reads or drives another process's memory and registers",
		Verdict: Errno(unix.EPERM),
		Calls: []Call{
			{unix.SYS_PTRACE, "ptrace"},
			{unix.SYS_PROCESS_VM_READV, "process_vm_readv"},
			{unix.SYS_PROCESS_VM_WRITEV, "process_vm_writev"},
			{unix.SYS_PROCESS_MADVISE, "process_madvise"},
			{unix.SYS_PROCESS_MRELEASE, "process_mrelease"},
			{unix.SYS_PIDFD_GETFD, "pidfd_getfd"},
			{unix.SYS_KCMP, "kcmp"},
		},
	},
	{
		Why:     "code that runs in the kernel or watches it",
		Verdict: Errno(unix.EPERM),
		Calls: []Call{
			{unix.SYS_BPF, "bpf"},
			{unix.SYS_PERF_EVENT_OPEN, "perf_event_open"},
			{unix.SYS_USERFAULTFD, "userfaultfd"},
		},
	},
	{
		Why:     "runs calls that no filter sees; ENOSYS makes libraries fall back",
		Verdict: Errno(unix.ENOSYS),
		Calls: []Call{
			{unix.SYS_IO_URING_SETUP, "io_uring_setup"},
			{unix.SYS_IO_URING_ENTER, "io_uring_enter"},
			{unix.SYS_IO_URING_REGISTER, "io_uring_register"},
		},
	},
	{
		Why:     "clone3 keeps its flags in memory, where a filter cannot read; the C library falls back to clone",
		Verdict: Errno(unix.ENOSYS),
		Calls: []Call{
			{unix.SYS_CLONE3, "clone3"},
		},
	},
	{
		Why:     "the user's key rings",
		Verdict: Errno(unix.EPERM),
		Calls: []Call{
			{unix.SYS_ADD_KEY, "add_key"},
			{unix.SYS_REQUEST_KEY, "request_key"},
			{unix.SYS_KEYCTL, "keyctl"},
		},
	},
	{
		Why:     "changes what paths mean",
		Verdict: Errno(unix.EPERM),
		Calls: []Call{
			{unix.SYS_MOUNT, "mount"},
			{unix.SYS_UMOUNT2, "umount2"},
			{unix.SYS_PIVOT_ROOT, "pivot_root"},
			{unix.SYS_CHROOT, "chroot"},
			{unix.SYS_OPEN_TREE, "open_tree"},
			{unix.SYS_OPEN_TREE_ATTR, "open_tree_attr"},
			{unix.SYS_MOVE_MOUNT, "move_mount"},
			{unix.SYS_FSOPEN, "fsopen"},
			{unix.SYS_FSCONFIG, "fsconfig"},
			{unix.SYS_FSMOUNT, "fsmount"},
			{unix.SYS_FSPICK, "fspick"},
			{unix.SYS_MOUNT_SETATTR, "mount_setattr"},
			{unix.SYS_STATMOUNT, "statmount"},
			{unix.SYS_LISTMOUNT, "listmount"},
			{unix.SYS_SWAPON, "swapon"},
			{unix.SYS_SWAPOFF, "swapoff"},
			{unix.SYS_QUOTACTL, "quotactl"},
			{unix.SYS_QUOTACTL_FD, "quotactl_fd"},
			{unix.SYS_ACCT, "acct"},
		},
	},
	{
		Why:     "a new user namespace gives capabilities back",
		Verdict: Errno(unix.EPERM),
		Calls: []Call{
			{unix.SYS_SETNS, "setns"},
			{unix.SYS_UNSHARE, "unshare"},
		},
	},
	{
		Why:     "loads, replaces or stops the kernel",
		Verdict: Errno(unix.EPERM),
		Calls: []Call{
			{unix.SYS_KEXEC_LOAD, "kexec_load"},
			{unix.SYS_KEXEC_FILE_LOAD, "kexec_file_load"},
			{unix.SYS_INIT_MODULE, "init_module"},
			{unix.SYS_FINIT_MODULE, "finit_module"},
			{unix.SYS_DELETE_MODULE, "delete_module"},
			{unix.SYS_REBOOT, "reboot"},
			{unix.SYS_SYSLOG, "syslog"},
			{unix.SYS_NFSSERVCTL, "nfsservctl"},
			{unix.SYS_LOOKUP_DCOOKIE, "lookup_dcookie"},
			{unix.SYS_VHANGUP, "vhangup"},
		},
	},
	{
		Why:     "sets the machine's clock or name",
		Verdict: Errno(unix.EPERM),
		Calls: []Call{
			{unix.SYS_CLOCK_SETTIME, "clock_settime"},
			{unix.SYS_CLOCK_ADJTIME, "clock_adjtime"},
			{unix.SYS_SETTIMEOFDAY, "settimeofday"},
			{unix.SYS_ADJTIMEX, "adjtimex"},
			{unix.SYS_SETHOSTNAME, "sethostname"},
			{unix.SYS_SETDOMAINNAME, "setdomainname"},
		},
	},
	{
		Why:     "opens files past the path that Landlock judges",
		Verdict: Errno(unix.EPERM),
		Calls: []Call{
			{unix.SYS_NAME_TO_HANDLE_AT, "name_to_handle_at"},
			{unix.SYS_OPEN_BY_HANDLE_AT, "open_by_handle_at"},
			{unix.SYS_FANOTIFY_INIT, "fanotify_init"},
			{unix.SYS_FANOTIFY_MARK, "fanotify_mark"},
		},
	},
	{
		Why:     "System V objects and message queues are shared with every process of the user",
		Verdict: Errno(unix.EPERM),
		Calls: []Call{
			{unix.SYS_SHMGET, "shmget"},
			{unix.SYS_SHMAT, "shmat"},
			{unix.SYS_SHMCTL, "shmctl"},
			{unix.SYS_SHMDT, "shmdt"},
			{unix.SYS_SEMGET, "semget"},
			{unix.SYS_SEMOP, "semop"},
			{unix.SYS_SEMCTL, "semctl"},
			{unix.SYS_SEMTIMEDOP, "semtimedop"},
			{unix.SYS_MSGGET, "msgget"},
			{unix.SYS_MSGSND, "msgsnd"},
			{unix.SYS_MSGRCV, "msgrcv"},
			{unix.SYS_MSGCTL, "msgctl"},
			{unix.SYS_MQ_OPEN, "mq_open"},
			{unix.SYS_MQ_UNLINK, "mq_unlink"},
			{unix.SYS_MQ_TIMEDSEND, "mq_timedsend"},
			{unix.SYS_MQ_TIMEDRECEIVE, "mq_timedreceive"},
			{unix.SYS_MQ_NOTIFY, "mq_notify"},
			{unix.SYS_MQ_GETSETATTR, "mq_getsetattr"},
		},
	},
	{
		Why:     "moves pages between nodes, of other processes too",
		Verdict: Errno(unix.EPERM),
		Calls: []Call{
			{unix.SYS_MIGRATE_PAGES, "migrate_pages"},
			{unix.SYS_MOVE_PAGES, "move_pages"},
			{unix.SYS_MBIND, "mbind"},
			{unix.SYS_SET_MEMPOLICY, "set_mempolicy"},
			{unix.SYS_GET_MEMPOLICY, "get_mempolicy"},
			{unix.SYS_SET_MEMPOLICY_HOME_NODE, "set_mempolicy_home_node"},
			{unix.SYS_REMAP_FILE_PAGES, "remap_file_pages"},
			{unix.SYS_MEMFD_SECRET, "memfd_secret"},
		},
	},
	{
		Why:     "needs a privilege that init gave up",
		Verdict: Errno(unix.EPERM),
		Calls: []Call{
			{unix.SYS_SETGROUPS, "setgroups"},
		},
	},
}
