"""What a ``__main__`` without a file has sent (``_travel``), made again in the sandboxed interpreter.

The names of the application's ``__main__`` that its functions refer to become names of the ``__main__`` here. Functions are
made by the guard, which knows the code that the application has sent from any other (bindings/guard/sent.c).

The functions below that stand in pickles are called with what the application chose, in the thread that took the call.
"""

from __future__ import annotations

import sys
from _thread import RLock
from types import CellType, MappingProxyType

from . import _guard
from ._registry import register_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FunctionType
    from typing import Any

    #: Name, number of its first code object, pickle of the empty shell or None, pickle of what is in it or None.
    Item = tuple[str, int, _guard.Payload | None, _guard.Payload | None]
    #: All code objects; the items that have a shell, in the order they need; all items, in the order of their contents; the
    #: label by which a function is called from here on, or "", and its qualified name; source texts by file.
    Sent = tuple[tuple[CodeType, ...], list[Item], list[Item], str, str, dict[str, str]]

#: Source files of cells that are remembered for tracebacks.
MAX_SOURCES = 256

#: Lines of the files that no file system holds: cells of a notebook.
sources: dict[str, list[bytes]] = {}


class _Sent:
    """What is being put in place just now: one at a time, since modules may be imported in between."""

    lock = RLock()
    codes: tuple[CodeType, ...] = ()
    first = 0


def install(sent: Sent) -> None:
    """Put names in place: first what others may be made of, empty; then what is in it, and the values."""
    codes, shells, contents, label, name, texts = sent
    space = vars(sys.modules["__main__"])
    space.setdefault("__builtins__", sys.modules["builtins"])
    for file, text in texts.items():
        sources[file] = text.encode("utf-8", "backslashreplace").splitlines()
    while len(sources) > MAX_SOURCES:
        del sources[next(iter(sources))]
    with _Sent.lock:
        outer = _Sent.codes, _Sent.first
        _Sent.codes = codes
        try:
            for key, _Sent.first, shell, _ in shells:
                made_by, arguments = _guard.loads(shell)
                space[key] = made_by(*arguments)
            for key, _Sent.first, shell, content in contents:
                if shell:
                    restore(space[key], _guard.loads(content))
                elif content:
                    space[key] = _guard.loads(content)
                elif _Sent.first >= 0:
                    space[key] = _guard.function(codes[_Sent.first], space, ())()
                else:
                    space.pop(key, None)
        finally:
            _Sent.codes, _Sent.first = outer
    if label:
        made = space.pop(label, None)
        register_as(label, name, named(name) if made is None else made)


def restore(made: Any, state: tuple[Any, ...]) -> None:
    if isinstance(made, type):
        restore_class(made, state)
    else:
        restore_function(made, state)


# ---- what stands in pickles ------------------------------------------------------------------------------------------


def named(path: str) -> Any:
    """A function or class of ``__main__``, by its qualified name."""
    first, *rest = path.split(".")
    found = vars(sys.modules["__main__"])[first]
    for name in rest:
        found = vars(found)[name] if name in vars(found) else getattr(found, name)
    return found


def dataclass_mark(name: str) -> Any:
    """One of the objects that dataclasses compares by identity."""
    import dataclasses

    return vars(dataclasses)[name]


def code(number: int) -> CodeType:
    return _Sent.codes[_Sent.first + number]


def module(loader: CodeType) -> Any:
    """A module, imported by the application's own code: charged to the profile as an import of that code is."""
    return _guard.function(loader, {"__name__": "__main__"}, ())()


def function(made_of: CodeType, cells: int, space: Any) -> FunctionType:
    """A function without what is in it. ``space``: its global names, a dict or a module; None is ``__main__``."""
    if space is None:
        space = sys.modules["__main__"]
    return _guard.function(made_of, space if type(space) is dict else vars(space), tuple([CellType() for _ in range(cells)]))


def restore_function(made: FunctionType, state: tuple[Any, ...]) -> None:
    attributes, contents = state
    for name, value in attributes.items():
        setattr(made, name, value)
    for cell, content in zip(made.__closure__ or (), contents, strict=True):
        fill(cell, content)


def fill(cell: CellType, content: tuple[Any, ...]) -> None:
    if content:
        (cell.cell_contents,) = content


def make_class(metaclass: Any, name: str, bases: tuple[Any, ...], space: dict[str, Any]) -> Any:
    prepare = getattr(metaclass, "__prepare__", None)
    names = prepare(name, bases) if prepare else {}
    for key, value in space.items():
        names[key] = value
    return metaclass(name, bases, names)


def make_namedtuple(name: str, fields: tuple[str, ...], defaults: tuple[Any, ...], space: dict[str, Any]) -> Any:
    from collections import namedtuple

    made = namedtuple(name, fields, defaults=defaults, module="__main__")  # type: ignore[misc]
    for key, value in space.items():
        setattr(made, key, value)
    return made


def restore_class(made: Any, state: tuple[dict[str, Any]]) -> None:
    (attributes,) = state
    for name, value in attributes.items():
        setattr(made, name, value)
        if type(value).__name__ == "cached_property":
            value.__set_name__(made, name)


def proxy(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


def lru_cache(wrapped: Any, maxsize: int | None, typed: bool) -> Any:
    from functools import lru_cache

    return lru_cache(maxsize, typed)(wrapped)


def recursive_repr(wrapped: Any, fillvalue: str) -> Any:
    from reprlib import recursive_repr

    return recursive_repr(fillvalue)(wrapped)
