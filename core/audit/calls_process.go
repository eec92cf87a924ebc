package audit

// process-control: signals, priorities, sessions and limits. Most of it has no event.
var processCalls = []Call{
	{Name: "os.kill", Aliases: twin("kill"), Category: ProcessControl, Event: "os.kill", Why: "signals other processes of the user"},
	{Name: "os.killpg", Aliases: twin("killpg"), Category: ProcessControl, Event: "os.killpg", Why: "signals a process group"},
	{Name: "subprocess.Popen.send_signal", Aliases: []string{"subprocess.Popen.terminate", "subprocess.Popen.kill", "multiprocessing.Process.terminate", "multiprocessing.Process.kill"},
		Category: ProcessControl, With: ProcessExec, Shim: []Target{{"subprocess", "Popen.send_signal"}, {"multiprocessing.popen_fork", "Popen._send_signal"}}, Outer: true,
		Why: "who may start a program may end it (a timeout of run does); the program could signal as well"},
	{Name: "signal.pthread_kill", Aliases: []string{"_signal.pthread_kill"}, Category: ProcessControl, Event: "signal.pthread_kill", Why: "signals a thread; a wrong number crashes"},
	{Name: "signal.pidfd_send_signal", Aliases: []string{"_signal.pidfd_send_signal"}, Category: ProcessControl,
		Shim: []Target{{"_signal", "pidfd_send_signal"}, {"signal", "pidfd_send_signal"}}, Why: "no event"},
	{Name: "fcntl.fcntl", Category: ProcessControl, Event: "fcntl.fcntl", Why: "F_SETOWN alone: makes another process the owner of a descriptor, to whom its signals go"},
	{Name: "fcntl.ioctl", Category: ProcessControl, Slot: true, Why: "FIOSETOWN and SIOCSPGRP, as fcntl.fcntl; TIOCSTI and TIOCLINUX type into the terminal"},
	{Name: "os.nice", Aliases: twin("nice"), Category: ProcessControl, Shim: posix("nice"), Why: "no event"},
	{Name: "os.setpriority", Aliases: twin("setpriority"), Category: ProcessControl, Shim: posix("setpriority"), Why: "no event; any process of the user"},
	{Name: "os.sched_setaffinity", Aliases: twin("sched_setaffinity"), Category: ProcessControl, Shim: posix("sched_setaffinity"), Why: "no event; any process of the user"},
	{Name: "os.sched_setscheduler", Aliases: twin("sched_setscheduler"), Category: ProcessControl, Shim: posix("sched_setscheduler"), Why: "no event; any process of the user"},
	{Name: "os.sched_setparam", Aliases: twin("sched_setparam"), Category: ProcessControl, Shim: posix("sched_setparam"), Why: "no event; any process of the user"},
	{Name: "os.setpgid", Aliases: twin("setpgid"), Category: ProcessControl, Shim: posix("setpgid"), Why: "no event; leaves the group that the supervisor ends"},
	{Name: "os.setpgrp", Aliases: twin("setpgrp"), Category: ProcessControl, Shim: posix("setpgrp"), Why: "no event; leaves the group that the supervisor ends"},
	{Name: "os.setsid", Aliases: twin("setsid"), Category: ProcessControl, Shim: posix("setsid"), Why: "no event; leaves the terminal's session"},
	{Name: "os.tcsetpgrp", Aliases: twin("tcsetpgrp"), Category: ProcessControl, Shim: posix("tcsetpgrp"), Why: "no event; takes the terminal"},
	{Name: "os.login_tty", Aliases: twin("login_tty"), Category: ProcessControl, Shim: posix("login_tty"), Why: "no event; takes a terminal"},
	{Name: "resource.setrlimit", Category: ProcessControl, Event: "resource.setrlimit", Why: "raises the limits of the profile up to the hard ones"},
	{Name: "resource.prlimit", Category: ProcessControl, Event: "resource.prlimit", Why: "limits of any process of the user"},
}

// privileges: identities, namespaces, root folder. None has an event.
var privilegeCalls = []Call{
	{Name: "os.setuid", Aliases: twin("setuid"), Category: Privileges, Shim: posix("setuid"), Why: "no event"},
	{Name: "os.seteuid", Aliases: twin("seteuid"), Category: Privileges, Shim: posix("seteuid"), Why: "no event"},
	{Name: "os.setreuid", Aliases: twin("setreuid"), Category: Privileges, Shim: posix("setreuid"), Why: "no event"},
	{Name: "os.setresuid", Aliases: twin("setresuid"), Category: Privileges, Shim: posix("setresuid"), Why: "no event"},
	{Name: "os.setgid", Aliases: twin("setgid"), Category: Privileges, Shim: posix("setgid"), Why: "no event"},
	{Name: "os.setegid", Aliases: twin("setegid"), Category: Privileges, Shim: posix("setegid"), Why: "no event"},
	{Name: "os.setregid", Aliases: twin("setregid"), Category: Privileges, Shim: posix("setregid"), Why: "no event"},
	{Name: "os.setresgid", Aliases: twin("setresgid"), Category: Privileges, Shim: posix("setresgid"), Why: "no event"},
	{Name: "os.setgroups", Aliases: twin("setgroups"), Category: Privileges, Shim: posix("setgroups"), Why: "no event"},
	{Name: "os.initgroups", Aliases: twin("initgroups"), Category: Privileges, Shim: posix("initgroups"), Why: "no event"},
	{Name: "os.chroot", Aliases: twin("chroot"), Category: Privileges, Shim: posix("chroot"), Why: "no event; paths mean other files afterwards"},
	{Name: "os.setns", Aliases: twin("setns"), Category: Privileges, Shim: posix("setns"), Since: "3.12", Why: "no event; joins another namespace"},
	{Name: "os.unshare", Aliases: twin("unshare"), Category: Privileges, Shim: posix("unshare"), Since: "3.12", Why: "no event; new namespaces widen what the kernel offers"},
	{Name: "time.clock_settime", Aliases: []string{"time.clock_settime_ns"}, Category: Privileges,
		Shim: []Target{{"time", "clock_settime"}, {"time", "clock_settime_ns"}}, Why: "no event; the clock of the machine"},
	{Name: "syslog.syslog", Category: Privileges, Shim: []Target{{"syslog", "syslog"}}, Why: "the C library writes to the log of the machine, through /dev/log"},
	{Name: "socket.sethostname", Aliases: []string{"_socket.sethostname"}, Category: Privileges, Event: "socket.sethostname", Why: "the name of the machine"},
	{Name: "spwd.getspnam", Category: Privileges, Shim: []Target{{"spwd", "getspnam"}}, Until: "3.12", Why: "no event; the C library reads the passwords of the machine"},
	{Name: "spwd.getspall", Category: Privileges, Shim: []Target{{"spwd", "getspall"}}, Until: "3.12", Why: "no event; the C library reads the passwords of the machine"},
}

// threads. The events came with 3.12 (start_joinable_thread: 3.13); the shims serve 3.11.
var threadCalls = []Call{
	{Name: "_thread.start_new_thread", Aliases: []string{"threading.Thread.start", "threading.Thread", "_thread.start_new", "concurrent.futures.ThreadPoolExecutor",
		"asyncio.to_thread", "threading.Timer"}, Category: Threads, Event: "_thread.start_new_thread",
		Shim: []Target{{"_thread", "start_new_thread"}, {"_thread", "start_new"}}, Why: "a thread bomb needs no other right"},
	{Name: "_thread.start_joinable_thread", Category: Threads, Event: "_thread.start_joinable_thread", Since: "3.13",
		Why: "what threading.Thread.start calls from 3.13 on"},
}
