"""The functions that ``@sandbox`` has decorated in this process, by the name under which a call asks for them.

The sandbox calls the function itself, whatever a decorator above ``@sandbox`` has made of its name.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_functions: dict[tuple[str, str], Callable[..., Any]] = {}


def register(function: Callable[..., Any]) -> None:
    _functions[module_of(function), function.__qualname__] = function


def registered(module: str, qualname: str) -> Callable[..., Any] | None:
    return _functions.get((module, qualname))


def module_of(function: Callable[..., Any]) -> str:
    """The module of a function as a call names it: the main file is ``__main__`` on both sides."""
    module = function.__module__
    return "__main__" if module == "__mp_main__" else module
