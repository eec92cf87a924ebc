"""Start a program."""

from __future__ import annotations

from functools import partial

from attack import Attack

execute = partial(Attack, "execute")

CASES: list[Attack] = [
    execute(
        "os.system",
        """
        import os
        os.system('echo ESCAPED')
    """,
    ),
    execute(
        "os.popen",
        """
        import os
        print(os.popen('echo ESCAPED').read())
    """,
    ),
    execute(
        "os.execv",
        """
        import os
        os.execv('/bin/echo', ['echo', 'ESCAPED'])
    """,
        alone=True,
    ),
    execute(
        "os.execvp",
        """
        import os
        os.execvp('echo', ['echo', 'ESCAPED'])
    """,
        alone=True,
    ),
    execute(
        "os.spawnv",
        """
        import os
        os.spawnv(os.P_WAIT, '/bin/echo', ['echo', 'ESCAPED'])
    """,
    ),
    execute(
        "os.posix_spawn",
        """
        import os
        os.waitpid(os.posix_spawn('/bin/echo', ['echo', 'ESCAPED'], {}), 0)
    """,
    ),
    execute(
        "os.fork",
        """
        import os
        p = os.fork()
        if not p: print('ESCAPED', flush=True); os._exit(0)
        os.waitpid(p, 0)
    """,
        alone=True,
    ),
    execute(
        "os.forkpty",
        """
        import os
        p, f = os.forkpty()
        if not p: os._exit(0)
        print('ESCAPED')
    """,
        alone=True,
    ),
    execute(
        "pty.spawn",
        """
        import os
        import pty
        pty.spawn(['/bin/echo', 'ESCAPED'])
    """,
    ),
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
        "ctypes",
        """
        import os
        import ctypes
        ctypes.CDLL(None).system(b'echo ESCAPED')
    """,
    ),
    execute(
        "ctypes.pythonapi",
        """
        import os
        import ctypes
        print('ESCAPED' if ctypes.pythonapi.Py_IsInitialized() else '')
    """,
    ),
    execute(
        "subclass walk",
        """
        import os
        cls = [c for c in object.__subclasses__() if c.__name__ == '_wrap_close'][0]
        cls.__init__.__globals__['system']('echo ESCAPED')
    """,
    ),
    execute(
        "extension by another name",
        """
        import sys, types, os, _posixsubprocess as q
        if not hasattr(q, '__file__'): absent('it is built in')
        x = types.ModuleType('x'); x.__path__ = [os.path.dirname(q.__file__)]; sys.modules['x'] = x
        from x import _posixsubprocess as p
        r, w = os.pipe()
        pid = p.fork_exec([b'/bin/echo', b'ESCAPED'], [b'/bin/echo'], True, (w,), None, None, *[-1] * 6, r, w, False, False, -1, None, None, None, -1, None, False)
        os.waitpid(pid, 0)
    """,
        alone=True,
    ),
    execute(
        "extension that the program wrote",
        """
        import sys, os, _posixsubprocess as q
        if not hasattr(q, '__file__'): absent('it is built in')
        name = os.path.basename(q.__file__)
        open(WORK + '/' + name, 'wb').write(open(q.__file__, 'rb').read())
        sys.path.insert(0, os.path.abspath(WORK)); del sys.modules['_posixsubprocess']
        import _posixsubprocess as p
        print('ESCAPED' if WORK in p.__file__ else 'no')
    """,
        grants="expose-rw=./work",
        alone=True,
    ),
    execute(
        "an interpreter of Tcl",
        """
        try: import _tkinter
        except ImportError: absent('it was not built')
        try: print(_tkinter.create(None, 'x', 'Tk', 0, 1, 0).eval('exec echo ESCAPED'))
        except _tkinter.TclError: absent('the library of Tcl is not here')
    """,
        kind="native",
    ),
    execute(
        "os.execve",
        """
        import os
        os.execve('/bin/echo', ['echo', 'ESCAPED'], {})
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.execl",
        """
        import os
        os.execl('/bin/echo', 'echo', 'ESCAPED')
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.execle",
        """
        import os
        os.execle('/bin/echo', 'echo', 'ESCAPED', {})
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.execlp",
        """
        import os
        os.execlp('echo', 'echo', 'ESCAPED')
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.execlpe",
        """
        import os
        os.execlpe('echo', 'echo', 'ESCAPED', dict(PATH='/bin'))
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.execvpe",
        """
        import os
        os.execvpe('echo', ['echo', 'ESCAPED'], dict(PATH='/bin'))
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os._execvpe",
        """
        import os
        os._execvpe('echo', ['echo', 'ESCAPED'], dict(PATH='/bin'))
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "os.execve of a descriptor",
        """
        import os
        os.execve(os.open('/bin/echo', os.O_RDONLY), ['echo', 'ESCAPED'], {})
    """,
        grants="expose-ro=/bin\nexpose-ro=/usr/bin",
        kind="direct",
        alone=True,
    ),
    execute(
        "os.execve of a memory file",
        """
        import os
        fd = os.memfd_create('x', 0)
        os.write(fd, open('/bin/echo', 'rb').read())
        os.execve(fd, ['echo', 'ESCAPED'], {})
    """,
        grants="expose-ro=/bin\nexpose-ro=/usr/bin",
        kind="direct",
        alone=True,
    ),
    execute(
        "posix.execv",
        """
        import posix
        posix.execv('/bin/echo', ['echo', 'ESCAPED'])
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "posix.execve",
        """
        import posix
        posix.execve('/bin/echo', ['echo', 'ESCAPED'], {})
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "posix.system",
        """
        import posix
        posix.system('echo ESCAPED')
    """,
        kind="twin",
    ),
    execute(
        "posix.fork",
        """
        import posix
        pid = posix.fork()
        print('ESCAPED' if pid else 'child', flush=True)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "posix.forkpty",
        """
        import posix, os
        pid, fd = posix.forkpty()
        if not pid: os._exit(0)
        print('ESCAPED')
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "posix.posix_spawn",
        """
        import posix
        posix.waitpid(posix.posix_spawn('/bin/echo', ['echo', 'ESCAPED'], {}), 0)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "os.posix_spawnp",
        """
        import os
        os.waitpid(os.posix_spawnp('echo', ['echo', 'ESCAPED'], {}), 0)
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "posix.posix_spawnp",
        """
        import posix
        posix.waitpid(posix.posix_spawnp('echo', ['echo', 'ESCAPED'], {}), 0)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "os.posix_spawn with file actions",
        """
        import os
        r, w = os.pipe()
        os.waitpid(os.posix_spawn('/bin/echo', ['echo', 'ESCAPED'], {}, file_actions=[(os.POSIX_SPAWN_DUP2, w, 1)], setpgroup=0), 0)
        print(os.read(r, 99).decode())
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnl",
        """
        import os
        os.spawnl(os.P_WAIT, '/bin/echo', 'echo', 'ESCAPED')
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnle",
        """
        import os
        os.spawnle(os.P_WAIT, '/bin/echo', 'echo', 'ESCAPED', {})
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnlp",
        """
        import os
        os.spawnlp(os.P_WAIT, 'echo', 'echo', 'ESCAPED')
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnlpe",
        """
        import os
        os.spawnlpe(os.P_WAIT, 'echo', 'echo', 'ESCAPED', dict(PATH='/bin'))
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnve",
        """
        import os
        os.spawnve(os.P_WAIT, '/bin/echo', ['echo', 'ESCAPED'], {})
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnvp",
        """
        import os
        os.spawnvp(os.P_WAIT, 'echo', ['echo', 'ESCAPED'])
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os.spawnvpe",
        """
        import os
        os.spawnvpe(os.P_WAIT, 'echo', ['echo', 'ESCAPED'], dict(PATH='/bin'))
    """,
        kind="direct",
        alone=True,
    ),
    execute(
        "os._spawnvef",
        """
        import os
        os._spawnvef(os.P_WAIT, '/bin/echo', ['echo', 'ESCAPED'], None, os.execv)
    """,
        kind="twin",
        alone=True,
    ),
    execute(
        "pty.fork",
        """
        import os, pty
        pid, fd = pty.fork()
        if not pid: os._exit(0)
        print('ESCAPED')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "pty.fork without forkpty",
        """
        import os, pty
        del os.forkpty
        pid, fd = pty.fork()
        if not pid: os._exit(0)
        print('ESCAPED')
    """,
        kind="twin",
        alone=True,
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
    execute(
        "webbrowser",
        """
        import webbrowser
        webbrowser.register('x', None, webbrowser.GenericBrowser(['echo', 'ESCAPED', '%s']), preferred=True)
        webbrowser.open('x')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "webbrowser by get",
        """
        import webbrowser
        webbrowser.register('x', None, webbrowser.GenericBrowser(['echo', 'ESCAPED', '%s']), preferred=True)
        webbrowser.get().open('x')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "webbrowser GenericBrowser",
        """
        import webbrowser
        webbrowser.GenericBrowser(['echo', 'ESCAPED', '%s']).open('x')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "webbrowser UnixBrowser",
        """
        import webbrowser
        b = webbrowser.UnixBrowser('echo'); b.raise_opts = None; b.background = False; b.redirect_stdout = False
        b._invoke(['ESCAPED'], False, False)
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "webbrowser BackgroundBrowser",
        """
        import webbrowser, time
        webbrowser.BackgroundBrowser(['sh', '-c', 'echo ESCAPED']).open('x')
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "antigravity",
        """
        import webbrowser
        webbrowser.register('x', None, webbrowser.GenericBrowser(['echo', 'ESCAPED', '%s']), preferred=True)
        import antigravity
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "pydoc pipe pager",
        """
        import pydoc
        try: pydoc.pipepager('ESCAPED', 'cat')
        except AttributeError:
            import _pyrepl.pager as p; p.pipe_pager('ESCAPED', 'cat')
    """,
        kind="library",
    ),
    execute(
        "pydoc temporary file pager",
        """
        import pydoc, tempfile
        tempfile.tempdir = WORK
        if hasattr(pydoc, 'tempfilepager'): pydoc.tempfilepager('ESCAPED', 'cat')
        else:
            import _pyrepl.pager as p; p.tempfile_pager('ESCAPED', 'cat')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "platform.processor",
        r"""
        import os, platform
        open(WORK + '/uname', 'w').write('#!/bin/sh\necho x > ' + os.path.abspath(WORK + '/done')); os.chmod(WORK + '/uname', 0o755)
        os.environ['PATH'] = os.path.abspath(WORK)
        platform.processor()
        print('ESCAPED' if os.path.exists(WORK + '/done') else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "platform.architecture",
        r"""
        import os, platform
        open(WORK + '/file', 'w').write('#!/bin/sh\necho x > ' + os.path.abspath(WORK + '/done')); os.chmod(WORK + '/file', 0o755)
        os.environ['PATH'] = os.path.abspath(WORK)
        platform.architecture(os.__file__)
        print('ESCAPED' if os.path.exists(WORK + '/done') else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "uuid.getnode",
        r"""
        import os, uuid
        for name in ('ifconfig', 'ip', 'arp', 'lanscan', 'netstat'):
            open(WORK + '/' + name, 'w').write('#!/bin/sh\necho x > ' + os.path.abspath(WORK + '/done')); os.chmod(WORK + '/' + name, 0o755)
        os.environ['PATH'] = os.path.abspath(WORK)
        for f in (uuid._ifconfig_getnode, uuid._ip_getnode): f()
        print('ESCAPED' if os.path.exists(WORK + '/done') else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "ctypes.util.find_library",
        r"""
        import os, ctypes.util
        for name in ('gcc', 'ld', 'objdump'):
            open(WORK + '/' + name, 'w').write('#!/bin/sh\necho x > ' + os.path.abspath(WORK + '/done')); os.chmod(WORK + '/' + name, 0o755)
        os.environ['PATH'] = os.path.abspath(WORK)
        os.environ['TMPDIR'] = os.path.abspath(WORK)
        ctypes.util._findLib_gcc('nothing')
        print('ESCAPED' if os.path.exists(WORK + '/done') else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "ctypes.util soname",
        r"""
        import os, ctypes.util
        open(WORK + '/objdump', 'w').write('#!/bin/sh\necho x > ' + os.path.abspath(WORK + '/done')); os.chmod(WORK + '/objdump', 0o755)
        os.environ['PATH'] = os.path.abspath(WORK)
        ctypes.util._get_soname(os.__file__)
        print('ESCAPED' if os.path.exists(WORK + '/done') else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    execute(
        "distutils",
        """
        import warnings; warnings.simplefilter('ignore')
        from distutils.spawn import spawn
        spawn(['echo', 'ESCAPED'])
    """,
        before=(3, 12),
        kind="library",
    ),
    execute(
        "mailcap",
        """
        import warnings; warnings.simplefilter('ignore')
        import mailcap
        mailcap.findmatch({'a/b': [{'test': 'echo ESCAPED', 'view': 'x'}]}, 'a/b')
    """,
        before=(3, 13),
        kind="library",
    ),
    execute(
        "pipes",
        """
        import warnings; warnings.simplefilter('ignore')
        import pipes
        t = pipes.Template(); t.append('echo ESCAPED', '--')
        print(t.open(WORK + '/x', 'r').read()) if open(WORK + '/x', 'w') else 0
    """,
        grants="expose-rw=./work",
        before=(3, 13),
        kind="library",
    ),
    execute(
        "imaplib stream",
        """
        import imaplib
        try: imaplib.IMAP4_stream('echo ESCAPED >&2; echo ESCAPED')
        except imaplib.IMAP4.error as e: print(e, e.args)
        except AttributeError as e: print(e)
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "venv's helper",
        r"""
        import venv, types, os
        open(WORK + '/run', 'w').write('#!/bin/sh\necho x > ' + os.path.abspath(WORK + '/done')); os.chmod(WORK + '/run', 0o755)
        path = os.path.abspath(WORK + '/run')
        try: venv.EnvBuilder()._call_new_python(types.SimpleNamespace(env_exe=path, env_exec_cmd=path, env_dir='.'), 'x')
        except AttributeError:
            try: venv.EnvBuilder()._setup_pip(types.SimpleNamespace(env_exe=path, env_exec_cmd=path, env_dir='.'))
            except AttributeError: absent('no helper')
        print('ESCAPED' if os.path.exists(WORK + '/done') else 'no')
    """,
        grants="expose-rw=./work",
        kind="library",
    ),
    execute(
        "ensurepip",
        """
        import ensurepip, subprocess
        try: ensurepip._run_pip(['--version'])
        except subprocess.CalledProcessError: pass
        print('ESCAPED')
    """,
        kind="library",
    ),
    execute(
        "socketserver forking",
        """
        import socketserver, os
        class S(socketserver.ForkingMixIn):
            def finish_request(self, r, a): os.write(1, b'ESCAPED')
            def shutdown_request(self, r): pass
            def close_request(self, r): pass
            def handle_error(self, *a): pass
        S().process_request(None, None)
        os.wait()
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "lib2to3",
        """
        import warnings; warnings.simplefilter('ignore')
        import lib2to3.refactor as r
        m = r.MultiprocessRefactoringTool([])
        m.refactor([], num_processes=2)
        print('ESCAPED')
    """,
        before=(3, 13),
        kind="library",
        alone=True,
    ),
    execute(
        "CGI server",
        """
        import warnings; warnings.simplefilter('ignore')
        import http.server as h, os
        H = h.CGIHTTPRequestHandler
        x = H.__new__(H)
        x.have_fork = True
        x.cgi_info = ('', 'echo'); x.translate_path = lambda p: '/bin/echo'; x.is_executable = lambda p: True; x.is_cgi = lambda: True
        x.is_python = lambda p: False; x.server = type('S', (), dict(server_name='', server_port=0)); x.protocol_version = x.command = ''; x.client_address = ('', 0)
        import email.message; x.headers = email.message.Message(); x.wfile = open(1, 'wb'); x.rfile = open(0, 'rb'); x.send_response_only = lambda *a: None; x.send_response = lambda *a: None; x.flush_headers = lambda: None
        x.path = 'x?ESCAPED'; x.cgi_info = ('', 'echo?ESCAPED')
        x.run_cgi()
    """,
        grants="expose-ro=/bin\nexpose-ro=/usr/bin",
        before=(3, 15),
        kind="library",
        alone=True,
    ),
    execute(
        "test.support",
        """
        try: from test.support import script_helper
        except ImportError: absent('no tests')
        print(script_helper.assert_python_ok('-c', "print('ESC' + 'APED')").out)
    """,
        kind="library",
        alone=True,
    ),
    execute(
        "subclass walk to Popen",
        """
        import subprocess
        P = [c for c in object.__subclasses__() if c.__name__ == 'Popen'][0]
        P(['echo', 'ESCAPED']).wait()
    """,
        kind="walk",
    ),
    execute(
        "original Popen.__init__ by code",
        """
        import subprocess
        f = subprocess.Popen.__init__
        g = getattr(f, '__func__', f)
        class P(subprocess.Popen): __init__ = lambda self, *a: g(self, *a)
        P(['echo', 'ESCAPED']).wait()
    """,
        kind="walk",
    ),
    execute(
        "run's own Popen replaced",
        """
        import subprocess
        class P(subprocess.Popen): pass
        subprocess.Popen = P
        subprocess.run.__globals__['Popen'](['echo', 'ESCAPED']).wait()
    """,
        kind="state",
        alone=True,
    ),
    execute(
        "os.system kept before",
        """
        import os
        s = [v for k, v in vars(os).items() if k == 'system'][0]
        class C: system = s
        C.system('echo ESCAPED')
    """,
        kind="walk",
    ),
    execute(
        "by map and partial",
        """
        import os, functools
        list(map(functools.partial(os.system), ['echo ESCAPED']))
    """,
        kind="state",
    ),
    execute(
        "at exit",
        """
        import atexit, os
        atexit.register(os.system, 'echo ESCAPED')
    """,
        kind="state",
        alone=True,
    ),
    execute(
        "by a finalizer at the end",
        """
        import os
        class C:
            def __del__(self, system=os.system): system('echo ESCAPED')
        import sys; sys.keep = C(); c = C(); c.c = c
    """,
        kind="state",
        alone=True,
    ),
    execute(
        "by a weakref callback",
        """
        import os, weakref
        class C: pass
        c = C(); r = weakref.ref(c, lambda _: os.system('echo ESCAPED')); del c
    """,
        kind="state",
    ),
    execute(
        "by excepthook",
        """
        import os, sys
        sys.excepthook = lambda *a: os.system('echo ESCAPED')
        1 / 0
    """,
        kind="state",
        alone=True,
    ),
    execute(
        "by displayhook and codecs",
        r"""
        import os, codecs
        codecs.register_error('run', lambda e: (str(os.system('echo ESCAPED')), e.end))
        '\udc80'.encode('ascii', 'run')
    """,
        kind="state",
        alone=True,
    ),
    execute(
        "by a signal handler",
        """
        import os, signal
        signal.signal(signal.SIGALRM, lambda *a: os.system('echo ESCAPED'))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        signal.pause()
    """,
        kind="state",
        alone=True,
    ),
    execute(
        "in a thread",
        """
        import os, threading
        t = threading.Thread(target=os.system, args=('echo ESCAPED',)); t.start(); t.join()
    """,
        grants="python-api=ALLOW:threads",
        kind="state",
    ),
    execute(
        "by unraisablehook",
        """
        import os, sys
        sys.unraisablehook = lambda u: os.system('echo ESCAPED')
        class C:
            def __del__(self): 1 / 0
        C()
    """,
        kind="state",
        alone=True,
    ),
    execute(
        "under a grant of another call",
        """
        import os, subprocess
        class L(list):
            def __iter__(self):
                os.system('echo ESCAPED')
                return super().__iter__()
        try: subprocess.run(L(['true']))
        except BaseException: pass
    """,
        grants="python-api=ALLOW:subprocess.run",
        kind="object",
    ),
    execute(
        "a path that runs code under a grant",
        """
        import os, subprocess
        class P:
            def __fspath__(self):
                os.system('echo ESCAPED')
                return '/bin/true'
        subprocess.run([P()])
    """,
        grants="python-api=ALLOW:subprocess.run\nexpose-ro=/bin\nexpose-ro=/usr",
        kind="object",
    ),
    execute(
        "preexec_fn under a grant",
        """
        import os, subprocess
        subprocess.run(['true'], preexec_fn=lambda: os.system('echo ESCAPED'))
    """,
        grants="python-api=ALLOW:subprocess.run\nexpose-ro=/bin\nexpose-ro=/usr",
        kind="object",
        alone=True,
    ),
    execute(
        "environment that runs code under a grant",
        """
        import os, subprocess, collections.abc
        class E(dict):
            def items(self):
                os.system('echo ESCAPED')
                return super().items()
        subprocess.run(['true'], env=E(PATH='/bin'))
    """,
        grants="python-api=ALLOW:subprocess.run\nexpose-ro=/bin\nexpose-ro=/usr",
        kind="object",
    ),
    execute(
        "a door that is no program's own, under a grant",
        """
        import os, subprocess, functools
        class E(dict):
            items = functools.partial(os.system, 'echo ESCAPED')
        try: subprocess.run(['true'], env=E(PATH='/bin'))
        except BaseException: pass
    """,
        grants="python-api=ALLOW:subprocess.run\nexpose-ro=/bin\nexpose-ro=/usr",
        kind="object",
        gap="what the standard library calls back under a carried grant passes for its own call",
    ),
]
