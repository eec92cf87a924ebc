"""Start a program by subprocess, multiprocessing and asyncio."""

from __future__ import annotations

from functools import partial

from attack import Attack

execute = partial(Attack, "execute")

CASES: list[Attack] = [
    execute(
        "subprocess.run",
        """
        import os
        import subprocess
        subprocess.run(['echo', 'ESCAPED'])
    """,
    ),
    execute(
        "subprocess.getoutput",
        """
        import os
        import subprocess
        print(subprocess.getoutput('echo ESCAPED'))
    """,
    ),
    execute(
        "_posixsubprocess",
        """
        import os
        import subprocess, _posixsubprocess
        r, w = os.pipe()
        subprocess._fork_exec = getattr(subprocess, '_fork_exec', None)
        P = subprocess.Popen.__new__(subprocess.Popen)
        subprocess.Popen(['echo', 'ESCAPED']).wait()
    """,
        alone=True,
    ),
    execute(
        "multiprocessing",
        """
        import os
        import multiprocessing
        p = multiprocessing.get_context('fork').Process(target=print, args=('ESCAPED',))
        p.start(); p.join()
    """,
        alone=True,
    ),
    execute(
        "asyncio",
        """
        import os
        import asyncio
        async def f():
            p = await asyncio.create_subprocess_exec('echo', 'ESCAPED'); await p.wait()
        asyncio.run(f())
    """,
    ),
    execute(
        "subprocess.call",
        """
        import subprocess
        subprocess.call(['echo', 'ESCAPED'])
    """,
        kind="direct",
    ),
    execute(
        "subprocess.check_call",
        """
        import subprocess
        subprocess.check_call(['echo', 'ESCAPED'])
    """,
        kind="direct",
    ),
    execute(
        "subprocess.check_output",
        """
        import subprocess
        print(subprocess.check_output(['echo', 'ESCAPED']))
    """,
        kind="direct",
    ),
    execute(
        "subprocess.getstatusoutput",
        """
        import subprocess
        print(subprocess.getstatusoutput('echo ESCAPED'))
    """,
        kind="direct",
    ),
    execute(
        "subprocess shell",
        """
        import subprocess
        subprocess.Popen('echo ESCAPED', shell=True).wait()
    """,
        kind="direct",
    ),
    execute(
        "Popen subclass",
        """
        import subprocess
        class P(subprocess.Popen):
            def __init__(self, *a, **k): super().__init__(*a, **k)
        P(['echo', 'ESCAPED']).wait()
    """,
        kind="object",
    ),
    execute(
        "Popen._execute_child",
        """
        import subprocess, os
        P = subprocess.Popen
        p = P.__new__(P)
        p._child_created = False; p._waitpid_lock = __import__('threading').Lock(); p.pipesize = -1; p.returncode = None; p._input = None; p._communication_started = False; p.pid = None; p.args = []
        p._execute_child(['echo', 'ESCAPED'], None, None, True, (), None, None, None, 0, False, -1, -1, -1, -1, -1, -1, False, None, None, None, -1, False, -1)
        os.waitpid(p.pid, 0)
    """,
        kind="twin",
    ),
    execute(
        "Popen by posix_spawn",
        """
        import subprocess
        subprocess._USE_POSIX_SPAWN = True
        subprocess.Popen(['/bin/echo', 'ESCAPED'], close_fds=False).wait()
    """,
        kind="state",
        alone=True,
    ),
    execute(
        "Popen._posix_spawn",
        """
        import subprocess, os
        p = subprocess.Popen.__new__(subprocess.Popen)
        p._child_created = False; p.returncode = None
        args = (['echo', 'ESCAPED'], '/bin/echo', {}, True, -1, -1, -1, -1, -1, -1)
        try: p._posix_spawn(*args)
        except TypeError: p._posix_spawn(*args[:3], True, False, *args[4:])
        os.waitpid(p.pid, 0)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "fork_exec",
        """
        import os, _posixsubprocess as p
        r, w = os.pipe()
        extra = (False,) if __import__('sys').version_info < (3, 14) else ()
        pid = p.fork_exec([b'/bin/echo', b'ESCAPED'], [b'/bin/echo'], True, (w,), None, None, *[-1] * 6, r, w, False, False, -1, None, None, None, -1, None, *extra)
        os.waitpid(pid, 0)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "fork_exec with a preexec_fn",
        """
        import os, _posixsubprocess as p
        r, w = os.pipe()
        pid = p.fork_exec([b'/bin/echo', b'x'], [b'/bin/echo'], True, (w,), None, None, *[-1] * 6, r, w, False, False, -1, None, None, None, -1, lambda: os.write(1, b'ESCAPED'), False)
        os.waitpid(pid, 0)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "fork_exec by a subclass of tuple",
        """
        import os, _posixsubprocess as p
        class T(tuple): pass
        r, w = os.pipe()
        pid = p.fork_exec([b'/bin/echo', b'ESCAPED'], [b'/bin/echo'], True, T((w,)), None, None, *[-1] * 6, r, w, False, False, -1, None, None, None, -1, None, False)
        os.waitpid(pid, 0)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "multiprocessing spawn",
        """
        import multiprocessing
        if __name__ == '__main__':
            p = multiprocessing.get_context('spawn').Process(target=print, args=('ESCAPED',))
            p.start(); p.join()
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "multiprocessing forkserver",
        """
        import multiprocessing
        if __name__ == '__main__':
            p = multiprocessing.get_context('forkserver').Process(target=print, args=('ESCAPED',))
            p.start(); p.join()
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "multiprocessing pool",
        """
        import multiprocessing
        with multiprocessing.get_context('fork').Pool(1) as p: p.apply(print, ('ESCAPED',)); p.close(); p.join()
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "multiprocessing manager",
        """
        import multiprocessing
        with multiprocessing.Manager() as m: print('ESCAPED' if m.list([1])[0] else '')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "multiprocessing.popen_fork",
        """
        import multiprocessing.popen_fork as f, os
        class P:
            def _bootstrap(self, parent_sentinel=None): print('ESCAPED', flush=True); return 0
        f.Popen(P()).wait()
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "popen_fork._launch",
        """
        import multiprocessing.popen_fork as f
        class P:
            def _bootstrap(self, parent_sentinel=None): print('ESCAPED', flush=True); return 0
        p = f.Popen.__new__(f.Popen); p.returncode = None; p._launch(P()); p.wait()
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "popen_spawn_posix",
        """
        import multiprocessing.popen_spawn_posix as f, multiprocessing
        if __name__ == '__main__':
            p = multiprocessing.get_context('spawn').Process(target=print, args=('ESCAPED',))
            f.Popen(p).wait()
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "spawnv_passfds",
        """
        import multiprocessing.util as u, os
        os.waitpid(u.spawnv_passfds(b'/bin/echo', [b'echo', b'ESCAPED'], []), 0)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "forkserver.ensure_running",
        """
        import multiprocessing.forkserver as f
        f.ensure_running()
        print('ESCAPED' if f._forkserver._forkserver_pid else '')
        f._forkserver._stop()
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "resource tracker",
        """
        import multiprocessing.resource_tracker as f
        f.ensure_running()
        print('ESCAPED' if f._resource_tracker._pid else '')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "resource tracker launched",
        """
        import multiprocessing.resource_tracker as f
        t = f._resource_tracker
        getattr(t, '_launch', t.ensure_running)()
        print('ESCAPED' if t._pid else '')
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "shared memory",
        """
        from multiprocessing import shared_memory, resource_tracker
        s = shared_memory.SharedMemory(create=True, size=9)
        s.close(); s.unlink()
        print('ESCAPED' if resource_tracker._resource_tracker._pid else '')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "ProcessPoolExecutor",
        """
        from concurrent.futures import ProcessPoolExecutor
        with ProcessPoolExecutor(1) as p: p.submit(print, 'ESCAPED').result()
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "compileall workers",
        """
        import compileall, multiprocessing.process as p
        if __name__ == '__main__':
            open(WORK + '/a.py', 'w').write('x = 1')
            compileall.compile_dir(WORK, workers=2, quiet=1)
            print('ESCAPED' if next(p._process_counter) > 1 else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "asyncio shell",
        """
        import asyncio
        async def f():
            p = await asyncio.create_subprocess_shell('echo ESCAPED'); await p.wait()
        asyncio.run(f())
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "asyncio loop.subprocess_exec",
        """
        import asyncio
        async def f():
            loop = asyncio.get_running_loop()
            t, p = await loop.subprocess_exec(asyncio.SubprocessProtocol, 'echo', 'ESCAPED', stdout=None)
            await t._wait()
        asyncio.run(f())
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "subprocess of asyncio without an import",
        """
        import asyncio
        asyncio.base_events.subprocess.Popen(['echo', 'ESCAPED']).wait()
    """,
        kind="walk",
        alone=True,
    ),
]
