"""What the tests of results call in a sandbox: values of every mode, and streams that an honest child would not send."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import ipaddress
import json.decoder
import os
import pathlib
import subprocess
import types
import uuid
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pysandboxes import sandbox

MADE: list[str] = []


@dataclass
class User:
    name: str
    tags: list[str] = field(default_factory=list)
    owner: Any = None


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class Rights(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


class Point(NamedTuple):
    x: int
    y: int


class Slots:
    __slots__ = ("left", "right")

    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right


class Outer:
    class Inner:
        def __init__(self, value: Any) -> None:
            self.value = value

    def method(self) -> None: ...


class Bag(dict[str, Any]):
    label = ""


class Node:
    def __init__(self) -> None:
        self.me = self


class Zone(datetime.tzinfo):
    def utcoffset(self, when: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta(hours=1)

    def dst(self, when: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta(0)


class Starts(subprocess.Popen[bytes]):
    """Runs a program when it is made."""


class Meta(type):
    """Makes classes."""


class Fails:
    def __setstate__(self, state: Any) -> None:
        raise KeyError("state")


class Error(Exception):
    pass


#: Names under which this module has what others define.
run = os.system
Starter = subprocess.Popen
codes = json.decoder


def touch(path: str) -> str:
    """A function of the application's that no result has any business with."""
    MADE.append(path)
    return path


class Raw:
    """A stream that is sent as the pickle of this value."""

    def __init__(self, stream: bytes) -> None:
        self.stream = stream


VALUES: dict[str, Any] = {
    "user": User("a", ["b"], User("c")),
    "enum": [Colour.RED, Rights.READ | Rights.WRITE],
    "named tuple": Point(1, 2),
    "slots": Slots(1, [2]),
    "nested class": Outer.Inner({"k": (1, 2)}),
    "dict subclass": Bag(a=1),
    "class": User,
    "error": Error("text", 5),
    "error of the library": json.JSONDecodeError("m", "doc", 1),
    "namespace": types.SimpleNamespace(a=1),
    "object with values": User("x", [], [datetime.date(2024, 1, 2), decimal.Decimal("1.5"), pathlib.PurePosixPath("/a")]),
    "default of a class": collections.defaultdict(User, {"k": User("d")}),
    "own zone": datetime.datetime(2024, 1, 2, tzinfo=Zone()),
    "values": [
        uuid.UUID(int=5),
        fractions.Fraction(1, 3),
        ipaddress.ip_network("10.0.0.0/8"),
        collections.Counter("aab"),
        collections.deque([1], 4),
    ],
}


@sandbox
def value(name: str) -> Any:
    return VALUES[name]


@sandbox
async def value_async(name: str) -> Any:
    return VALUES[name]


@sandbox
def values(names: list[str]) -> Any:
    for name in names:
        yield VALUES[name]


@sandbox
def cycle() -> Node:
    return Node()


@sandbox
def stream(data: bytes) -> Any:
    """Sends ``data`` as the pickle of a result."""
    import pysandboxes._serve as serve

    honest = serve.pickled
    serve.pickled = lambda value: (value.stream, []) if type(value) is Raw else honest(value)  # type: ignore[attr-defined]
    return Raw(data)


class Hostile(Exception):
    """Answers nothing that it is asked."""

    def __init__(self, *args: Any) -> None:
        MADE.append("Hostile")
        super().__init__(*args)

    def refuse(self, *args: Any) -> Any:
        raise RuntimeError("not this")

    __reduce__ = __reduce_ex__ = __repr__ = __str__ = __getattribute__ = __setattr__ = refuse  # type: ignore[assignment]
    args = __cause__ = __context__ = __traceback__ = __notes__ = __dict__ = property(refuse)  # type: ignore[assignment]


class Mute:
    def __str__(self) -> str:
        raise SystemExit(3)


class Liar(Exception):
    """Says that it is of another class."""

    __class__ = KeyboardInterrupt  # type: ignore[assignment]


class Outer2(Exception):
    class Inner(Exception):
        pass


def with_notes(exc: Exception, *notes: Any) -> Exception:
    exc.__notes__ = list(notes)
    return exc


RAISED: dict[str, Any] = {
    "hostile": lambda: Hostile("text", 7),
    "hostile in a group": lambda: ExceptionGroup("g", [ValueError("first"), Hostile("x"), KeyError("last")]),
    "notes that cannot be said": lambda: with_notes(ValueError("v"), "one", Mute(), "three"),
    "a liar": lambda: Liar("l"),
    "nested": lambda: Outer2.Inner("in"),
    "an argument that is no data": lambda: ValueError(Mute()),
}


@sandbox
def throw(name: str) -> None:
    raise RAISED[name]()


@sandbox
def throw_from(name: str, cause: str) -> None:
    try:
        raise RAISED[cause]()
    except Exception as exc:
        raise RAISED[name]() from exc


@sandbox
def forge(descriptor: dict[str, Any], rich: bytes | None) -> None:
    """Sends an account of an exception that no honest child would give."""
    import pysandboxes._serve as serve

    honest = serve.Describer.describe, serve.rich_form
    told = {
        "message": "m",
        "base": False,
        "frames": [],
        "denials": [],
        "notes": [],
        "cause": None,
        "context": None,
        **descriptor,
    }

    def describe(self: Any, exc: BaseException, denials: Any = None, depth: int = 0) -> dict[str, Any]:
        serve.Describer.describe, serve.rich_form = honest  # type: ignore[method-assign]
        return {"module": "builtins", "qualname": "ValueError", "suppress": False, "exceptions": [], **told}

    serve.Describer.describe = describe  # type: ignore[method-assign]
    serve.rich_form = lambda exc: rich
    raise ValueError
