"""Functions of a ``__main__`` that no file holds: ``python -c``, standard input. Notebooks: test_notebook.py."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.smoke

Run = Callable[..., subprocess.CompletedProcess[str]]

HEAD = """
import os, pysandboxes
from pysandboxes import sandbox, sandboxes
PROFILE = os.environ["PROFILE"]
"""


@pytest.fixture
def typed(run_program: Run) -> Callable[..., list[str]]:
    """Runs a program that comes by standard input, and gives the lines that it printed."""

    def run(source: str, **options: object) -> list[str]:
        done = run_program("", "-", stdin=HEAD + source, **options)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout.splitlines()

    return run


def test_functions_and_what_they_refer_to(typed: Callable[..., list[str]]) -> None:
    assert typed(
        """
import math, functools
FACTOR = 3
OUTSIDE = os.getpid()
def even(n): return n == 0 or odd(n - 1)
def odd(n): return n != 0 and even(n - 1)
square = lambda x: x * x
def counting(start, *, step=1):
    total = start
    def up():
        nonlocal total
        total += step
        return total
    return up
up = counting(10, step=5)
@functools.lru_cache(maxsize=8)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
@sandbox
def double(x, y=FACTOR): return x * 2 + y
@sandbox
def f(n, *rest, flag=False, **more):
    "What it does."
    assert os.getpid() != OUTSIDE and __name__ == "__main__"
    size = fib.cache_info().maxsize
    return [n * FACTOR, even(10), square(5), up(), fib(30), size, double(n), math.floor(2.5), rest, flag, more]
print(f.__doc__, f.__module__)
with sandboxes(sandboxes_config=PROFILE):
    print(f(1, 2, flag=True, a=3))
    print(f(1))
    print(f.__wrapped__ is not f, double(1), up())
"""
    ) == [
        "What it does. __main__",
        "[3, True, 25, 15, 832040, 8, 5, 2, (2,), True, {'a': 3}]",
        "[3, True, 25, 20, 832040, 8, 5, 2, (), False, {}]",
        "True 5 15",
    ]


def test_the_same_by_a_command(run_program: Run) -> None:
    done = run_program(
        "", "-c", HEAD + "K = 2\n@sandbox\ndef f(x): return x * K\nwith sandboxes(sandboxes_config=PROFILE): print(f(21))"
    )
    assert (done.stdout, done.stderr) == ("42\n", "")


def test_classes(typed: Callable[..., list[str]]) -> None:
    assert typed(
        """
import abc, collections, enum
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import NamedTuple
@dataclass(order=True)
class Point:
    x: int
    y: int = 0
    tags: list = field(default_factory=list)
    def __add__(self, other): return Point(self.x + other.x, self.y + other.y)
    @property
    def both(self): return (self.x, self.y)
    @staticmethod
    def origin(): return Point(0)
    @classmethod
    def of(cls, text): return cls(*map(int, text.split()))
    class Error(ValueError): pass
@dataclass(frozen=True, slots=True)
class Slotted:
    a: int
class Base(abc.ABC):
    made = []
    def __init__(self): self.made.append(1)
    @abc.abstractmethod
    def name(self): return "Base"
class Derived(Base):
    def name(self): return super().name() + "!"
    @cached_property
    def cost(self): return 7
class Meta(type):
    def __len__(cls): return 5
class WithMeta(metaclass=Meta): other = Point
class Colour(enum.Enum):
    RED = 1
    BLUE = enum.auto()
    def low(self): return self.name.lower()
class Flag(enum.IntFlag):
    A = 1
    B = 2
Pair = collections.namedtuple("Pair", "left right", defaults=(9,))
class Row(NamedTuple):
    a: int
    b: int = 2
    def total(self): return self.a + self.b
@sandbox
def f(point, colour):
    assert type(point) is Point and colour is Colour.BLUE
    try: Base()
    except TypeError: abstract = True
    d = Derived()
    return [asdict(point + Point(1, 1)), point.both, Point.origin() < point, Point.of("3 4").both, Slotted(4).a, d.name(),
            d.cost, d.made, len(WithMeta), WithMeta.other is Point, colour.low(), Colour(1) is Colour.RED,
            (Flag.A | Flag.B).value, Pair(1)._asdict(), Row(1).total(), Row._fields, abstract, Point.Error.__base__.__name__]
with sandboxes(sandboxes_config=PROFILE):
    print(f(Point(1, 2), Colour.BLUE))
"""
    ) == [
        "[{'x': 2, 'y': 3, 'tags': []}, (1, 2), True, (3, 4), 4, 'Base!', 7, [1], 5, True, 'blue', True, 3, "
        "{'left': 1, 'right': 9}, 3, ('a', 'b'), True, 'ValueError']"
    ]


def test_what_has_changed_is_sent_again_and_nothing_else(typed: Callable[..., list[str]]) -> None:
    assert typed(
        """
seen, table, count = [], {"a": 1}, 0
def helper(): return "first"
class C: value = 1
@sandbox
def f():
    global count
    count += 1
    seen.append(count)
    return count, seen, table, helper(), C.value
old = f
with sandboxes(sandboxes_config=PROFILE) as box:
    print(f())
    print(f(), seen, count)
    table["b"] = 2
    def helper(): return "second"
    C.value = 2
    print(f())
    count = 100
    print(f()[0])
    del helper
    try: f()
    except NameError as exc: print(exc)
    def helper(): return "third"
    @sandbox
    def f(): return helper()
    print(f(), old()[3])
    box.reload()
    print(old()[:3], f())
    os.kill(box.pid, 9)
    try: f()
    except pysandboxes.SandBoxProtocolError: pass
    print(f())
"""
    ) == [
        "(1, [1], {'a': 1}, 'first', 1)",
        "(2, [1, 2], {'a': 1}, 'first', 1) [] 0",
        "(3, [1, 2, 3], {'a': 1, 'b': 2}, 'second', 2)",
        "101",
        "name 'helper' is not defined",
        "third third",
        "(101, [101], {'a': 1, 'b': 2}) third",
        "third",
    ]


def test_init_fn_and_what_it_sets(typed: Callable[..., list[str]]) -> None:
    assert typed(
        """
model = None
async def init():
    global model, later
    model, later = "loaded", 5
@sandbox
def use(): return model, later
with sandboxes(init, PROFILE) as box:
    print(use())
    box.reload()
    print(use(), model)
"""
    ) == ["('loaded', 5)", "('loaded', 5) None"]


def test_async_functions_and_generators(typed: Callable[..., list[str]]) -> None:
    assert typed(
        """
import asyncio
N = 3
def times(x): return x * N
@sandbox
async def f(x):
    await asyncio.sleep(0)
    return times(x)
@sandbox
def numbers():
    for i in range(N): yield times(i)
@sandbox
async def anumbers():
    for i in range(N): yield times(i)
class Tools:
    @staticmethod
    @sandbox
    def g(x): return times(x) + 1
async def main():
    async with sandboxes(sandboxes_config=PROFILE):
        print(await asyncio.gather(*[f(i) for i in range(50)]) == [i * 3 for i in range(50)])
        print(list(numbers()), [i async for i in anumbers()], Tools.g(1))
asyncio.run(main())
"""
    ) == ["True", "[0, 3, 6] [0, 3, 6] 4"]


def test_exceptions_come_back(typed: Callable[..., list[str]]) -> None:
    assert typed(
        """
import traceback
class Mine(Exception): pass
@sandbox
def f(x): raise Mine(x)
with sandboxes(sandboxes_config=PROFILE):
    try: f(4)
    except Mine as exc: print(exc.args, traceback.extract_tb(exc.__traceback__)[-1].name)
"""
    ) == ["(4,) f"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (
            "lock = threading.Lock()\ndef f(): return lock",
            ["__main__.f cannot travel", "'lock' (a _thread.lock), which f() refers to"],
        ),
        (
            "def h(): return file\nfile = open('/dev/null')\ndef f(): return h()",
            ["'file' (a _io.TextIOWrapper), which h() refers to"],
        ),
        ("def f(x=threading.Lock()): return x", ["with a default value"]),
        (
            "def outer():\n v = threading.Lock()\n def inner(): return v\n return inner\ng = outer()\ndef f(): return g()",
            ["'g' (a function), which f() refers to, since of its variable 'v'"],
        ),
        (
            "class C: lock = threading.Lock()\ndef f(): return C",
            ["'C' (a type), which f() refers to, since of its attribute 'lock'"],
        ),
        (
            "from typing import Generic, TypeVar\nclass Box(Generic[TypeVar('T')]): pass\ndef f(): return Box",
            ["'Box' (a type), which f() refers to", "Box is generic, a protocol or a typed dict"],
        ),
        ("from typing import TypedDict\nclass D(TypedDict): a: int\ndef f(): return D", ["D is generic, a protocol or"]),
        ("from typing import Protocol\nclass P(Protocol): pass\ndef f(): return P", ["P is generic, a protocol or"]),
        ("gen = (i for i in ())\ndef f(): return [gen for x in 'ab']", ["'gen' (a generator)"]),
    ],
)
def test_what_cannot_travel_is_named(typed: Callable[..., list[str]], names: str, words: list[str]) -> None:
    (line,) = typed(
        f"""
import threading
{names}
f = sandbox(f)
with sandboxes(sandboxes_config=PROFILE):
    try: f()
    except pysandboxes.SandBoxError as exc: print(exc)
"""
    )
    for word in (*words, "cannot", "put the function into a module"):
        assert word in line


@pytest.fixture
def narrow(tmp_path: Path) -> Path:
    path = tmp_path / "narrow"
    path.write_text("os-sandbox=${OS_SANDBOX:-auto}\npython-import=json\n")
    return path


def test_modules_are_imported_at_the_price_of_a_rule(typed: Callable[..., list[str]], narrow: Path) -> None:
    """As an import in the function would be; twice, since a name that could not be sent is not thought to be there."""
    assert typed(
        """
import json, xml.dom.minidom
from colorsys import rgb_to_hls as hls
@sandbox
def f(): return json.dumps([1])
@sandbox
def g(): return xml.dom.minidom
@sandbox
def h(): return hls
with sandboxes(sandboxes_config=PROFILE):
    print(f())
    for refused in g, g, h:
        try: refused()
        except pysandboxes.RuleModuleNotFoundError as exc: print(exc.name, exc.add[0], exc.denials[0]["site"])
    print(f())
""",
        profile=narrow,
    ) == [
        "[1]",
        "xml python-import=xml <stdin>:10",
        "xml python-import=xml <stdin>:10",
        "colorsys python-import=colorsys <stdin>:12",
        "[1]",
    ]


def test_submodules_that_are_used(typed: Callable[..., list[str]]) -> None:
    assert typed(
        """
import xml, xml.dom.minidom
@sandbox
def f(): return xml.dom.minidom.parseString("<a/>").documentElement.tagName
with sandboxes(sandboxes_config=PROFILE): print(f())
"""
    ) == ["a"]


# ---- only what the application sent -----------------------------------------------------------------------------------


ATTACKS = {
    "another code object": "make((lambda: 1).__code__.replace(co_name='x'), {}, ())",
    "code of a module": "make(json.dumps.__code__, {}, ())",
    "marshal": "marshal.loads(data)",
    "marshal, then": "make(marshal.loads(data), {}, ())",
    "FunctionType": "types.FunctionType(sent.__code__, {})",
    "exec": "exec(sent.__code__)",
    "replace": "make(sent.__code__.replace(co_consts=(2,)), {}, ())",
    "through our own": "pysandboxes._arrival.function(json.dumps.__code__, 0, {})",
    "through the server": "pysandboxes._arrival.install(((json.dumps.__code__,), [], [('n', 0, b'', b'')], '', '', {}))",
    "no cells": "make(closing.__code__, {}, ())",
    "cells that are none": "make(closing.__code__, {}, (1,))",
    "too many cells": "make(sent.__code__, {}, (types.CellType(),))",
    "globals that are none": "make(sent.__code__, type('D', (dict,), {})(), ())",
}


@pytest.mark.parametrize("what", ATTACKS)
def test_the_sandbox_cannot_run_code_of_its_own(typed: Callable[..., list[str]], what: str) -> None:
    (first, second) = typed(
        f"""
import json, marshal, types, pysandboxes._arrival
from pysandboxes import _guard
make = _guard.function
data = marshal.dumps((lambda: 1).__code__)
def sent(): return 5
def closing(): return made
def build():
    value = 1
    def closing(): return value
    return closing
closing = build()
@sandbox
def attack():
    return {ATTACKS[what]} and "got through"
@sandbox
def control():
    return _guard.function(sent.__code__, {{}}, ())()
with sandboxes(sandboxes_config=PROFILE):
    try: print(attack())
    except Exception as exc: print(type(exc).__name__, str(exc).splitlines()[0])
    print(control())
"""
    )
    assert second == "5"
    assert first.split()[0] in ("RuleApiPermissionError", "RuleEvalPermissionError", "PermissionError", "TypeError"), first


def test_in_a_program_that_is_no_sandbox_it_makes_nothing(typed: Callable[..., list[str]]) -> None:
    assert typed(
        """
from pysandboxes import _guard
try: _guard.function((lambda: 1).__code__, {}, ())
except pysandboxes.SandBoxError as exc: print(exc)
"""
    ) == ["this process is no child of sandboxes()"]
