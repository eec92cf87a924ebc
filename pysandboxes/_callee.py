"""What a pool runs: how a function travels into a sandbox that was handed over as an object.

A function goes by the name under which its module has it, as with ``@sandbox``; other callables (a class's instance, a bound
method) go as pickles. Either way the sandbox itself finds what to call, and its imports are charged to the profile.
"""

from __future__ import annotations

from functools import partial
from types import BuiltinFunctionType, FunctionType

from ._exceptions import SandBoxError
from ._sandbox import CO_ASYNC_GENERATOR, CO_GENERATOR, Target, check_name, target_of
from ._wire import CHUNK, INTERNAL, TASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._live import Live

    Call = tuple[Target, tuple[Any, ...], dict[str, Any]]


class Operation(Target):
    """An operation of the serving loop that calls what it is given, in place of a function that is called by name."""

    __slots__ = ()

    def __init__(self, qualname: str, name: str, timeout: float | None, idempotent: bool) -> None:
        self.function = None
        self.module = INTERNAL
        self.qualname = qualname
        self.name = name
        self.timeout = timeout
        self.idempotent = idempotent


class Callee:
    """A callable as a sandbox finds it.

    ``target`` says so of a function, and is None of any other callable; ``function`` is what runs where there is no sandbox;
    ``name`` stands in errors. ``args`` and ``kwargs`` come first in each call: those of a ``functools.partial``.
    """

    __slots__ = ("args", "function", "given", "kwargs", "name", "target")

    def __init__(self, function: Callable[..., Any]) -> None:
        """Raises :class:`SandBoxError` for what no sandbox finds, and for generators, whose steps are calls of their own."""
        self.args: tuple[Any, ...] = ()
        self.kwargs: dict[str, Any] = {}
        while type(function) is partial:
            self.args = (*function.args, *self.args)
            self.kwargs = {**function.keywords, **self.kwargs}
            function = function.func
        self.given: Any = function
        self.function: Any = function
        self.target: Target | None = None
        if isinstance(function, FunctionType):
            target = target_of(function)
            if target is None:
                check_name(function, "a task is ")
                target = Target(function, None, False)
                target.wrapper = function
            self.target = target
            self.function = target.function
            self.name = target.name
            if target.flags & (CO_GENERATOR | CO_ASYNC_GENERATOR):
                raise SandBoxError(
                    f"{self.name} is a generator function, and a task gives one value: call it by @sandbox in a "
                    "`with sandboxes()` block, or have the task return a list"
                )
        else:
            kind = function if isinstance(function, (type, BuiltinFunctionType)) else type(function)
            self.name = f"{kind.__module__}.{kind.__qualname__}" if kind.__module__ else kind.__qualname__

    def task(self, live: Live, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """One call, as ``live.call`` takes it."""
        args, kwargs = (*self.args, *args), {**self.kwargs, **kwargs}
        if self.target is None:
            return Operation(TASK, self.name, None, False), (self.given, args, kwargs), {}
        self.target.check(live)
        return self.target, args, kwargs

    def chunk(self, live: Live, rows: list[tuple[Any, ...]]) -> Call:
        """Several calls that are made one after the other, as one. They may take as long as each of them, together."""
        found, timeout, idempotent = self.given, None, False
        if self.target is not None:
            self.target.check(live)
            timeout, idempotent = self.target.timeout, self.target.idempotent
            if self.target.module != "__main__":  # which finds its names in other ways, where it is in no file
                found = self.target.module, self.target.qualname
        rows = [(*self.args, *row) for row in rows]
        operation = Operation(CHUNK, self.name, None if timeout is None else timeout * len(rows), idempotent)
        return operation, (found, rows, self.kwargs), {}
