"""The functions that ``@sandbox`` has decorated in this process, by the name under which a call asks for them.

The sandbox calls the function itself, whatever a decorator above ``@sandbox`` has made of its name.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Modules whose import is over; one that another thread still imports is in sys.modules before its names are there.
imported: set[str] = set()
_functions: dict[tuple[str, str], Callable[..., Any]] = {}


def register(function: Callable[..., Any]) -> None:
    _functions[module_of(function), function.__qualname__] = function


def register_as(label: str, qualname: str, function: Callable[..., Any]) -> None:
    """Let calls have a function by a label in place of its module's name."""
    imported.add(label)
    _functions[label, qualname] = function


def registered(module: str, qualname: str) -> Callable[..., Any] | None:
    return _functions.get((module, qualname))


def module_of(function: Callable[..., Any]) -> str:
    """The module of a function as a call names it: the main file is ``__main__`` on both sides."""
    module = function.__module__
    return "__main__" if module == "__mp_main__" else module
