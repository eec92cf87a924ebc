"""The attack corpus of the Python layer: payloads as a program would run them, by objective.

Each prints ESCAPED when it reaches its aim. Run bare it must (the negative control: a payload that does nothing proves
nothing); run under a profile that grants imports but not the aim it must not.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attack:
    """One payload. ``grants`` are profile lines beyond ``python-import=*``; ``{secret}`` and ``{port}`` are filled in."""

    objective: str
    name: str
    code: str
    grants: str = ""
    before: tuple[int, int] = (4, 0)
    """The first Python on which the payload does not work any more."""


READ = "print('ESCAPED' if 's3cret' in {expression} else 'no')"


def read(name: str, code: str, grants: str = "", before: tuple[int, int] = (4, 0)) -> Attack:
    return Attack("read", name, code, grants, before)


CASES = [
    # ---- read a file that no rule exposes
    read("open", "data = open({secret!r}).read()\nprint('ESCAPED' if 's3cret' in data else 'no')"),
    read("bytes path", "import os\nprint('ESCAPED' if b's3cret' in open(os.fsencode({secret!r}), 'rb').read() else 'no')"),
    read("os.open", "import os\nprint('ESCAPED' if b's3cret' in os.read(os.open({secret!r}, os.O_RDONLY), 99) else 'no')"),
    read("pathlib", "import pathlib\nprint('ESCAPED' if 's3cret' in pathlib.Path({secret!r}).read_text() else 'no')"),
    read("io.FileIO", "import io\nprint('ESCAPED' if b's3cret' in io.FileIO({secret!r}).read() else 'no')"),
    read("_io.open_code", "import io\nprint('ESCAPED' if b's3cret' in io.open_code({secret!r}).read() else 'no')"),
    read(
        "opener",
        "import os\nprint('ESCAPED' if 's3cret' in open('x', opener=lambda p, f: os.open({secret!r}, f)).read() else 'no')",
    ),
    read(
        "dot dot",
        "import os\nprint('ESCAPED' if 's3cret' in open(os.path.join(os.getcwd(), '..', os.path.relpath({secret!r}, '..'))).read() else 'no')",
    ),
    read(
        "chdir",
        "import os\nos.chdir(os.path.dirname({secret!r}))\nprint('ESCAPED' if 's3cret' in open(os.path.basename({secret!r})).read() else 'no')",
    ),
    read(
        "dir_fd",
        "import os\nd = os.open(os.path.dirname({secret!r}), os.O_PATH)\nprint('ESCAPED' if b's3cret' in os.read(os.open(os.path.basename({secret!r}), 0, dir_fd=d), 99) else 'no')",
    ),
    read("proc self root", "print('ESCAPED' if 's3cret' in open('/proc/self/root' + {secret!r}).read() else 'no')"),
    read(
        "symlink",
        "import os\nos.symlink({secret!r}, 'work/link')\nprint('ESCAPED' if 's3cret' in open('work/link').read() else 'no')",
        "expose-rw=./work",
    ),
    read(
        "hard link",
        "import os\nos.link({secret!r}, 'work/hard')\nprint('ESCAPED' if 's3cret' in open('work/hard').read() else 'no')",
        "expose-rw=./work",
    ),
    read(
        "rename out",
        "import os\nos.rename({secret!r}, 'work/moved')\ndata = open('work/moved').read()\nos.rename('work/moved', {secret!r})\nprint('ESCAPED' if 's3cret' in data else 'no')",
        "expose-rw=./work",
    ),
    read(
        "shutil",
        "import shutil\nshutil.copy({secret!r}, 'work/copy')\nprint('ESCAPED' if 's3cret' in open('work/copy').read() else 'no')",
        "expose-rw=./work",
    ),
    read(
        "fspath that changes its mind",
        "class P:\n    n = 0\n    def __fspath__(self):\n        P.n += 1\n        return 'work/ok' if P.n == 1 else {secret!r}\nopen('work/ok', 'w').write('x')\nimport _io\nfor _ in range(3):\n    if b's3cret' in _io.FileIO(P()).read(): print('ESCAPED')",
        "expose-rw=./work",
    ),
    read(
        "str subclass",
        "class S(str):\n    def __str__(self): return 'work/ok'\n    def __fspath__(self): return 'work/ok'\nprint('ESCAPED' if 's3cret' in open(S({secret!r})).read() else 'no')",
        "expose-rw=./work",
    ),
    read("linecache", "import linecache\nprint('ESCAPED' if 's3cret' in ''.join(linecache.getlines({secret!r})) else 'no')"),
    read("fileinput", "import fileinput\nprint('ESCAPED' if 's3cret' in ''.join(fileinput.input([{secret!r}])) else 'no')"),
    read("stat", "import os\nos.stat({secret!r})\nprint('ESCAPED')"),
    read("exists", "import os\nprint('ESCAPED' if os.path.exists({secret!r}) else 'no')"),
    read("posix twin", "import posix\nposix.stat({secret!r})\nprint('ESCAPED')"),
    read("listdir", "import os\nprint('ESCAPED' if 'key' in os.listdir(os.path.dirname({secret!r})) else 'no')"),
    read(
        "scandir", "import os\nprint('ESCAPED' if 'key' in [e.name for e in os.scandir(os.path.dirname({secret!r}))] else 'no')"
    ),
    read(
        "walk", "import os\nprint('ESCAPED' if any('key' in f for _, _, f in os.walk(os.path.dirname({secret!r}))) else 'no')"
    ),
    read("glob", "import glob, os\nprint('ESCAPED' if glob.glob(os.path.dirname({secret!r}) + '/*') else 'no')"),
    read("sqlite", "import sqlite3\nsqlite3.connect('file:' + {secret!r} + '?mode=ro', uri=True)\nprint('ESCAPED')"),
    read(
        "dir_fd beside an exposed folder",
        "import os\nd = os.open('work', os.O_RDONLY)\nrel = os.path.relpath({secret!r}, 'work')\ndeep = 'work/' + 'x/' * (rel.count('..') + 3)\nos.makedirs(deep); os.chdir(deep)\nprint('ESCAPED' if b's3cret' in os.read(os.open(rel, 0, dir_fd=d), 99) else 'no')",
        "expose-rw=./work",
    ),
    read(
        "dir_fd by __index__",
        "import os\nclass I:\n    def __init__(self, n): self.n = n\n    def __index__(self): return self.n\nd = os.open('work', os.O_RDONLY)\nrel = os.path.relpath({secret!r}, 'work')\ndeep = 'work/' + 'x/' * (rel.count('..') + 3)\nos.makedirs(deep); os.chdir(deep)\nos.stat(rel, dir_fd=I(d))\nprint('ESCAPED')",
        "expose-rw=./work",
    ),
    read(
        "hard link to where a link leads",
        "import os\nos.symlink({secret!r}, 'work/link')\nd = os.open('work', os.O_RDONLY)\nos.link('link', 'hard', src_dir_fd=d, dst_dir_fd=d)\nprint('ESCAPED' if 's3cret' in open('work/hard').read() else 'no')",
        "expose-rw=./work",
    ),
    read(
        "no-follow with a slash",
        "import os\nos.symlink(os.path.dirname({secret!r}), 'work/link')\nd = os.open('work/link/', os.O_RDONLY | os.O_NOFOLLOW)\nprint('ESCAPED' if 'key' in os.listdir(d) else 'no')",
        "expose-rw=./work",
    ),
    read(
        "lstat with a slash",
        "import os\nos.symlink(os.path.dirname({secret!r}), 'work/link')\nos.lstat('work/link/')\nprint('ESCAPED')",
        "expose-rw=./work",
    ),
    read(
        "lstat with a dot",
        "import os\nos.symlink(os.path.dirname({secret!r}), 'work/link')\nos.lstat('work/link/.')\nprint('ESCAPED')",
        "expose-rw=./work",
    ),
    read(
        "stat by a link",
        "import os\nos.symlink({secret!r}, 'work/link')\nos.stat('work/link')\nprint('ESCAPED')",
        "expose-rw=./work",
    ),
    read(
        "chmod by a link",
        "import os\nos.symlink({secret!r}, 'work/link')\nos.chmod('work/link', 0o644)\nprint('ESCAPED')",
        "expose-rw=./work",
    ),
    read(
        "bytearray path",
        "import os, warnings\nwarnings.simplefilter('ignore')\nos.stat(bytearray(os.fsencode({secret!r})))\nprint('ESCAPED')",
        before=(3, 12),
    ),
    read(
        "DirEntry",
        "import os\nos.symlink({secret!r}, 'work/link')\nfor e in os.scandir('work'):\n    if e.is_file() and e.stat().st_size: print('ESCAPED')",
        "expose-rw=./work",
    ),
    read(
        "sqlite URI",
        "import sqlite3\nsqlite3.connect('file://localhost' + {secret!r}[:-1] + '%79?x=mode=memory&mode=ro', uri=True)\nprint('ESCAPED')",
    ),
    read(
        "ssl",
        "import ssl\ntry: ssl.create_default_context().load_cert_chain({secret!r})\nexcept ssl.SSLError: print('ESCAPED')",
    ),
    # ---- execute a program
    *(
        Attack("execute", name, f"import os\n{code}", "")
        for name, code in {
            "os.system": "os.system('echo ESCAPED')",
            "os.popen": "print(os.popen('echo ESCAPED').read())",
            "os.execv": "os.execv('/bin/echo', ['echo', 'ESCAPED'])",
            "os.execvp": "os.execvp('echo', ['echo', 'ESCAPED'])",
            "os.spawnv": "os.spawnv(os.P_WAIT, '/bin/echo', ['echo', 'ESCAPED'])",
            "os.posix_spawn": "os.waitpid(os.posix_spawn('/bin/echo', ['echo', 'ESCAPED'], {{}}), 0)",
            "os.fork": "p = os.fork()\nif not p: print('ESCAPED', flush=True); os._exit(0)\nos.waitpid(p, 0)",
            "os.forkpty": "p, f = os.forkpty()\nif not p: os._exit(0)\nprint('ESCAPED')",
            "pty.spawn": "import pty\npty.spawn(['/bin/echo', 'ESCAPED'])",
            "subprocess.run": "import subprocess\nsubprocess.run(['echo', 'ESCAPED'])",
            "subprocess.getoutput": "import subprocess\nprint(subprocess.getoutput('echo ESCAPED'))",
            "_posixsubprocess": "import subprocess, _posixsubprocess\nr, w = os.pipe()\nsubprocess._fork_exec = getattr(subprocess, '_fork_exec', None)\nP = subprocess.Popen.__new__(subprocess.Popen)\nsubprocess.Popen(['echo', 'ESCAPED']).wait()",
            "multiprocessing": "import multiprocessing\np = multiprocessing.get_context('fork').Process(target=print, args=('ESCAPED',))\np.start(); p.join()",
            "asyncio": "import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('echo', 'ESCAPED'); await p.wait()\nasyncio.run(f())",
            "ctypes": "import ctypes\nctypes.CDLL(None).system(b'echo ESCAPED')",
            "ctypes.pythonapi": "import ctypes\nprint('ESCAPED' if ctypes.pythonapi.Py_IsInitialized() else '')",
            "subclass walk": "cls = [c for c in object.__subclasses__() if c.__name__ == '_wrap_close'][0]\ncls.__init__.__globals__['system']('echo ESCAPED')",
        }.items()
    ),
    Attack(
        "execute",
        "extension by another name",
        "import sys, types, os, _posixsubprocess as q\nx = types.ModuleType('x'); x.__path__ = [os.path.dirname(q.__file__)]; sys.modules['x'] = x\nfrom x import _posixsubprocess as p\nr, w = os.pipe()\npid = p.fork_exec([b'/bin/echo', b'ESCAPED'], [b'/bin/echo'], True, (w,), None, None, *[-1] * 6, r, w, False, False, -1, None, None, None, -1, None, False)\nos.waitpid(pid, 0)",
    ),
    Attack(
        "execute",
        "extension that the program wrote",
        "import sys, os, _posixsubprocess as q\nname = os.path.basename(q.__file__)\nopen('work/' + name, 'wb').write(open(q.__file__, 'rb').read())\nsys.path.insert(0, os.path.abspath('work')); del sys.modules['_posixsubprocess']\nimport _posixsubprocess as p\nprint('ESCAPED' if 'work' in p.__file__ else 'no')",
        "expose-rw=./work",
    ),
    # ---- send data away
    Attack(
        "exfiltrate", "create_connection", "import socket\nsocket.create_connection(('127.0.0.1', {port}), 5)\nprint('ESCAPED')"
    ),
    Attack(
        "exfiltrate",
        "connect_ex",
        "import socket\nprint('ESCAPED' if socket.socket().connect_ex(('127.0.0.1', {port})) == 0 else 'no')",
    ),
    Attack(
        "exfiltrate",
        "mapped address",
        "import socket\ns = socket.socket(socket.AF_INET6)\ns.connect(('::ffff:127.0.0.1', {port}))\nprint('ESCAPED')",
    ),
    Attack(
        "exfiltrate", "decimal spelling", "import socket\nsocket.socket().connect(('2130706433', {port}))\nprint('ESCAPED')"
    ),
    Attack("exfiltrate", "empty host", "import socket\nsocket.socket().connect(('', {port}))\nprint('ESCAPED')"),
    Attack("exfiltrate", "_socket", "import _socket\n_socket.socket().connect(('127.0.0.1', {port}))\nprint('ESCAPED')"),
    Attack(
        "exfiltrate",
        "http.client",
        "import http.client\nhttp.client.HTTPConnection('127.0.0.1', {port}, timeout=5).connect()\nprint('ESCAPED')",
    ),
    Attack(
        "exfiltrate",
        "asyncio",
        "import asyncio\nasync def f():\n    await asyncio.open_connection('127.0.0.1', {port})\n    print('ESCAPED')\nasyncio.run(f())",
    ),
    Attack(
        "exfiltrate",
        "udp",
        "import socket\nsocket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))\nprint('ESCAPED')",
    ),
    Attack(
        "exfiltrate",
        "sendmsg",
        "import socket\nsocket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('127.0.0.1', {port}))\nprint('ESCAPED')",
    ),
    Attack(
        "exfiltrate", "listen", "import socket\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\nprint('ESCAPED')"
    ),
    Attack("exfiltrate", "listen without bind", "import socket\ns = socket.socket()\ns.listen()\nprint('ESCAPED')"),
    # ---- steal a secret from the environment
    Attack("secret", "os.environ", "import os\nprint('ESCAPED' if os.environ.get('SECRET_TOKEN') else 'no')"),
    Attack("secret", "os.environb", "import os\nprint('ESCAPED' if os.environb.get(b'SECRET_TOKEN') else 'no')"),
    Attack("secret", "posix.environ", "import posix\nprint('ESCAPED' if b'SECRET_TOKEN' in posix.environ else 'no')"),
    Attack("secret", "proc environ", "print('ESCAPED' if 'SECRET_TOKEN' in open('/proc/self/environ').read() else 'no')"),
    Attack(
        "secret",
        "proc pid environ",
        "import os\nprint('ESCAPED' if 'SECRET_TOKEN' in open(f'/proc/{{os.getpid()}}/environ').read() else 'no')",
    ),
    # ---- run code from a string
    Attack("string", "eval", "print(eval(\"'ESC' + 'APED'\"))"),
    Attack("string", "exec", "exec(\"print('ESC' + 'APED')\")"),
    Attack(
        "string", "compile", "import types\ntypes.FunctionType(compile(\"print('ESC' + 'APED')\", 'x', 'exec'), globals())()"
    ),
    Attack(
        "string",
        "code.replace",
        "def f(): return 'x'\ng = type(f)(f.__code__.replace(co_consts=(None, 'ESCAPED')), {{}})\nprint(g())",
    ),
    Attack(
        "string",
        "exec in a thread",
        "import _thread, time\n_thread.start_new_thread(exec, (\"print('ESC' + 'APED', flush=True)\", {{}}))\nimport sys, threading\nthreading.Event().wait(1)",
        "python-api=ALLOW:threads",
    ),
    Attack(
        "string",
        "exec by importlib",
        "import importlib._bootstrap as b\nb._call_with_frames_removed(exec, \"print('ESC' + 'APED')\")",
    ),
    Attack("string", "timeit", "import timeit\ntimeit.timeit(\"print('ESC' + 'APED')\", number=1)"),
    Attack(
        "string",
        "loader",
        "from importlib.machinery import SourceFileLoader\nexec(SourceFileLoader.source_to_code(SourceFileLoader('x', 'x'), b\"print('ESC' + 'APED')\", 'x'))",
    ),
    Attack("string", "pickle", "import pickle\nprint(pickle.loads(b\"cbuiltins\\nprint\\n(S'ESCAPED'\\ntR.\"))"),
    Attack("string", "runpy's helper", "import runpy\nrunpy._run_code(\"print('ESC' + 'APED')\", {{}}, mod_name='x')"),
    Attack(
        "string",
        "dataclasses' helper",
        "import dataclasses\nclass C: pass\nif hasattr(dataclasses, '_create_fn'):\n    C.f = dataclasses._create_fn('f', ['self'], [\"return 'ESC' + 'APED'\"])\nelse:\n    b = dataclasses._FuncBuilder({{}})\n    b.add_fn('f', ['self'], [\"  return 'ESC' + 'APED'\"])\n    b.add_fns_to_class(C)\nprint(C().f())",
    ),
    Attack(
        "string",
        "exec at exit",
        "import atexit, sys\natexit.register(exec, \"print('ESC' + 'APED')\", {{}})\natexit.register(sys.audit, 'cpython.run_interactivehook', None)\natexit.register(sys.audit, 'cpython.run_stdin')",
    ),
    # ---- disarm the guard
    Attack(
        "disarm",
        "builtins anew",
        "import sys\ndel sys.modules['builtins']\nimport builtins\nbuiltins.__import__('posix').stat({secret!r})\nprint('ESCAPED')",
    ),
    Attack(
        "disarm", "posix anew", "import sys\ndel sys.modules['posix']\nimport posix\nposix.stat({secret!r})\nprint('ESCAPED')"
    ),
    Attack(
        "disarm",
        "create_builtin",
        "import _imp, importlib.machinery as m\nposix = _imp.create_builtin(m.ModuleSpec('posix', None))\n_imp.exec_builtin(posix)\nposix.stat({secret!r})\nprint('ESCAPED')",
    ),
    Attack("disarm", "reload os", "import importlib, os\nimportlib.reload(os)\nos.stat({secret!r})\nprint('ESCAPED')"),
    Attack(
        "disarm",
        "gc for the original",
        "import gc, types\nfor o in gc.get_objects():\n    if isinstance(o, types.BuiltinFunctionType) and o.__name__ == 'stat' and o.__module__ == 'posix':\n        o({secret!r})\n        print('ESCAPED')",
        "python-api=ALLOW:introspection",
    ),
    Attack(
        "disarm",
        "referents of the shim",
        "import gc, os\nfound = [o for o in gc.get_referents(os.stat) if callable(o)] or [os.stat]\nfound[0]({secret!r})\nprint('ESCAPED')",
        "python-api=ALLOW:introspection",
    ),
    Attack(
        "disarm",
        "attributes of the shim",
        "import os\nfor n in ('__wrapped__', '__self__', '__func__', '__closure__', '__globals__', '__code__'):\n    f = getattr(os.stat, n, None)\n    if callable(f): f({secret!r})\nos.stat({secret!r})\nprint('ESCAPED')",
    ),
    Attack(
        "disarm",
        "import after del of the shim",
        "import builtins, importlib\ndel builtins.__import__\nimportlib.import_module('os').stat({secret!r})\nprint('ESCAPED')",
    ),
    Attack(
        "disarm",
        "inspect replaced",
        "import sys, types, os\ngot = []\nsys.modules['inspect'] = m = types.ModuleType('inspect')\nm.signature = lambda o: got.append(o)\ngetattr(os.stat, '__signature__', None)\n(got or [os.stat])[0]({secret!r})\nprint('ESCAPED')",
    ),
    Attack(
        "disarm",
        "original by a module of the same name",
        "import sys, types, importlib\nm = types.ModuleType('os'); real = sys.modules['posix']\nsys.modules['posix'] = types.ModuleType('posix'); sys.modules.pop('posix')\nimport posix\nfor f in (posix.stat, vars(posix)['stat'], getattr(posix, 'stat')): f({secret!r})\nprint('ESCAPED')",
    ),
    # ---- attack the channel
    Attack("channel", "close every descriptor", "import os\nos.closerange(3, 4096)\nopen({secret!r}).read()\nprint('ESCAPED')"),
    Attack(
        "channel",
        "dup2 over the question socket",
        "import os, socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)\nfor fd in range(3, 1100):\n    try: os.fstat(fd)\n    except OSError: continue\n    if fd not in (a.fileno(), b.fileno()): os.dup2(b.fileno(), fd)\na.send(bytes([0x97, 2, 0xc3, 0, 0, 0xa0, 0xc0, 0xc0]) * 1)\nopen({secret!r}).read()\nprint('ESCAPED')",
    ),
    Attack(
        "channel",
        "an answer left for the guard",
        "import os, struct\nbin = lambda b: bytes([0xc4, len(b)]) + b\nok = os.fsencode(os.__file__)\nfor n in range(1, 9):\n    for fd in range(3, 1100):\n        try: os.write(fd, b'\\x95\\xd3' + struct.pack('>q', n) + b'\\xa4file' + bin(ok) + b'\\xc2\\xa4open')\n        except OSError: pass\n    try: print('ESCAPED' if 's3cret' in open({secret!r}).read() else 'no')\n    except OSError: pass",
    ),
    # ---- raw memory through what ctypes charges (memmove and Union are SECURITY.md's)
    Attack("native", "from_address", "import ctypes\nctypes.c_int.from_address(id(1))\nprint('ESCAPED')"),
    Attack("native", "cast", "import ctypes\nctypes.cast(id(1), ctypes.c_void_p)\nprint('ESCAPED')"),
    Attack("native", "dlopen by name", "import _ctypes\n_ctypes.dlopen('libc.so.6', 0)\nprint('ESCAPED')"),
    Attack("native", "dlopen of the program", "import _ctypes\n_ctypes.dlopen(None, 0)\nprint('ESCAPED')"),
]
