"""``SandboxPoolExecutor``: the executor of ``concurrent.futures`` whose workers are sandboxed interpreters."""

from __future__ import annotations

import os
import weakref
from concurrent.futures import Executor, Future
from contextvars import copy_context
from itertools import chain, islice

from . import _context
from ._callee import Callee
from ._pool_tasks import Chunk, Work
from ._pool_workers import Crew

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any, ParamSpec, TypeVar, overload

    from ._context import Rule

    P = ParamSpec("P")
    T = TypeVar("T")
else:
    from ._sandbox import overload


class SandboxPoolExecutor(Executor):
    """Runs functions in up to ``max_workers`` sandboxes of one profile, one task at a time in each.

    Used as ``concurrent.futures.ProcessPoolExecutor`` is: ``submit``, ``map``, ``shutdown``, ``with``, and by
    ``loop.run_in_executor``. A task is a function that an import finds by its name (with ``@sandbox`` or without), sync or
    async, or another callable that can be pickled; its module is loaded, and charged to the profile, in the sandbox.
    What a task prints and logs comes out in the application as it is written, in the context of the one who submitted it.

    ``max_workers``: sandboxes at most, started as they are needed; the processors of this process by default.
    ``initializer(*initargs)``: called first in each sandbox, and again in those that take the place of a former one.
    ``max_tasks_per_child``: tasks (or chunks of them) after which a sandbox is replaced by a fresh one.
    The other arguments are those of :class:`pysandboxes.sandboxes`, rules among them; the profile is read here, once.

    A task whose sandbox dies fails with :class:`SandBoxProtocolError`, and the next one gets a new sandbox. Where none can ever
    be started, tasks fail with ``concurrent.futures.BrokenExecutor`` (then a :class:`SandBoxError` too), as does
    ``submit``. What cannot travel is told by the future, not by ``submit``.

    Under ``os-sandbox=none``, and in a process that is sandboxed itself, tasks run in threads of this process.

    Raises :class:`ConfigSyntaxError` for the profile or a rule, ``ValueError`` and ``TypeError`` for the other arguments.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        max_tasks_per_child: int | None = None,
        sandboxes_config: str | os.PathLike[str] | None = None,
        config_path: str | os.PathLike[str] | None = None,
        envs: Mapping[str, str] | None = None,
        python_args: Sequence[str] | None = None,
        graceful_shutdown: bool = True,
        **rules: Rule,
    ) -> None:
        if sandboxes_config is not None and config_path is not None:
            raise TypeError("give sandboxes_config or config_path, which is another name for it, not both")
        if "learn" in rules:
            raise TypeError("a pool does not learn: learn its profile with sandboxes(learn=...) and the same functions")
        _check_count("max_workers", max_workers)
        _check_count("max_tasks_per_child", max_tasks_per_child)
        if initializer is not None and not callable(initializer):
            raise TypeError(f"initializer={initializer!r}: a callable is wanted")
        self._crew = Crew(
            max_workers or len(os.sched_getaffinity(0)),
            max_tasks_per_child,
            None if initializer is None else (Callee(initializer), tuple(initargs)),
            graceful_shutdown,
        )
        self._crew.prepare(
            profile=sandboxes_config if sandboxes_config is not None else config_path,
            envs=envs,
            python_args=python_args,
            rules=rules,
            package=None if _context.inside() else _context._calling_package(),
        )
        # An executor that nobody holds any longer ends when its tasks are done, as those of the standard library do.
        weakref.finalize(self, self._crew.close).atexit = False

    @overload
    def submit(self, fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]: ...
    @overload
    def submit(  # noqa: F811
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]: ...
    def submit(  # noqa: F811
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> Future[Any]:
        """Have ``fn(*args, **kwargs)`` run in a sandbox; of an async function the future has what it returns.

        Arguments are pickled when a worker takes the task up. Raises ``RuntimeError`` after ``shutdown``,
        ``BrokenExecutor`` where no sandbox can be started, :class:`SandBoxError` in a fork of the application.
        """
        future: Future[Any] = Future()
        self._crew.add(Work(future, fn, args, kwargs, copy_context()))
        return future

    def map(
        self, fn: Callable[..., T], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1, **options: Any
    ) -> Iterator[T]:
        """``map(fn, *iterables)`` in the sandboxes, results in order.

        ``chunksize``: arguments that travel together, as one call: faster for many small tasks. ``timeout``: seconds until
        all results must be there. ``options`` are those that a later Python adds to ``Executor.map``.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be at least 1")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout, **options)
        rows: Iterator[tuple[Any, ...]] = zip(*iterables)  # noqa: B905 - of different lengths, as Executor.map takes them
        chunks = iter(lambda: list(islice(rows, chunksize)), [])
        chunk: Any = Chunk(fn)
        results: Iterator[list[T]] = super().map(chunk, chunks, timeout=timeout, **options)
        return chain.from_iterable(results)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks and end the sandboxes when the last is done.

        ``wait``: return when they have ended. ``cancel_futures``: cancel the tasks that have not begun.
        """
        self._crew.close(cancel=cancel_futures)
        if wait:
            self._crew.join()

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        """Wait for all tasks. Ctrl-C cancels those that have not begun, and gives those under way a moment."""
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            self._crew.hurry()
        try:
            self.shutdown(wait=True)
        except KeyboardInterrupt:
            self._crew.hurry()
            self.shutdown(wait=True)
            raise

    def stats(self) -> list[dict[str, Any]]:
        """Figures of each sandbox that runs now, as the handle of ``sandboxes`` gives them: ``pid``, ``denials``, …"""
        return self._crew.stats()

    def __repr__(self) -> str:
        return f"<SandboxPoolExecutor {self._crew.state()}, {len(self._crew.workers)} of {self._crew.size} workers>"


def _check_count(name: str, value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r}: an int above zero, or None, is wanted")
    if value < 1:
        raise ValueError(f"{name}={value!r}: at least 1 is wanted")
