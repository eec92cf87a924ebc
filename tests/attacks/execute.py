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
]
