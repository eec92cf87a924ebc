package audit

// process-exec: a program is started or this process copied. Several doors stand in series (getoutput, run, Popen,
// fork_exec): a grant of the outer one carries to those behind it, so the outer ones are shimmed.

const (
	whyProgram = "runs a program, which the OS layer alone holds"
	whyFork    = "a copy of the process"
	whyWrapper = "a wrapper in Python: one line for it is enough"
)

var execCalls = []Call{
	{Name: "os.system", Aliases: twin("system"), Category: ProcessExec, Event: "os.system", Why: whyProgram},
	{Name: "os.popen", Category: ProcessExec, Shim: []Target{{"os", "popen"}}, Outer: true, Why: whyWrapper},
	{Name: "os.execv", Aliases: twin("execv"), Category: ProcessExec, Event: "os.exec", Why: whyProgram},
	{Name: "os.execve", Aliases: []string{"posix.execve", "os.fexecve"}, Category: ProcessExec, Shim: posix("execve"), Outer: true,
		Why: "its event is that of execv"},
	{Name: "os.execl", Category: ProcessExec, Shim: []Target{{"os", "execl"}}, Outer: true, Why: whyWrapper},
	{Name: "os.execle", Category: ProcessExec, Shim: []Target{{"os", "execle"}}, Outer: true, Why: whyWrapper},
	{Name: "os.execlp", Category: ProcessExec, Shim: []Target{{"os", "execlp"}}, Outer: true, Why: whyWrapper},
	{Name: "os.execlpe", Category: ProcessExec, Shim: []Target{{"os", "execlpe"}}, Outer: true, Why: whyWrapper},
	{Name: "os.execvp", Category: ProcessExec, Shim: []Target{{"os", "execvp"}}, Outer: true, Why: whyWrapper},
	{Name: "os.execvpe", Category: ProcessExec, Shim: []Target{{"os", "execvpe"}}, Outer: true, Why: whyWrapper},
	{Name: "os.spawnv", Category: ProcessExec, Shim: []Target{{"os", "spawnv"}}, Outer: true, Why: "os.fork and os.exec under another name"},
	{Name: "os.spawnve", Category: ProcessExec, Shim: []Target{{"os", "spawnve"}}, Outer: true, Why: "os.fork and os.exec under another name"},
	{Name: "os.spawnvp", Category: ProcessExec, Shim: []Target{{"os", "spawnvp"}}, Outer: true, Why: "os.fork and os.exec under another name"},
	{Name: "os.spawnvpe", Category: ProcessExec, Shim: []Target{{"os", "spawnvpe"}}, Outer: true, Why: "os.fork and os.exec under another name"},
	{Name: "os.spawnl", Category: ProcessExec, Shim: []Target{{"os", "spawnl"}}, Outer: true, Why: whyWrapper},
	{Name: "os.spawnle", Category: ProcessExec, Shim: []Target{{"os", "spawnle"}}, Outer: true, Why: whyWrapper},
	{Name: "os.spawnlp", Category: ProcessExec, Shim: []Target{{"os", "spawnlp"}}, Outer: true, Why: whyWrapper},
	{Name: "os.spawnlpe", Category: ProcessExec, Shim: []Target{{"os", "spawnlpe"}}, Outer: true, Why: whyWrapper},
	{Name: "os.posix_spawn", Aliases: twin("posix_spawn"), Category: ProcessExec, Event: "os.posix_spawn", Why: whyProgram},
	{Name: "os.posix_spawnp", Aliases: twin("posix_spawnp"), Category: ProcessExec, Shim: posix("posix_spawnp"), Outer: true,
		Why: "its event is that of posix_spawn"},
	{Name: "os.startfile", Aliases: []string{"nt.startfile"}, Category: ProcessExec, Event: "os.startfile", Why: whyProgram},
	{Name: "os.fork", Aliases: twin("fork"), Category: ProcessExec, Event: "os.fork", Why: whyFork},
	{Name: "os.forkpty", Aliases: []string{"posix.forkpty", "pty.fork"}, Category: ProcessExec, Event: "os.forkpty", Why: whyFork},
	{Name: "pty.spawn", Category: ProcessExec, Event: "pty.spawn", Shim: []Target{{"pty", "spawn"}}, Outer: true, Why: whyWrapper},
	{Name: "subprocess.Popen", Aliases: []string{"asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"}, Category: ProcessExec, Event: "subprocess.Popen",
		Shim: []Target{{"subprocess", "Popen.__init__"}}, Outer: true, Why: "its event comes after the pipes are made and does not cover fork_exec and posix_spawn behind it"},
	{Name: "subprocess.run", Category: ProcessExec, Shim: []Target{{"subprocess", "run"}}, Outer: true, Why: whyWrapper},
	{Name: "subprocess.call", Category: ProcessExec, Shim: []Target{{"subprocess", "call"}}, Outer: true, Why: whyWrapper},
	{Name: "subprocess.check_call", Category: ProcessExec, Shim: []Target{{"subprocess", "check_call"}}, Outer: true, Why: whyWrapper},
	{Name: "subprocess.check_output", Category: ProcessExec, Shim: []Target{{"subprocess", "check_output"}}, Outer: true, Why: whyWrapper},
	{Name: "subprocess.getoutput", Category: ProcessExec, Shim: []Target{{"subprocess", "getoutput"}}, Outer: true, Why: whyWrapper},
	{Name: "subprocess.getstatusoutput", Category: ProcessExec, Shim: []Target{{"subprocess", "getstatusoutput"}}, Outer: true, Why: whyWrapper},
	{Name: "_posixsubprocess.fork_exec", Category: ProcessExec, Shim: []Target{{"_posixsubprocess", "fork_exec"}}, Why: "no event; multiprocessing uses it beside Popen"},
	{Name: "multiprocessing.Process.start", Aliases: []string{"multiprocessing.Process", "multiprocessing.process.BaseProcess.start", "multiprocessing.Pool",
		"multiprocessing.pool.Pool", "multiprocessing.Manager", "concurrent.futures.ProcessPoolExecutor"}, Category: ProcessExec,
		Shim: []Target{{"multiprocessing.process", "BaseProcess.start"}, {"multiprocessing.forkserver", "main"}}, Outer: true,
		Why: "every context (fork, spawn, forkserver), pools and managers start here; the fork server forks in main"},
	{Name: "multiprocessing.resource_tracker.ensure_running", Category: ProcessExec,
		Shim: []Target{{"multiprocessing.resource_tracker", "ResourceTracker.ensure_running"}}, Outer: true, Why: "shared memory starts a helper process"},
	{Name: "webbrowser.open", Aliases: []string{"webbrowser.open_new", "webbrowser.open_new_tab"}, Category: ProcessExec, Event: "webbrowser.open",
		Shim: []Target{{"webbrowser", "open"}}, Outer: true, Why: "starts a browser"},
}
