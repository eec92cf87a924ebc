"""Values that no well-meaning caller passes, made from a random number generator alone: the same seed, the same values.

Nothing here reaches outside the folder that the worker stands in: it also runs without a sandbox, as the oracle.
"""

from __future__ import annotations

import array
import functools
import gc
import io
import os
import random
from collections.abc import Callable
from typing import Any

#: Filled by the worker: the folder of the run, its secret, and the function under test (for what calls it again).
ROOT = ""
SECRET = ""
CALL: Callable[..., object] = repr
HELD: list[object] = []

PATHS = [
    "f",
    "d",
    "none",
    "d/..",
    "./f",
    "f/",
    "d//",
    "",
    ".",
    "..",
    "link",
    "link/",
    "dangling",
    "loop",
    "loop/x",
    "out",
    "out/.",
    "outdir/key",
    "d/../../../secret/key",
    "../../secret/key",
    "x" * 300,
    "y/" * 2600,
    "d/../" * 900 + "f",
    "\0",
    "f\0",
    "a\udcffb",
    "é",
    "\ud800",
    "/proc/self/cwd/f",
    "/proc/self/fd/0",
    "//proc/self/cwd/../../secret/key",
    "file:f?mode=ro",
    ":memory:",
]


def path(r: random.Random) -> str:
    kind = r.randrange(8)
    if kind < 5:
        return r.choice(PATHS)
    if kind == 5:
        return SECRET
    if kind == 6:
        return r.choice(["//", "/./", "///", "/proc/self/root/", "../" * 40, "d/" + "../" * 50]) + SECRET.lstrip("/")
    return ROOT + "/work/" + r.choice(PATHS)


def number(r: random.Random) -> int:
    return r.choice(
        [
            0,
            1,
            2,
            3,
            -1,
            -2,
            -100,
            7,
            255,
            4096,
            2**15,
            2**31 - 1,
            2**31,
            -(2**31) - 1,
            2**32 - 100,
            2**63,
            2**64,
            10**40,
            0o600,
            os.O_RDONLY,
            os.O_RDWR,
            os.O_WRONLY | os.O_CREAT,
            os.O_PATH,
            os.O_NOFOLLOW,
            os.O_DIRECTORY,
            True,
            False,
        ]
    )


class Failing:
    """Every question that C asks of it raises."""

    def __init__(self, error: type[BaseException]) -> None:
        object.__setattr__(self, "error", error)

    def fail(self, *args: object) -> Any:
        raise object.__getattribute__(self, "error")("asked")

    __fspath__ = __index__ = __int__ = __bool__ = __len__ = __iter__ = __getitem__ = __str__ = __repr__ = __float__ = (
        __call__
    ) = __enter__ = fail
    __eq__ = __hash__ = fail  # type: ignore[assignment]
    __getattr__ = fail


class Answering:
    """Answers what it was given, one after another; the last one from then on. An exception is raised."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)

    def answer(self, *args: object) -> Any:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer() if callable(answer) else answer

    __fspath__ = __index__ = __bool__ = answer

    def __repr__(self) -> str:
        return "Answering"


class Text(str):
    """A str that lies about itself."""

    def __str__(self) -> str:
        return SECRET

    __fspath__ = __str__

    def __eq__(self, other: object) -> bool:
        return bool(1 // 0)

    def __hash__(self) -> int:
        raise ValueError("hash")

    def __len__(self) -> int:
        return -1

    def encode(self, *a: object, **k: object) -> bytes:
        return os.fsencode(SECRET)


class Bytes(bytes):
    def __fspath__(self) -> str:
        return SECRET

    def __bytes__(self) -> bytes:
        return os.fsencode(SECRET)


class Number(int):
    def __index__(self) -> int:
        return 10**9

    __int__ = __index__


class Dying:
    """Asks for the secret when it dies; makes garbage of itself."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        for function in (os.stat, os.listdir):
            try:
                function("f")
            except OSError:
                pass

    def __fspath__(self) -> str:
        return "f"


def later(name: str) -> Any:
    """An object whose class gets a method while others are asked, and the one that is asked."""
    late = type("Late", (), {})()

    def become() -> Any:
        method = (lambda self: os.open(".", os.O_RDONLY)) if name == "__index__" else (lambda self: SECRET)
        setattr(type(late), name, method)
        return "f" if name == "__index__" else 0

    return late, Answering(become)


def meta(target: str) -> object:
    """Its class has __fspath__ once it was asked whether it has."""

    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            if name == "__fspath__" and name not in type.__getattribute__(cls, "__dict__"):
                cls.__fspath__ = lambda self: target  # type: ignore[attr-defined]
                raise AttributeError(name)
            return super().__getattribute__(name)

    return Meta("Shy", (), {})()


def again(r: random.Random) -> object:
    """The function under test is its own argument's answer: a recursion without a Python frame."""
    holder = type("Again", (), {})
    one = holder()
    setattr(holder, r.choice(["__fspath__", "__index__", "__bool__"]), functools.partial(CALL, one))
    return one


def dropping() -> object:
    """Drops what the worker holds of the arguments, and collects."""

    def drop() -> str:
        HELD.clear()
        gc.collect()
        return "f"

    return Answering(drop)


def deep(n: int) -> object:
    inner: object = ()
    for _ in range(n):
        inner = (inner,)
    return inner


def loop() -> object:
    items: list[object] = []
    items.append(items)
    return items


def closed() -> object:
    file = io.BytesIO()
    file.close()
    return file


def released() -> object:
    view = memoryview(b"f")
    view.release()
    return view


def exported(r: random.Random) -> object:
    return r.choice(
        [
            memoryview(b"f"),
            memoryview(bytearray(b"../../secret/key")),
            memoryview(b"f-x-")[::2],
            array.array("i", [1, 2]),
            bytearray(b"f"),
            bytearray(),
        ]
    )


ERRORS = [ValueError, KeyboardInterrupt, SystemExit, MemoryError, RecursionError, StopIteration, OSError, TypeError]

MAKERS: list[Callable[[random.Random], object]] = [
    lambda r: None,
    number,
    number,
    path,
    path,
    path,
    lambda r: os.fsencode(path(r).replace("\ud800", "x")),
    lambda r: Text(path(r)),
    lambda r: Bytes(os.fsencode(path(r).replace("\ud800", "x"))),
    lambda r: Number(r.choice([0, 1, 3])),
    lambda r: r.choice([1.5, float("nan"), float("inf"), -0.0, 1j, ..., NotImplemented]),
    lambda r: released(),
    exported,
    lambda r: closed(),
    lambda r: Failing(r.choice(ERRORS)),
    lambda r: Answering(path(r), SECRET),
    lambda r: Answering(r.choice(ERRORS)("first"), SECRET),
    lambda r: Answering(number(r), number(r)),
    lambda r: Answering(Text("f")),
    lambda r: Dying(),
    lambda r: meta(r.choice(["f", SECRET])),
    again,
    lambda r: dropping(),
    lambda r: (),
    lambda r: deep(r.choice([3, 5000])),
    lambda r: loop(),
    lambda r: tuple(range(r.choice([2, 5, 100000]))),
    lambda r: ("127.0.0.1", Answering(1)),
    lambda r: (path(r), number(r)),
    lambda r: {"level": Failing(ValueError)},
    lambda r: r.choice([object, type, Failing, len, random]),
    lambda r: (x for x in "ab"),
]


def value(r: random.Random) -> object:
    return r.choice(MAKERS)(r)
