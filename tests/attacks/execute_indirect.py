"""Start a program by native code, by what was kept or is called back, and under the grant of another call."""

from __future__ import annotations

from functools import partial

from attack import Attack

execute = partial(Attack, "execute")

CASES: list[Attack] = [
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
