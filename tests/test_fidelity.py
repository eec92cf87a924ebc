"""What is allowed behaves as it does without a sandbox: bare Python is the oracle.

Each program prints what it sees; under a profile that allows what it does it must print the same, end the same way, and
say the same on stderr.
"""

from __future__ import annotations

import re
from itertools import zip_longest

import pytest
from complete_mode import Place

SHOW = """\
import os, sys, warnings
def show(f, *args, **kwargs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = f(*args, **kwargs)
        except BaseException as e:
            value = type(e).__name__, e.args, getattr(e, "filename", 0), getattr(e, "filename2", 0)
    print(getattr(f, "__name__", "?"), args, kwargs, repr(value), [str(w.message) for w in caught])
class P:
    def __init__(self, path): self.path = path
    def __fspath__(self): return self.path
    def __repr__(self): return "P"
class I:
    def __init__(self, n): self.n = n
    def __index__(self): return self.n
    def __repr__(self): return "I"
class S(str): pass
os.makedirs("work/d", exist_ok=True)
open("work/f", "w").close()
"""

PROGRAMS = {
    "stat": """
for f in os.stat, os.lstat, lambda p, **k: os.stat(p, **k).st_mode:
    for p in "work/none", P("work/none"), P(b"work/none"), S("work/none"), b"work/none", bytearray(b"work/none"), "work/f/x", "work/\\0", 10**6, 1.5, None, [], P(5), "x" * 300, "work/" + "y/" * 3000:
        show(f, p)
show(os.stat)
show(os.stat, "work/f", "work/f")
show(os.stat, path=5.5)
show(os.stat, "work/none", wrong=1)
show(lambda: [os.stat(p).st_size for p in ("work/f", b"work/f", P("work/f"), S("work/f"), os.open("work/f", 0))])
show(lambda: os.stat("f", dir_fd=os.open("work", 0)).st_size)
show(lambda: os.stat("f", dir_fd=I(os.open("work", 0))).st_size)
show(os.stat, "f", dir_fd=10**6)
show(os.stat, "f", dir_fd=2**40)
show(os.stat, "f", dir_fd="x")
show(lambda: os.stat("work/f", follow_symlinks=[]).st_size)
""",
    "open": """
import pathlib
for a in ("work/none",), (P("work/none"),), (b"work/none",), ("work/d",), ("work/d", "w"), ("work/f", "x"), ("work/f", "zz"), ("work/\\0",), (None,), (1.5,), (10**6,), (pathlib.Path("work/none"),), ("",), ("work/f/",):
    show(open, *a)
for a in ("work/none", os.O_RDONLY), (P("work/none"), os.O_RDONLY), ("work/new", os.O_CREAT | os.O_WRONLY, 0o600), ("work/f", I(0)), ("work/f", "x"), ("work/f",):
    show(lambda *a: os.close(os.open(*a)), *a)
d = os.open("work", os.O_RDONLY)
show(lambda: os.read(os.open("f", os.O_RDONLY, dir_fd=d), 5))
show(lambda: os.read(os.open("f", flags=I(0), mode=I(0), dir_fd=I(d)), 5))
show(os.open, "none", 0, dir_fd=d)
show(os.open, P("none"), 0, dir_fd=d)
show(os.open, "f", 0, dir_fd=10**6)
show(os.open, "f", 0, dir_fd="x")
show(lambda: os.stat(os.open("x2", os.O_CREAT, 0o640, dir_fd=d)).st_mode)
show(lambda: open("work/f", opener=lambda p, f: os.open("f", f, dir_fd=d)).close())
""",
    "folders": """
os.symlink("f", "work/link"); os.symlink("none", "work/dangling"); os.symlink("loop", "work/loop"); os.symlink("d", "work/dlink")
for p in "work", b"work", P("work"), S("work"), bytearray(b"work"), os.open("work", 0), "work/none", "work/f", P("work/none"), 1.5, "work/\\0":
    show(lambda p: sorted(os.listdir(p)), p)
    show(lambda p: sorted(e.name for e in os.scandir(p)), p)
def entry(e):
    facts = [e.name, e.path]
    for f in e.is_dir, e.is_file, e.is_symlink:
        facts.append(f())
    facts.append(e.is_dir(follow_symlinks=False)); facts.append(e.is_file(follow_symlinks=False))
    try: facts.append(oct(e.stat().st_mode))
    except OSError as x: facts.append((type(x).__name__, x.errno, x.filename))
    facts.append(oct(e.stat(follow_symlinks=False).st_mode))
    return facts
for p in "work", os.open("work", 0):
    show(lambda: sorted(map(entry, os.scandir(p)), key=str))
show(lambda: next(os.scandir("work")).stat(True))
show(lambda: next(os.scandir("work")).stat(wrong=1))
for f, a in (os.mkdir, ("work/d",)), (os.mkdir, (P("work/d"),)), (os.rmdir, ("work/f",)), (os.remove, ("work/none",)), (os.rename, ("work/none", "work/y")), (os.link, ("work/f", "work/f")), (os.link, ("work/link", "work/hard")), (os.symlink, ("a", "work/f")), (os.readlink, ("work/link",)), (os.readlink, ("work/f",)), (os.readlink, (P(b"work/link"),)), (os.truncate, ("work/none", 1)), (os.chmod, ("work/none", 1)), (os.utime, ("work/none",)), (os.access, ("work/none", 4)), (os.access, ("work/f", 4)), (os.access, (5.5, 4)), (os.chdir, ("work/f",)), (os.mkfifo, ("work/f",)), (os.statvfs, ("work/none",)), (os.pathconf, ("work/f", "zz")), (os.stat, ("work/loop",)), (os.lstat, ("work/f/",)), (os.readlink, ("work/dlink/",)):
    show(f, *a)
show(lambda: os.path.islink("work/dlink/"))
show(lambda: [os.path.isdir("work/dlink/"), os.path.isdir("work/dlink/."), os.path.exists("work/dangling"), os.path.lexists("work/dangling")])
import shutil; shutil.rmtree("work/d"); show(os.path.exists, "work/d")
""",
    "import": """
import builtins, importlib, types
class L(int): pass
os.makedirs("work/p/q"); open("work/p/__init__.py", "w").close(); open("work/p/q/__init__.py", "w").write("from .. import r\\nfrom ..r import x\\n"); open("work/p/r.py", "w").write("x = 1\\nfrom . import q\\n")
open("work/bad.py", "w").write("1/0"); open("work/syn.py", "w").write("("); os.makedirs("work/ns/inner")
sys.path.insert(0, "work")
for a, k in [((), {}), ((1,), {}), (("os",) * 7, {}), (("os",), {"level": -1}), (("os",), {"level": 1 << 80}), (("os",), {"level": "x"}), (("os",), {"level": L(0)}), (("os",), {"level": I(0)}), (("os",), {"zz": 1}), (("os", 5, 5, 5, 0), {}), (("x", {}, None, (), 1), {}), (("x", {"__package__": 5}, None, (), 1), {}), (("x", {"__package__": "a", "__spec__": 5}, None, (), 1), {}), (("x", {"__package__": "json", "__spec__": None}, None, (), 1), {}), (("", {"__package__": "json", "__spec__": None}, None, ("decoder",), 1), {}), (("x", {"__package__": "a"}, None, (), 100), {}), ((S("os"),), {}), ((b"os",), {}), (("os",), {"name": "sys"}), (("json.zzz",), {}), ((".os",), {}), (("os.",), {}), (("json", {}, {}, [5], 0), {}), (("x", {"__name__": "json.decoder"}, None, ("scanner",), 1), {}), (("p.q",), {}), (("bad",), {}), (("syn",), {}), (("ns.inner",), {}), (("a\\0b",), {}), (("\\udcff",), {})]:
    show(lambda *a, **k: builtins.__import__(*a, **k).__name__, *a, **k)
show(importlib.import_module, "none.x")
show(importlib.import_module, ".x")
show(lambda: importlib.reload(importlib.import_module("p.r")).x)
import zipfile; zipfile.ZipFile("work/z.zip", "w").writestr("inzip.py", "y = 2")
sys.path.insert(0, "work/z.zip"); show(lambda: __import__("inzip").y)
""",
    "functions": """
import inspect, pickle, copy, weakref, subprocess, functools, posix
for f in os.stat, os.lstat, os.open, os.access, os.readlink, os.popen, os.execl, os.spawnv, subprocess.run, subprocess.Popen, subprocess.call, subprocess.getoutput, subprocess.check_output, os.fork, os.kill, os.setuid, __import__, os.nice, os.mknod, posix.listdir:
    print(f.__name__, f.__qualname__, f.__module__, f.__doc__, inspect.signature(f), inspect.isroutine(f), callable(f))
print(pickle.loads(pickle.dumps(os.stat)) is os.stat, copy.deepcopy(os.stat) is os.stat, weakref.ref(os.stat)() is os.stat, os.stat.__self__)
print(sorted(f.__name__ for f in os.supports_dir_fd), sorted(f.__name__ for f in os.supports_fd), os.stat is posix.stat, os.open is posix.open)
class C: get = os.stat
print(C().get("work/f").st_size, functools.partial(os.stat, "work/f")().st_size)
print(isinstance(5, subprocess.Popen), issubclass(type("X", (subprocess.Popen,), {}), subprocess.Popen), repr(os.stat))
""",
    "what a guarded function is": """
import copy, functools, inspect, operator, pickle, posix, types, weakref, _thread, _imp, signal, _signal, os
for m, names in (posix, "open stat lstat access readlink statvfs pathconf mkfifo mknod mkdir listdir nice setsid setuid execve"), (_thread, "start_new_thread"), (_imp, "create_builtin create_dynamic _fix_co_filename"):
    for name in names.split():
        f = getattr(m, name)
        print(name, type(f), isinstance(f, types.BuiltinFunctionType), inspect.isbuiltin(f), inspect.isroutine(f), repr(f), f.__module__, f.__qualname__,
              f.__self__, (f.__doc__ or "")[:40], f.__text_signature__, pickle.loads(pickle.dumps(f)) is f, copy.deepcopy(f) is f, f is getattr(os, name, f),
              hash(f) == hash(getattr(m, name)), f == operator.attrgetter(name)(m), weakref.ref(f)() is f, [a for a in dir(f) if a not in dir(len)])
print(os.stat in os.supports_dir_fd, os.stat in os.supports_fd, os.stat in os.supports_follow_symlinks, os.open in os.supports_dir_fd)
print(functools.partial(os.stat, "work/f")().st_size, [s.st_size for s in map(os.stat, ["work/f"])])
""",
    "replaced functions": """
import importlib, unittest.mock as mock
def mine(*a): return "mine"
os.stat = mine
with mock.patch("os.open", mock.DEFAULT), mock.patch("os.lstat", lambda p: "lambda"):
    import tempfile
    print(importlib.import_module("os") is os, os.stat is mine, os.stat("x"), type(os.open).__name__, os.lstat("x"))
del os.stat; import posix; os.stat = posix.stat
print(os.stat("work/f").st_size)
""",
    "generated code": """
import dataclasses, collections, typing, enum, importlib, json
print(dataclasses.make_dataclass("M", ["q"])(3))
@dataclasses.dataclass(frozen=True, order=True, slots=True)
class D: x: int = 1
print(D(), D() < D(2), hash(D()) == hash(D()))
print(collections.namedtuple("N", "a b")(1, 2), typing.NamedTuple("T", [("z", int)])(1), enum.Enum("E", "a b").a)
print(importlib.reload(json).__name__)
""",
    "sqlite": """
import sqlite3, pathlib
for a, k in [((":memory:",), {}), (("",), {}), ((pathlib.Path("work/a.db"),), {}), ((b"work/b.db",), {}), (("file:work/c.db",), {"uri": True}), (("file:work/c.db?mode=ro",), {"uri": True}), (("file:x?mode=memory&cache=shared",), {"uri": True}), ((), {"database": "work/d.db"}), ((5,), {}), ((), {}), (("work/d",), {})]:
    show(lambda *a, **k: sqlite3.connect(*a, **k).execute("select 1").fetchall(), *a, **k)
""",
    "terminals": """
import fcntl, termios, tty
m, s = os.openpty()
print(os.isatty(s), os.ttyname(s).startswith("/dev/pts/"), len(termios.tcgetattr(s)), fcntl.ioctl(s, termios.TIOCGWINSZ, bytes(8)))
again = os.open(os.ttyname(s), os.O_RDWR | os.O_NOCTTY)
tty.setraw(again)
print(os.isatty(again), os.write(again, b"x"), os.read(m, 1))
""",
    "removing what is not there": """
import pathlib
lib = os.path.dirname(os.__file__)
for p in lib + "/none", os.fsencode(lib + "/none"), pathlib.Path(lib, "none"), lib + "/os.py/none":
    show(os.unlink, p); show(os.remove, p); show(os.rmdir, p)
show(pathlib.Path(lib, "none").unlink, missing_ok=True)
show(os.unlink, "none", dir_fd=os.open(lib, os.O_RDONLY))
""",
    "addresses": """
import socket
server = socket.create_server(("127.0.0.1", 0)); port = server.getsockname()[1]
receiver = socket.socket(type=socket.SOCK_DGRAM); receiver.bind(("127.0.0.1", I(0))); to = receiver.getsockname()[1]
def reached(host, port):
    with socket.socket() as s:
        s.connect((host, port))
        return s.getpeername() == server.getsockname()
for host in "127.0.0.1", b"127.0.0.1", bytearray(b"127.0.0.1"), S("127.0.0.1"), "127.1", "0x7f.1", "2130706433", "\\uff11\\uff12\\uff17.0.0.1", "localhost", None, 5, "\\ud800", "127.0.0.1\\0":
    for p in port, I(port), True, 1.5, "x", None, 70000, -1, 2**70:
        print(host, getattr(p, "n", p) == port, end=" ")
        try: print(reached(host, p))
        except Exception as e: print(type(e).__name__, e.args)
for address in (("127.0.0.1",), ("127.0.0.1", to, 5), ["127.0.0.1", to], "127.0.0.1", None, ()):
    for f in socket.socket.connect, socket.socket.connect_ex, socket.socket.bind, lambda s, a: s.sendto(b"x", a), lambda s, a: s.sendmsg([b"x"], [], 0, a):
        with socket.socket(type=socket.SOCK_DGRAM) as s:
            try: print(f(s, address))
            except Exception as e: print(type(e).__name__, e.args)
with socket.socket(type=socket.SOCK_DGRAM) as s:
    print(s.sendto(b"one", ("127.0.0.1", I(to))), receiver.recv(9), s.sendto(b"two", 0, ("127.0.0.1", to)), receiver.recv(9))
    print(s.sendmsg([b"three"], [], 0, (bytearray(b"127.0.0.1"), I(to))), receiver.recv(9))
""",
    "recursion": """
sys.setrecursionlimit(1000)
class F:
    def __fspath__(self): return os.stat(self)
try: os.stat(F())
except RecursionError as e: print(type(e))
""",
    "small stacks": """
import threading
for size in 32, 64, 256:
    threading.stack_size(size * 1024)
    t = threading.Thread(target=lambda: (os.stat("work/f"), open("work/f").close(), os.listdir("work"))); t.start(); t.join()
    print(size)
""",
    "texts as long as the kernel takes, and longer": """
os.mkdir("work/d"); open("work/f", "w").close()
long = "work/" + "d/../" * 900 + "f"
def same(call, *rest):
    for text in "work/" + "d/../" * 800 + "f", "work/" + "./" * 2045 + "f", "work//" + "./" * 2045 + "f", long:
        for path in text, os.fsencode(text):
            try: got = type(call(path, *rest)).__name__
            except OSError as e: got = e.errno
            print(call.__name__, len(text), got)
for name in sorted(os.pathconf_names): same(os.pathconf, name)
for call in os.stat, os.lstat, os.readlink, os.statvfs, os.listdir, os.scandir, os.chdir, os.mkdir, os.rmdir, os.remove: same(call)
for call in os.access, os.chmod, os.truncate: same(call, 0)
same(os.open, os.O_RDONLY); same(os.rename, "work/g"); same(os.link, "work/h")
""",
    "exit code": "import atexit; atexit.register(print, 'bye'); sys.exit('words')",
    "uncaught": "os.stat('work/none')",
}
GRANTS = """\
python-import=*
python-api=ALLOW:threads
python-api=ALLOW:deserialization
expose-rw=./work
expose-ro=./program.py
expose-rw=/dev/ptmx
expose-rw=/dev/pts
net=ALLOW|TCP|127.0.0.1|*|*
net=ALLOW|UDP|127.0.0.1|*|*
"""


def plain(text: str) -> str:
    """Without addresses, and without what the sandbox says at its start."""
    lines = [line for line in text.splitlines() if not line.startswith("python-sb:")]
    return re.sub(r"0x[0-9a-f]+", "0x", "\n".join(lines))


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_bare(name: str, provider: str, place: Place) -> None:
    program = place.file("program.py", "")
    program.write_text(SHOW + PROGRAMS[name])
    place.provider = provider
    place.profile(GRANTS)
    outcomes = []
    for run in place.bare, place.run:
        (place.folder / "work").mkdir()
        done = run("program.py", timeout=60)
        outcomes.append((plain(done.stdout), plain(done.stderr), done.returncode))
        (place.folder / "work").rename(place.folder / f"work{len(outcomes)}")
    bare, sandboxed = outcomes
    assert [(b, s) for b, s in zip_longest(bare[0].splitlines(), sandboxed[0].splitlines()) if b != s] == []
    assert sandboxed == bare


@pytest.mark.parametrize("setting", ["debug", "malloc_debug", "pymalloc", "malloc"])
def test_allocators(setting: str, place: Place) -> None:
    place.profile(f"env=PYTHONMALLOC={setting}\n")
    done = place.run("-c", "print('done')")
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


def test_questions_that_no_rule_can_name_end_nothing(place: Place) -> None:
    """Each is refused, and the next one is answered all the same."""
    place.profile("python-import=*\n")
    done = place.run(
        "-c",
        """
import socket
for f in (lambda: socket.socket(socket.AF_CAN, socket.SOCK_RAW, 1), lambda: socket.gethostbyaddr("127.0.0.1"),
          lambda: socket.socket(socket.AF_UNIX).connect("\\0abstract"), lambda: socket.getaddrinfo("a" * 70, -5),
          lambda: __import__("\\ud800"), lambda: open("/" + "x/" * 4000)):
    try: f()
    except Exception: pass
    try: open("/etc/passwd")
    except Exception as e: print(type(e).__name__)
""",
    )
    assert done.stdout.split() == ["RuleFileNotFoundError"] * 6, done.stderr
