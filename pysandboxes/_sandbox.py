"""``@sandbox``: the function runs in the sandbox, wherever it is called from.

Light on purpose: a sandboxed interpreter loads this module before it is armed, and there the decorator gives the function
back as it is.
"""

from __future__ import annotations

import sys

from . import _context
from ._exceptions import SandBoxError
from ._generators import Table, remote_async_generator, remote_generator
from ._registry import module_of, register

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
    from typing import Any, ParamSpec, TypeVar, overload

    from ._live import Live

    P = ParamSpec("P")
    R = TypeVar("R")
else:

    def overload(function: object) -> object:
        """typing's, without importing typing."""
        return function


CO_GENERATOR = 0x20
CO_COROUTINE = 0x80
CO_ITERABLE_COROUTINE = 0x100
CO_ASYNC_GENERATOR = 0x200

#: Attribute of a wrapper that holds its Target.
_TARGET = "__sandbox_target__"
#: What a wrapper takes over of its function, where it is there.
_COPIED = ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "__type_params__")


@overload
def sandbox(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def sandbox(  # noqa: F811
    *, timeout: float | None = None, idempotent: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def sandbox(  # noqa: F811
    function: Callable[..., Any] | None = None, /, *, timeout: float | None = None, idempotent: bool = False
) -> Any:
    """Run a function in the sandbox: sync or async, a generator of either kind, a static or a class method.

    The call travels as module, name and pickled arguments; the sandbox imports the module and calls the function there.
    So it has to be found in its module by its name: no lambda, no function inside a function.

    ``timeout``: seconds after which the caller gets a :class:`SandBoxTimeoutError`. ``idempotent``: a call that was under
    way when the interpreter died is made once more in the new one.

    Called without a running sandbox it raises :class:`SandBoxError`. In a process that is sandboxed itself, and under
    ``os-sandbox=none``, it is a direct call.
    """
    _check_timeout(timeout)
    if function is None:
        return lambda decorated: _decorate(decorated, timeout, idempotent)
    return _decorate(function, timeout, idempotent)


def _check_timeout(timeout: Any) -> None:
    wanted = f"@sandbox(timeout={timeout!r}): a timeout is a number of seconds above zero, or None"
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(wanted)
    if not timeout > 0:
        raise ValueError(wanted)


def _decorate(function: Any, timeout: float | None, idempotent: bool) -> Any:
    if isinstance(function, staticmethod):
        return staticmethod(_decorate(function.__func__, timeout, idempotent))
    if isinstance(function, classmethod):
        return classmethod(_decorate(function.__func__, timeout, idempotent))
    code = getattr(function, "__code__", None)
    if code is None or not hasattr(function, "__qualname__"):
        raise SandBoxError(
            f"@sandbox on a {type(function).__module__}.{type(function).__qualname__}: it goes directly on a Python function. "
            "Put it below the other decorators, on a module-level function of its own, and the framework's decorator on a "
            "wrapper that calls that function"
        )
    if _context.inside():
        register(function)
        return function
    check_name(function, "@sandbox on ")
    target = Target(function, timeout, idempotent)
    flags = code.co_flags
    if flags & CO_ASYNC_GENERATOR:
        wrapper = _async_generator(function, target)
    elif flags & (CO_COROUTINE | CO_ITERABLE_COROUTINE):
        wrapper = _coroutine(function, target)
    elif flags & CO_GENERATOR:
        wrapper = _generator(function, target)
    else:
        wrapper = _plain(function, target)
    for name in _COPIED:
        if hasattr(function, name):
            setattr(wrapper, name, getattr(function, name))
    wrapper.__dict__.update(function.__dict__)
    wrapper.__dict__["__wrapped__"] = function
    wrapper.__dict__[_TARGET] = target
    target.wrapper = wrapper
    return wrapper


def check_name(function: Any, use: str) -> None:
    """Refuse a function that no import finds by its name; ``use`` says in the error what it was given as."""
    if function.__name__ == "<lambda>":
        raise SandBoxError(
            f"{use}a lambda: the sandbox imports a function by its name, and a lambda has none. "
            "Write it as a `def` at the top level of a module"
        )
    if "<locals>" in function.__qualname__:
        raise SandBoxError(
            f"{use}{function.__qualname__}, a function inside a function: the sandbox cannot import it by name. "
            "Move it to the top level of its module and pass what it needs as arguments"
        )


class Target:
    """A decorated function as its calls name it, and how they are made."""

    __slots__ = ("checked", "flags", "function", "idempotent", "module", "name", "qualname", "timeout", "wrapper")

    def __init__(self, function: Any, timeout: float | None, idempotent: bool) -> None:
        self.function = function
        self.module = module_of(function)
        self.qualname: str = function.__qualname__
        self.name = f"{self.module}.{self.qualname}"
        self.timeout = timeout
        self.idempotent = idempotent
        self.flags: int = function.__code__.co_flags
        self.wrapper: Any = None
        self.checked = False

    def sandbox(self) -> Live:
        """The sandbox to call; the first time, after a look whether the name still means this function."""
        live = _context.current()
        if not self.checked:
            self.check(live)
        return live

    def check(self, live: Live) -> None:
        """Raise :class:`SandBoxError` where the name means something else; once is enough."""
        if self.checked or (live.fileless and self.module == "__main__"):  # there the function itself travels, not its name
            self.checked = True
            return
        found: Any = sys.modules.get(self.module)
        if found is None:
            raise SandBoxError(
                f"{self.name} cannot be imported: there is no module {self.module} in sys.modules. "
                "Put the function into a module that `import` finds"
            )
        for part in self.qualname.split("."):
            space = found
            found = getattr(space, "__dict__", {}).get(part)
            if found is None:
                raise SandBoxError(
                    f"{self.name} cannot be imported: {getattr(space, '__name__', space)!r} has no {part!r}. "
                    "The sandbox calls a function by the name under which it was defined: keep that name in the module"
                )
        if not _leads_to(found, self.wrapper):
            kind = type(found)
            raise SandBoxError(
                f"the name {self.name} does not mean the function that @sandbox decorates, but a "
                f"{kind.__module__}.{kind.__qualname__}: a decorator above @sandbox, or a later assignment, has replaced it. "
                f"Put @sandbox on a module-level function of its own (say _{self.qualname.rpartition('.')[2]}) and the "
                "other decorator on a wrapper that calls it"
            )
        self.checked = True


def target_of(function: Any) -> Target | None:
    """The target of a function that ``@sandbox`` has decorated, None of any other."""
    target = getattr(function, "__dict__", {}).get(_TARGET)
    # What wraps such a function by functools.wraps carries its attributes as well.
    return target if isinstance(target, Target) and target.wrapper is function else None


def _leads_to(found: Any, wrapper: Any) -> bool:
    """Whether ``found`` is the wrapper, or functions that say they wrap it (functools.wraps)."""
    for _ in range(32):
        if found is wrapper:
            return True
        space = getattr(found, "__dict__", {})
        found = space.get("__wrapped__") if "__wrapped__" in space else getattr(found, "__func__", None)
        if found is None:
            return False
    return False


def _plain(function: Callable[..., Any], target: Target) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        live = target.sandbox()
        return _directly(function, args, kwargs) if live.direct else live.call(target, args, kwargs)

    return call


def _coroutine(function: Callable[..., Any], target: Target) -> Any:
    async def call(*args: Any, **kwargs: Any) -> Any:
        live = target.sandbox()
        if live.direct:
            return await _directly_awaited(function(*args, **kwargs))
        return await live.acall(target, args, kwargs)

    return call


def _generator(function: Callable[..., Any], target: Target) -> Any:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        live = target.sandbox()
        if live.direct:
            table = Table()
            operations = table.operations()
            number = table.add(function(*args, **kwargs))
            return (yield from remote_generator(lambda: number, lambda name, given: _directly(operations[name], given, {})))
        return (yield from live.generate(target, args, kwargs))

    return call


def _async_generator(function: Callable[..., Any], target: Target) -> Any:
    def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        live = target.sandbox()
        if live.direct:
            table = Table()
            operations = table.operations()
            number = table.add(function(*args, **kwargs))

            async def start() -> int:
                return number

            return remote_async_generator(start, lambda name, given: _directly_awaited(operations[name](*given)))
        return live.agenerate(target, args, kwargs)

    return call


def _directly(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call in the application itself (``os-sandbox=none``), which then counts as being in the sandbox."""
    token = _context.direct.set(True)
    try:
        return function(*args, **kwargs)
    finally:
        _context.direct.reset(token)


async def _directly_awaited(awaitable: Awaitable[Any]) -> Any:
    token = _context.direct.set(True)
    try:
        return await awaitable
    finally:
        _context.direct.reset(token)
