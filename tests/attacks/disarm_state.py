"""Put the interpreter into a state in which a guard may forget to judge: no memory, no stack, hooks that raise, its end."""

from __future__ import annotations

from functools import partial

from attack import Attack

state = partial(Attack, "disarm", kind="state", alone=True)

READ = """
import os
def read():
    fd = os.open(SECRET, os.O_RDONLY)
    data = os.read(fd, 99)
    os.close(fd)
    return data
"""
#: Reaches the secret where print may be gone already.
LATE = "\nimport os\ndef late(*a, _open=os.open, _read=os.read, _write=os.write, path=SECRET):\n" + (
    "    if b's3cret' in _read(_open(path, 0), 99): _write(1, b'ESC' + b'APED')\n"
)

CASES: list[Attack] = [
    *(
        state(name, LATE + code, grants=grants)
        for name, code, grants in [
            ("atexit", "import atexit; atexit.register(late)", ""),
            ("weakref.finalize at exit", "import weakref\nclass C: pass\nkept = C(); weakref.finalize(kept, late)", ""),
            ("__del__ at shutdown", "class C:\n    def __del__(self, late=late): late()\nkept = C()", ""),
            (
                "__del__ in a cycle at shutdown",
                "class C:\n    def __del__(self, late=late): late()\nkept = C(); kept.me = kept",
                "",
            ),
            (
                "a generator's finally at shutdown",
                "def g(late=late):\n    try: yield\n    finally: late()\nkept = g(); next(kept)",
                "",
            ),
            ("threading's own exit", "import threading; threading._register_atexit(late)", ""),
            ("sys.excepthook", "import sys; sys.excepthook = late; 1 / 0", ""),
            (
                "sys.unraisablehook",
                "import sys\nsys.unraisablehook = late\nclass C:\n    def __del__(self): 1 / 0\nC()",
                "",
            ),
            (
                "threading.excepthook",
                "import threading\nthreading.excepthook = late\nt = threading.Thread(target=lambda: 1 / 0); t.start(); t.join()",
                "python-api=ALLOW:threads",
            ),
            (
                "a thread that outlives the main one",
                "import threading\ndef f():\n    threading.main_thread().join(); late()\nthreading.Thread(target=f).start()",
                "python-api=ALLOW:threads",
            ),
            (
                "stdout whose flush at exit reads",
                "import sys\nclass S:\n    closed = False\n    flush = late\nsys.stdout = S()",
                "",
            ),
        ]
    ),
    state(
        "no memory at each allocation in turn",
        READ
        + """
        try: import _testcapi
        except ImportError: absent('_testcapi')
        found = b''
        open_, path, close = os.open, SECRET, os.close
        fds = []
        def once(n):
            _testcapi.set_nomemory(n, n + 1)
            try: return open_(path, 0)
            except BaseException: return -1
            finally: _testcapi.remove_mem_hooks()
        for n in range(0, 250):
            fd = once(n)
            if fd >= 0: fds.append(fd)
        print('ESCAPED' if fds else 'no')
    """.replace("\n        ", "\n"),
    ),
    state(
        "no memory from an allocation on",
        """
        import os
        try: import _testcapi
        except ImportError: absent('_testcapi')
        open_, path = os.open, SECRET
        fds = []
        def once(n):
            _testcapi.set_nomemory(n)
            try: return open_(path, 0)
            except BaseException: return -1
            finally: _testcapi.remove_mem_hooks()
        for n in range(0, 250):
            fd = once(n)
            if fd >= 0: fds.append(fd)
        print('ESCAPED' if fds else 'no')
    """,
    ),
    state(
        "no memory in stat, which has no event",
        """
        import os
        try: import _testcapi
        except ImportError: absent('_testcapi')
        stat, path = os.stat, SECRET
        found = []
        def once(n, stop):
            _testcapi.set_nomemory(n, stop)
            try: return stat(path)
            except BaseException: return None
            finally: _testcapi.remove_mem_hooks()
        for n in range(0, 120):
            found.append(once(n, n + 1)); found.append(once(n, 0))
        print('ESCAPED' if any(found) else 'no')
    """,
    ),
    state(
        "no memory where a module is guarded as it is imported",
        """
        import importlib, io, sys
        try: import _testcapi
        except ImportError: absent('_testcapi')
        import pickle
        sys.modules.pop('pickle')
        def once(n):
            sys.modules.pop('pickle', None)
            _testcapi.set_nomemory(n, n + 1)
            try: importlib.import_module('pickle')
            except BaseException: return False
            finally: _testcapi.remove_mem_hooks()
            return True
        low, high = 0, 1
        while not once(high): high *= 2
        while low < high:
            middle = (low + high) // 2
            if once(middle): high = middle
            else: low = middle + 1
        for n in range(max(0, high - 200), high + 10):
            once(n)
            try: sys.modules['pickle']._Unpickler(io.BytesIO(b"cbuiltins\\nprint\\n(S'ESCAPED'\\ntR.")).load()
            except BaseException: pass
    """,
        before=(3, 12),  # from then on CPython itself may crash there
    ),
    state(
        "no memory under a limit on data",
        READ
        + """
import resource
used = int(open('/proc/self/statm').read().split()[5]) * 4096 if os.access('/proc/self/statm', 4) else 64 << 20
resource.setrlimit(resource.RLIMIT_DATA, (used + (24 << 20),) * 2)
kept, size, data = [], 1 << 22, b''
while size >= 16:
    try:
        while True: kept.append(bytearray(size))
    except MemoryError: size //= 2
    try: data = data or read()
    except (OSError, MemoryError): pass
while kept and not data:
    del kept[-50:]
    try: data = read()
    except (OSError, MemoryError): pass
del kept
got(data)
""",
        grants="python-api=ALLOW:resource.setrlimit",
    ),
    state(
        "no descriptors left",
        """
        import os, resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))
        try: print('ESCAPED' if os.stat(SECRET) else 'no')
        except OSError: print('no')
        got(open(SECRET).read())
    """,
        grants="python-api=ALLOW:resource.setrlimit",
    ),
    state(
        "at each depth of recursion",
        """
        import os, sys
        found = []
        def down(n, stat=os.stat, open=os.open, path=SECRET):
            try: found.append(stat(path))
            except (OSError, RecursionError): pass
            try: found.append(open(path, 0))
            except (OSError, RecursionError): pass
            if n and not found: down(n - 1)
        for limit in (90, 120, 400):
            sys.setrecursionlimit(limit)
            try: down(500)
            except RecursionError: pass
        sys.setrecursionlimit(1000)
        print('ESCAPED' if found else 'no')
    """,
    ),
    state(
        "at the end of a thread's smallest stack",
        """
        import os, sys, threading
        threading.stack_size(256 * 1024)
        found = []
        def down(n):
            try: found.append(os.open(SECRET, 0))
            except (OSError, RecursionError): pass
            if n and not found: down(n - 1)
        t = threading.Thread(target=down, args=(200,)); t.start(); t.join()
        print('ESCAPED' if found else 'no')
    """,
        grants="python-api=ALLOW:threads",
    ),
    state(
        "signal handlers in the midst of judging",
        """
        import os, signal
        found, calls = [], 0
        def handler(*a):
            global calls
            calls += 1
            try: found.append(os.open(SECRET, os.O_RDONLY))
            except OSError: pass
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        while calls < 200 and not found:
            for path in (SHOWN + '/page', SHOWN, WORK):
                try: os.stat(path)
                except OSError: pass
        signal.setitimer(signal.ITIMER_REAL, 0)
        print('ESCAPED' if found else 'no')
    """,
        grants="expose-ro=./shown",
        kind="race",
    ),
    state(
        "an exception by a signal handler in the midst of judging",
        """
        import os, signal
        class Out(BaseException): pass
        def handler(*a): raise Out
        signal.signal(signal.SIGALRM, handler)
        found, n = [], 0
        while n < 300 and not found:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0002)
                while True: found.append(os.open(SECRET, os.O_RDONLY)); break
            except OSError: pass
            except Out: pass
            n += 1
            try: signal.setitimer(signal.ITIMER_REAL, 0)
            except Out: pass
        print('ESCAPED' if found else 'no')
    """,
        kind="race",
    ),
    state(
        "threads that switch at every chance",
        """
        import os, sys, threading
        sys.setswitchinterval(1e-9)
        found, stop = [], []
        def allowed():
            while not stop:
                try: os.stat(SHOWN + '/page')
                except OSError: pass
        def refused():
            for _ in range(400):
                try: found.append(os.stat(SECRET))
                except OSError: pass
        others = [threading.Thread(target=allowed) for _ in range(2)]
        ours = [threading.Thread(target=refused) for _ in range(2)]
        for t in others + ours: t.start()
        for t in ours: t.join()
        stop.append(1)
        for t in others: t.join()
        print('ESCAPED' if found else 'no')
    """,
        grants="expose-ro=./shown\npython-api=ALLOW:threads",
        kind="race",
    ),
    state(
        "sys.audit floods the hook",
        """
        import os, sys
        for n in range(60_000): sys.audit(f'flood.{n % 5000}', n)
        got(open(SECRET).read())
    """,
        kind="flood",
    ),
    *(
        state(name, f"import os, sys\n{code}\ngot(open(SECRET).read())")
        for name, code in [
            ("the end of the hooks raised by the program", "sys.audit('cpython._PySys_ClearAuditHooks')"),
            ("the start of a program raised by the program", "sys.audit('cpython.run_file', SECRET)"),
            (
                "events of odd arguments",
                "for a in ((), (None,), (1, 2, 3), ([],)):\n    try: sys.audit('open', *a)\n    except Exception: pass",
            ),
            (
                "setlocale and codecs replaced",
                "import codecs, locale\nlocale.setlocale(locale.LC_ALL, 'C')\ncodecs.register(lambda n: None)",
            ),
            (
                "surrogateescape replaced",
                "import codecs\ncodecs.register_error('surrogateescape', lambda e: (SECRET, e.end))\n"
                "try: open('\\udc80')\nexcept OSError: pass",
            ),
            ("a directory that is gone", "os.mkdir(WORK + '/gone'); os.chdir(WORK + '/gone'); os.rmdir(os.getcwd())"),
            ("the collector off and thresholds at one", "import gc\ngc.set_threshold(1, 1, 1); gc.disable(); gc.freeze()"),
            ("sys.intern and hash tables filled", "kept = [sys.intern('n%d' % n) for n in range(200_000)]"),
            ("signals blocked", "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))"),
            ("SIGPIPE, SIGCHLD and SIGIO ignored", "import signal\nfor s in (13, 17, 29): signal.signal(s, signal.SIG_IGN)"),
        ]
    ),
    state(
        "a hook of the program's own that raises",
        """
        import os, sys
        def hook(event, args):
            if event in ('open', 'os.listdir'): raise ValueError(event)
        sys.addaudithook(hook)
        try: os.stat(SECRET)
        except OSError: pass
        else: print('ESCAPED')
    """,
        grants="python-api=ALLOW:sys.addaudithook",
    ),
    state(
        "a hook of the program's own that changes the argument",
        """
        import os, sys
        class Path:
            at = os.path.abspath(SHOWN + '/page')
            def __fspath__(self): return self.at
        def hook(event, args):
            Path.at = SECRET
        sys.addaudithook(hook)
        for use in (open, os.open, os.stat, os.listdir, os.readlink):
            Path.at = os.path.abspath(SHOWN + '/page')
            try: x = use(Path(), 0) if use is os.open else use(Path())
            except OSError: continue
            got(x.read() if use is open else os.read(x, 99) if use is os.open else str(x))
        got(open(SECRET).read())
    """,
        grants="expose-ro=./shown\npython-api=ALLOW:sys.addaudithook",
        kind="object",
    ),
    *(
        state(
            f"warnings.{what} replaced while a granted function warns",
            f"""
            import os, subprocess, warnings
            def inside(*a, **k):
                os.system('echo ESCAPED')
            warnings.simplefilter('always')
            {code}
            subprocess.run(['/bin/true'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=1)
        """,
            grants="python-api=ALLOW:subprocess.run\nexpose-ro=/bin\nexpose-ro=/usr",
        )
        for what, code in [
            ("showwarning", "warnings.showwarning = inside"),
            ("formatwarning", "warnings.formatwarning = inside"),
        ]
    ),
    state(
        "warnings that are errors",
        """
        import os, sys, warnings
        warnings.simplefilter('error')
        warnings.showwarning = None
        for path in (bytearray(SECRET.encode()), memoryview(SECRET.encode()), SECRET):
            for use in (os.stat, os.listdir, open):
                try: use(path)
                except (OSError, TypeError, ValueError, Warning): continue
                if path == SECRET: print('ESCAPED')
    """,
    ),
    state(
        "a trace function that changes what importlib compiles",
        """
        import importlib, os, sys
        with open(WORK + '/traced.py', 'w') as f: f.write('x = 1')
        sys.path.insert(0, WORK)
        sys.dont_write_bytecode = True
        importlib.invalidate_caches()
        def trace(frame, event, arg):
            if frame.f_code.co_name == 'source_to_code' and event == 'call':
                frame.f_locals['data'] = b"print('ESC' + 'APED')"
            return trace
        sys.settrace(trace)
        import traced
    """,
        grants="expose-rw=./work\npython-api=ALLOW:introspection",
        kind="text",
    ),
    state(
        "a profile function inside a guarded function",
        """
        import os, sys
        found = []
        def profile(frame, event, arg):
            if event.startswith('c_') and arg is os.stat:
                sys.setprofile(None)
                try: found.append(os.stat(SECRET))
                except OSError: pass
                sys.setprofile(profile)
        sys.setprofile(profile)
        for n in range(5):
            try: os.stat(SHOWN + '/page')
            except OSError: pass
        sys.setprofile(None)
        print('ESCAPED' if found else 'no')
    """,
        grants="expose-ro=./shown\npython-api=ALLOW:introspection",
    ),
    Attack(
        "disarm",
        "in a context of its own",
        """
        import contextvars
        contextvars.Context().run(lambda: got(open(SECRET).read()))
    """,
        kind="state",
    ),
]
