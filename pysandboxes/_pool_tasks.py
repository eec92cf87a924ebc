"""The tasks of a pool: what stands in its queue, and how one is done where there is no sandbox."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from types import CoroutineType

from ._exceptions import SandBoxError
from ._sandbox import _directly, _directly_awaited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from contextvars import Context
    from typing import Any

    from ._callee import Call, Callee
    from ._live import Live


class BrokenSandboxPool(BrokenExecutor, SandBoxError):
    """No sandbox of the pool can be started; its cause says why."""


class Chunk:
    """A function that gets many rows of arguments at a time (``map`` with ``chunksize``)."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


class Work:
    """One task: what to call, the context of the one who submitted it, and the future that is to tell."""

    __slots__ = ("args", "begun", "context", "function", "future", "kwargs")

    def __init__(
        self, future: Future[Any], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], context: Context
    ) -> None:
        self.future = future
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.context = context
        self.begun = False

    def begin(self) -> bool:
        """False where it has been cancelled. A task begins once, also when another worker takes it over."""
        if not self.begun:
            self.begun = self.future.set_running_or_notify_cancel()
        return self.begun

    def fail(self, exc: BaseException) -> None:
        if self.begin():
            self.future.set_exception(exc)


class Initializer:
    """What runs first in each sandbox of a pool, as ``_live.Init`` does for a single one."""

    name = "initializer"

    def __init__(self, callee: Callee, args: tuple[Any, ...]) -> None:
        self.callee = callee
        self.args = args

    def call(self, live: Live) -> Call:
        return self.callee.task(live, self.args, {})

    def run(self) -> None:
        directly(self.callee, self.args, {})


def directly(callee: Callee, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call in this process, of an async function until it is over."""
    value = _directly(callee.function, (*callee.args, *args), {**callee.kwargs, **kwargs})
    if type(value) is not CoroutineType:
        return value
    import asyncio

    return asyncio.run(_directly_awaited(value))


def broken(cause: BaseException) -> BrokenSandboxPool:
    exc = BrokenSandboxPool(f"no sandbox of this pool can be started: {type(cause).__name__}: {cause}")
    exc.__cause__ = cause
    return exc


def unstarted(cause: BaseException) -> SandBoxError:
    exc = SandBoxError(f"the sandbox of this task could not be started: {type(cause).__name__}: {cause}")
    exc.__cause__ = cause
    return exc
