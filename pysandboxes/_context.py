"""``sandboxes``, ``run``, ``is_in_sandbox``, and which sandbox a call goes to.

Light on purpose: a sandboxed interpreter loads this module before it is armed. What opens and drives a sandbox is in
``_live``, which only an application loads.
"""

from __future__ import annotations

from contextvars import ContextVar

from . import _guard
from ._exceptions import SandBoxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from types import TracebackType
    from typing import Any, TypeVar

    from ._live import Live

    T = TypeVar("T")
    Rule = str | int | bool | Sequence[str]

NO_SANDBOX = (
    "no sandbox is running here: open one around the call with `with sandboxes():` (or `async with`), start the program by "
    "`pysandboxes.run(main())`, or run it whole under `python-sb`"
)
UNGUARDED_MAIN = (
    'the main file opens a sandbox while a sandbox loads it: guard what starts the program by `if __name__ == "__main__":`'
)


class _Scope:
    """One open ``with sandboxes()``, and the one around it in the same context."""

    __slots__ = ("live", "outer")

    def __init__(self, live: Live, outer: _Scope | None) -> None:
        self.live = live
        self.outer = outer


_scope: ContextVar[_Scope | None] = ContextVar("pysandboxes_scope", default=None)
#: True while a function runs directly in the application under ``os-sandbox=none``.
direct: ContextVar[bool] = ContextVar("pysandboxes_direct", default=False)
#: The sandboxes of this process that are to be ended, the newest last.
opened: list[Live] = []


def inside() -> bool:
    """Whether this process is itself sandboxed, so that calls are direct."""
    return _guard.active()


def is_in_sandbox() -> bool:
    """True in a sandbox's interpreter, under ``python-sb``, and in a call that ``os-sandbox=none`` makes direct."""
    return _guard.active() or direct.get()


def current() -> Live:
    """The sandbox a call goes to: the innermost of this context, else the newest open one of the process."""
    scope = _scope.get()
    while scope is not None:
        if scope.live.open:
            return scope.live
        scope = scope.outer
    for live in reversed(opened):
        if live.open:
            return live
    raise SandBoxError(NO_SANDBOX)


class Handle:
    """An open sandbox, as ``with sandboxes() as handle`` gives it."""

    __slots__ = ("_live",)

    def __init__(self, live: Live | None) -> None:
        self._live = live

    @property
    def pid(self) -> int:
        """Process id of the sandboxed interpreter; this process's own where calls are direct."""
        if self._live is None:
            from os import getpid

            return getpid()
        return self._live.pid()

    @property
    def provider(self) -> str:
        """Name of the OS provider in force; ``"inside"`` where the whole program is sandboxed already."""
        return "inside" if self._live is None else self._live.provider()

    def stats(self) -> dict[str, Any]:
        """Figures of this sandbox: calls, restarts, denials and times, as the engine counts them."""
        return {} if self._live is None else self._live.stats()

    def reload(self) -> None:
        """Let running calls finish, read the profile again, and start a new interpreter under it."""
        if self._live is not None:
            self._live.reload()

    def __repr__(self) -> str:
        state = "inside" if self._live is None else ("open" if self._live.open else "closed")
        return f"<sandbox {state}>"


class sandboxes:
    """Open a sandbox: ``with sandboxes():``, ``async with sandboxes():``, or ``sandboxes().__enter__()`` in a notebook.

    ``init_fn``: function (sync or async, importable by its name) that runs in the sandbox first, and again after every
    restart of it. ``sandboxes_config`` (or ``config_path``): the profile; without it ``.py-sandboxes`` at the root of the
    calling package, else in the working directory. ``envs``: the environment that ``${}`` reads, ``os.environ`` by default.
    ``python_args``: flags of the sandboxed interpreter, such as ``["-X", "utf8"]``. ``graceful_shutdown=False``: kill at
    the end instead of letting running calls finish. ``learn``: True, or the file to write: allow everything and record it.
    Every other keyword is a rule of the profile with ``_`` for ``-`` (``python_import="json"``, ``call_timeout="10s"``);
    a list is one rule for each item.

    In a process that is sandboxed already this is a no-op that still runs ``init_fn`` once.

    Raises :class:`ConfigSyntaxError` for the profile or a rule, :class:`SandBoxError` where no sandbox can be started.
    """

    def __init__(
        self,
        init_fn: Callable[[], object] | None = None,
        sandboxes_config: str | os.PathLike[str] | None = None,
        *,
        config_path: str | os.PathLike[str] | None = None,
        envs: Mapping[str, str] | None = None,
        python_args: Sequence[str] | None = None,
        graceful_shutdown: bool = True,
        learn: bool | str | os.PathLike[str] | None = None,
        **rules: Rule,
    ) -> None:
        if sandboxes_config is not None and config_path is not None:
            raise TypeError("give sandboxes_config or config_path, which is another name for it, not both")
        self._init_fn = init_fn
        self._profile = sandboxes_config if sandboxes_config is not None else config_path
        self._envs = envs
        self._python_args = python_args
        self._graceful = graceful_shutdown
        self._learn = learn
        self._learn_for = ""  # the test that these functions run for (_pytest_plugin)
        self._rules = rules
        self._package = None if inside() else _calling_package()
        self._live: Live | None = None
        self._entered = False

    def _begin(self) -> None:
        if self._entered:
            raise SandBoxError("this sandboxes() is in use or has been used: make a new one for each `with`")
        self._entered = True
        if inside():
            from ._main_module import loading

            if loading():
                raise SandBoxError(UNGUARDED_MAIN)

    def _open(self) -> Live:
        from ._live import open_live

        return open_live(
            init_fn=self._init_fn,
            profile=self._profile,
            envs=self._envs,
            python_args=self._python_args,
            graceful=self._graceful,
            learn=self._learn,
            rules=self._rules,
            package=self._package,
            learn_for=self._learn_for,
        )

    def _entered_with(self, live: Live) -> Handle:
        self._live = live
        opened.append(live)
        _scope.set(_Scope(live, _scope.get()))
        return Handle(live)

    def _leave(self) -> Live | None:
        live, self._live = self._live, None
        scope = _scope.get()
        while scope is not None and (scope.live is live or not scope.live.open):
            scope = scope.outer
        _scope.set(scope)
        return live

    def __enter__(self) -> Handle:
        self._begin()
        if inside():
            if self._init_fn is not None:
                _run_init(self._init_fn)
            return Handle(None)
        live = self._open()
        try:
            live.start()
            return self._entered_with(live)
        except BaseException:
            live.close()
            raise

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None) -> None:
        live = self._leave()
        if live is not None:
            live.close(hurried=kind is not None and issubclass(kind, KeyboardInterrupt))

    async def __aenter__(self) -> Handle:
        self._begin()
        if inside():
            if self._init_fn is not None:
                value = self._init_fn()
                if hasattr(type(value), "__await__"):
                    await value  # type: ignore[misc]
            return Handle(None)
        from asyncio import get_running_loop

        loop = get_running_loop()
        live = self._open()
        try:
            await loop.run_in_executor(None, live.start)
            return self._entered_with(live)
        except BaseException:
            live.close()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        live = self._leave()
        if live is not None:
            from asyncio import get_running_loop

            await get_running_loop().run_in_executor(None, live.close)


def run(
    main: Coroutine[Any, Any, T],
    *,
    init_fn: Callable[[], object] | None = None,
    sandboxes_config: str | os.PathLike[str] | None = None,
    config_path: str | os.PathLike[str] | None = None,
    envs: Mapping[str, str] | None = None,
    python_args: Sequence[str] | None = None,
    graceful_shutdown: bool = True,
    learn: bool | str | os.PathLike[str] | None = None,
    debug: bool | None = None,
    **rules: Rule,
) -> T:
    """In place of ``asyncio.run(main)``: the same, with a sandbox open around it.

    The arguments are those of :class:`sandboxes`; ``debug`` is that of ``asyncio.run``. Returns what ``main`` returns
    and raises what it raises.
    """
    import asyncio

    scope = None
    try:
        scope = sandboxes(
            init_fn,
            sandboxes_config,
            config_path=config_path,
            envs=envs,
            python_args=python_args,
            graceful_shutdown=graceful_shutdown,
            learn=learn,
            **rules,
        )
        scope._package = None if inside() else _calling_package()
        with scope:
            return asyncio.run(main, debug=debug)
    finally:
        if (scope is None or scope._live is None) and hasattr(main, "close"):
            main.close()  # where it never ran, Python would warn that it was not awaited


def _run_init(init_fn: Callable[[], object]) -> None:
    value = init_fn()
    if hasattr(type(value), "__await__"):
        import asyncio

        async def wait() -> object:
            return await value  # type: ignore[misc]

        asyncio.run(wait())


def _calling_package() -> str | None:
    """Name of the top-level package whose code is calling us, if it is a package's."""
    from sys import _getframe

    frame = _getframe(2)
    package = frame.f_globals.get("__package__")
    return package.partition(".")[0] if isinstance(package, str) and package else None
