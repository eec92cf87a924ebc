"""What a program gets that uses the package's own serving code. Imported by both sides."""

from __future__ import annotations

import marshal
import pickle
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from pysandboxes import sandbox

#: A module that nothing here loads.
MODULE = "graphlib"
LOADED_BEFORE = MODULE in sys.modules
ORDER: list[str] = []


class Finalized:
    """Imports when it goes, in whichever frame that happens, and with none of its own."""

    __del__ = partial(__import__, MODULE)


class Misplaced:
    """Says that it is of a module that is not loaded."""


Misplaced.__module__ = MODULE


def resolve() -> Any:
    from pysandboxes import _serve

    return _serve.resolve(MODULE, "TopologicalSorter")


def task() -> Any:
    from pysandboxes import _serve

    return _serve._task(__import__, (MODULE,), {})


def task_by_name() -> Any:
    from pysandboxes import _serve

    return _serve._task((MODULE, "TopologicalSorter"), (), {})


def watch() -> Any:
    from pysandboxes._watch import Watch

    return Watch(MODULE, lambda: None).find_spec(MODULE)


def main_package() -> Any:
    from pysandboxes import _main_module

    _main_module._Main.path = __file__
    _main_module._Main.package = MODULE
    return _main_module.load()


def payload() -> Any:
    """A pickle that the application never sent."""
    from pysandboxes import _guard

    return _guard.loads(pickle.dumps(("os", "getcwd", (), {})))  # type: ignore[arg-type]


def pickled() -> Any:
    from pysandboxes import _pickling

    return _pickling.pickled(Misplaced())


def fill() -> Any:
    """Has an object go in a frame of the package's."""
    from pysandboxes import _arrival

    class Made:
        pass

    made = Made()
    made.last = Finalized()  # type: ignore[attr-defined]
    _arrival.restore_class(made, ({"last": None},))  # type: ignore[arg-type]


WAYS: dict[str, Callable[[], Any]] = {
    "resolve": resolve,
    "a task": task,
    "a task by its name": task_by_name,
    "a watch": watch,
    "the main file's package": main_package,
    "a class that is pickled": pickled,
    "a finalizer": fill,
}


@sandbox
def go(way: str) -> tuple[bool, str]:
    """Whether the module is loaded afterwards, and what was raised."""
    assert not LOADED_BEFORE
    raised = ""
    try:
        WAYS[way]()
    except Exception as exc:
        raised = type(exc).__name__
    return MODULE in sys.modules, raised


@sandbox
def forged_payload() -> None:
    payload()


@sandbox
def code_of_a_task() -> Any:
    from pysandboxes import _serve

    return _serve._task(marshal.loads, (marshal.dumps(7),), {})


@sandbox
def found(value: Any) -> tuple[str, bool]:
    """Takes an argument of a class that is here only because of it."""
    return type(value).__name__, MODULE in sys.modules


class Fleeting:
    """A buffer that takes itself out of the list that it is sent from."""

    def __init__(self, home: list[Any]) -> None:
        self.home = home

    def __buffer__(self, flags: int) -> memoryview:
        self.home.clear()
        return memoryview(b"fleeting" * 8192)

    def __release_buffer__(self, view: memoryview) -> None:
        ORDER.append("released")

    def __del__(self) -> None:
        ORDER.append("gone")


@sandbox
def fleeting() -> Any:
    from pysandboxes import _pickling, _serve

    def once(value: Any) -> tuple[bytes, list[Any]]:
        _serve.pickled = _pickling.pickled  # type: ignore[attr-defined]
        buffers: list[Any] = []
        buffers.append(Fleeting(buffers))
        return b"\x80\x05\x97.", buffers

    _serve.pickled = once  # type: ignore[attr-defined]
    return [b"in its place"]


@sandbox
def order() -> list[str]:
    return ORDER
