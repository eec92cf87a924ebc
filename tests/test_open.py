"""FileIO and open() with path objects and openers: as in plain Python where it is allowed, and no way round where not."""

from __future__ import annotations

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke
PROVIDERS = pytest.mark.parametrize("provider", ["landlock", "subprocess"])
PROFILE = "python-import=*\nexpose-rw=./work\n"

WORKS = """
import io, os, pathlib, tempfile, warnings
warnings.simplefilter("ignore")
class Name(str): pass
class P:
    def __init__(self, p): self.p = p
    def __fspath__(self): return self.p
    def __repr__(self): return f"P({self.p!r})"
class Number:
    def __init__(self, n): self.n = n
    def __index__(self): return self.n
class Sub(io.FileIO):
    def __init__(self, *a, **k): super().__init__(*a, **k)
for cls in (io.FileIO, Sub):
    for name in ("work/f", b"work/f", pathlib.Path("work/f"), P("work/f"), P(b"work/f"), Name("work/f"), "work/\\u20ac", "work/\\xe4"):
        f = cls(name, "w"); f.write(b"x"); f.close()
        f = cls(file=name, mode="r+", closefd=True, opener=None)
        print(cls.__name__, type(f.name).__name__, f.name, f.mode, f.read()); f.close()
def opener(name, flags):
    print("opener", name, flags & os.O_ACCMODE, flags & os.O_CREAT != 0)
    return os.open("work/f", flags)
for name in ("no such name", b"nor this", "x", b"y", "", P("/etc/nothing"), "/root/x", "\\u20ac"):
    with open(name, "rb", buffering=0, opener=opener) as f: print(name, f.name, f.read())
    if isinstance(name, P): continue  # here the opener gets what the path object says, as open() hands it on
    with io.FileIO(name, "r", opener=opener) as f: print(name, f.name, f.read())
folder = os.open("work", os.O_RDONLY)
with open("f", opener=lambda p, flags: os.open(p, flags, dir_fd=folder)) as f: print(f.read(), f.name)
r, w = os.pipe()
with open("a pipe", "wb", opener=lambda p, f: w) as f: f.write(b"by a pipe")
with io.FileIO(Number(r)) as f: print(f.read(), type(f.name).__name__)
f = io.FileIO("work/f"); fd = f.fileno(); f.__init__(pathlib.Path("work/f"), "w"); print(f.name, f.mode, f.closed); f.close()
print(pathlib.Path("work/f").write_bytes(b"1"), tempfile.NamedTemporaryFile(dir="work").read())
for bad in ((), (None,), (1.5,), ("work/none",), (P("work/none"),), (P(5),), ("work",), (P("work"),), ("a\\0b",), (P("a\\0b"),), ("work/f", "q"), ("work/f", 5), ("work/f", "r", False), (-1,), (99999,), (Number(99999),), ("work/f", "x"), (object(),), ("f", "r", True, 5), ("f", "r", True, lambda p, f: -3), ("f", "r", True, lambda p, f: "s"), ("f", "r", True, lambda p, f: 1 / 0), ("f", "r", True, None, 1)):
    try: print(bad, io.FileIO(*bad))
    except BaseException as e: print(type(e).__name__, e, getattr(e, "errno", None), type(getattr(e, "filename", None)).__name__)
for bad in ({"file": "f", "nothing": 1}, {"mode": "r"}, {"file": P("work/none"), "opener": opener, "closefd": False}):
    try: print(io.FileIO(**bad))
    except BaseException as e: print(type(e).__name__, e)
try: io.FileIO("f", file="g")
except TypeError as e: print(e)
"""


@PROVIDERS
def test_what_is_allowed_is_as_in_plain_python(place: Place, provider: str) -> None:
    place.provider = provider
    (place.folder / "work").mkdir()
    place.profile(PROFILE)
    bare = place.bare("-c", WORKS.replace("object()", "P([])"))
    assert bare.returncode == 0, bare.stderr
    for made in (place.folder / "work").iterdir():
        made.unlink()
    done = place.run("-c", WORKS.replace("object()", "P([])"))
    clean = [" ".join(line.split(" at 0x")[0] for line in run.stdout.splitlines(keepends=True)) for run in (bare, done)]
    assert clean[1] == clean[0], done.stderr
    assert done.returncode == 0, done.stderr


@PROVIDERS
def test_what_an_opener_opens_is_judged(place: Place, provider: str) -> None:
    place.provider = provider
    (place.folder / "work").mkdir()
    place.file("out", "secret")
    place.profile(PROFILE)
    code = """
import gc, io, os, weakref
def show(f):
    try: print(f())
    except OSError as e: print(type(e).__name__)
show(lambda: open("work/f", opener=lambda p, flags: os.open("out", flags)).read())
show(lambda: open("out").read())
class Asked:
    def __bool__(self):
        show(lambda: io.FileIO("out").read())
        return True
    def __index__(self): return int(bool(self))  # what 3.11 asks
show(lambda: io.FileIO("out", closefd=Asked(), opener=lambda p, f: io.FileIO(p).detach()).read())
class Path:
    n = 0
    def __fspath__(self):
        self.n += 1
        return "work/f" if self.n == 1 else "out"
open("work/f", "w").write("fine")
for _ in range(2): show(lambda: io.FileIO(Path()).read())
name, got = "out", []
class Dying:
    def __del__(self):
        try: got.append(io.FileIO(name).read())
        except OSError: pass
gc.set_threshold(1)
for _ in range(300):
    d = Dying(); d.d = d; del d
    try: io.FileIO(name, opener=lambda p, f: os.open("work/f", f)).read()
    except OSError: pass
print(got)
"""
    bare = place.bare("-c", code.replace("io.FileIO(p).detach()", "os.open(p, f)"))
    assert "secret" in bare.stdout, bare.stderr
    done = place.run("-c", code.replace("io.FileIO(p).detach()", "os.open(p, f)"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["RuleFileNotFoundError"] * 4 + ["b'fine'"] * 2 + ["[]"], done.stdout
