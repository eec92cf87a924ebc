"""The serving loop of a sandboxed interpreter: takes calls from the guard, performs them, sends what came of them.

One thread at a time reads (inside ``_guard.recv``); the others wait there as standbys. Sync functions run in the
thread that took the call, coroutines in the one loop thread, which is started at the first need.
"""

from __future__ import annotations

import sys
from _pickle import dumps
from _thread import allocate_lock, get_ident, start_new_thread
from contextvars import Context
from posix import _exit, register_at_fork
from types import CoroutineType

from . import _guard, _main_module
from ._arrival import install
from ._coroutines import LoopThread, report
from ._describe import Describer, SourceReader, rich_form
from ._exceptions import SandBoxError
from ._generators import Table
from ._logs import Forwarder
from ._pickling import SMALL, pickled
from ._registry import imported, registered
from ._streams import Outlet, outlet
from ._telemetry import enter
from ._wire import CALL, CANCEL, CANCELLED, CHUNK, EXCEPTION, INTERNAL, RESULT, STOP, TASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from _thread import LockType
    from collections.abc import Callable
    from typing import Any, NoReturn

#: Numbers of cancelled calls that are remembered until those calls are met.
MAX_EARLY = 1000
CO_GENERATOR = 0x20
CO_COROUTINE = 0x80
CO_ASYNC_GENERATOR = 0x200


class Call:
    """One call under way: where its output and its denials go, and what is to be cancelled.

    Made in the context that the call runs in, so that what is refused there is written down for this call.
    """

    __slots__ = ("cancelled", "done", "id", "name", "outlet", "record", "task", "thread")

    def __init__(self, call_id: int) -> None:
        self.id = call_id
        self.name = ""
        self.outlet = Outlet(call_id)
        self.record = _guard.enter()
        self.thread = get_ident()
        self.task: asyncio.Task[Any] | None = None
        self.cancelled = False
        # Held by who waits for the end of the call; made by the one who waits, since hardly any call is waited for so.
        self.done: LockType | None = None

    def let_go(self) -> None:
        """Nobody has to wait for this call any more: it is over, or cancelled, or both at a time."""
        done = self.done
        if done is not None:
            try:
                done.release()
            except RuntimeError:
                return


class Server:
    """Performs calls until the guard says stop."""

    def __init__(self, forwarder: Forwarder) -> None:
        self.calls: dict[int, Call] = {}
        self.cancelled_early: set[int] = set()
        self.main = get_ident()
        self.draining = allocate_lock()
        self.loop = LoopThread(self)
        self.sources = SourceReader()
        self.generators = Table()
        self.forwarder = forwarder
        # Operations of our own, by their names in a payload.
        self.internal = {**self.generators.operations(), TASK: _task, CHUNK: _chunk}
        self.forked = False
        register_at_fork(after_in_child=self.mark_forked)

    def mark_forked(self) -> None:
        self.forked = True

    def run(self) -> None:
        """Serve in the main thread; returns when told to stop and the last call is over that somebody waits for."""
        self.work()
        self.drain()
        # The end of the interpreter waits for the thread that first imported threading, and that may be a serving one.
        _guard.close()

    def work(self) -> None:
        while True:
            try:
                message = _guard.recv()
                if message is None:
                    break
                kind, call_id, payload, spare = message
                if not spare:
                    self.add_worker()
                if kind == CALL:
                    held = [payload]  # for perform alone, which lets go of it
                    message = payload = None
                    Context().run(self.perform, call_id, held)
                elif kind == CANCEL:
                    self.cancel(call_id)
                elif kind == STOP:  # another thread goes on reading, for the calls that still run
                    break
            except BaseException as exc:  # nothing may end a serving thread but the guard's word
                report("the serving loop of the sandbox", exc)
        if get_ident() != self.main:
            self.drain()
            if any(call.thread == self.main for call in list(self.calls.values())):
                # The main thread is in a call that nobody waits for any longer, and cannot end the process.
                _exit(0)

    def drain(self) -> None:
        """Wait for the calls that were not cancelled."""
        with self.draining:
            while waited := [call for call in list(self.calls.values()) if not call.cancelled]:
                for call in waited:
                    done = allocate_lock()
                    done.acquire()
                    call.done = done
                    # Whoever ends the call takes it out of the table, or marks it, before looking for the lock.
                    if call.id in self.calls and not call.cancelled:
                        done.acquire()

    def add_worker(self) -> None:
        """A further thread that waits for calls. Where there can be none, calls come one after the other."""
        try:
            self.start_thread(self.work)
        except Exception as exc:
            report("a further serving thread could not be started", exc)

    @staticmethod
    def start_thread(function: Callable[..., object], *args: object) -> None:
        """A thread of ours, which is not charged to the profile: the guard knows this file (frames.c)."""
        start_new_thread(function, args)

    def perform(
        self, call_id: int, held: list[_guard.Payload | tuple[Any, ...] | None], here: bool = False
    ) -> tuple[Call, CoroutineType[Any, Any, Any]] | None:
        """Perform a call in this thread, a coroutine in the loop's. ``here``: this is that; it begins what is given back."""
        call = self.calls[call_id] = Call(call_id)
        if call_id in self.cancelled_early:
            self.cancelled_early.discard(call_id)
            call.cancelled = True
            self.finish(call, CANCELLED)
            return None
        outlet.set(call.outlet)
        payload = held.pop()
        try:
            if payload is None:
                raise MemoryError("the arguments of the call do not fit")
            if isinstance(payload, tuple):  # what a call that comes next needs
                install(payload)
                self.finish(call, *self.succeeded(call, None))
                return None
            module, call.name, args, kwargs, *span = _guard.loads(payload)
            function: Any = self.internal[call.name] if module == INTERNAL else resolve(module, call.name)
            if here and not _is_coroutine_function(function):  # the name has come to mean another one
                self.loop.known.clear()
                self.start_thread(Context().run, self.perform, call_id, [payload])
                return None
            self.forwarder.install()
            if span:
                enter(span[0])
            value = function(*args, **kwargs)
            if type(value) is CoroutineType:
                if here:
                    return call, value
                self.loop.start(call, value, _guard.target(payload) if _is_coroutine_function(function) else None)
                return None
            self.loop.streak = 0
            if _yields(function):
                value = self.generators.add(value)
        except BaseException as exc:
            last = self.failed(call, exc)
        else:
            last = self.succeeded(call, value)
        # The next call may come as soon as this one is answered, and needs the memory.
        payload = args = kwargs = value = None
        self.finish(call, *last)
        return None

    def succeeded(self, call: Call, value: object) -> tuple[Any, ...]:
        """The last frame of a call that gave a value."""
        if self.forked:
            self.end_fork(call, None)
        buffers = None
        try:
            if type(value) in SMALL:
                data = dumps(value, 5)
            else:
                data, buffers = pickled(value)
        except MemoryError as exc:
            return self.failed(call, exc)
        except BaseException as exc:
            return self.failed(call, _unpicklable(call, value, exc))
        if call.cancelled:
            return (CANCELLED,)
        if buffers:
            return RESULT, data, None, buffers
        return RESULT, data

    def failed(self, call: Call, exc: BaseException) -> tuple[Any, ...]:
        """The last frame of a call that raised; to be sent when nobody holds ``exc`` and its frames any more."""
        if self.forked:
            self.end_fork(call, exc)
        if call.cancelled:
            return (CANCELLED,)
        recorded = _guard.denials(call.record)
        rich = rich_form(exc)
        try:
            descriptor = _guard.pack(Describer(self.sources).describe(exc, recorded))
        except BaseException as second:
            # With the frames goes the memory that they hold: there may be too little for a description.
            exc.__traceback__ = second.__traceback__ = rich = None
            descriptor = _guard.pack(_bare(exc, second))
        return EXCEPTION, descriptor, rich

    def end_fork(self, call: Call, exc: BaseException | None) -> NoReturn:
        """A fork that comes back from its call has nobody to answer: it ends as the program of that function would."""
        status = 1
        try:
            if exc is None:
                status = 0
            elif isinstance(exc, SystemExit) and (exc.code is None or isinstance(exc.code, int)):
                status = int(exc.code or 0) & 0xFF
            elif isinstance(exc, SystemExit):
                sys.stderr.write(f"{exc.code}\n")
            else:
                sys.excepthook(type(exc), exc, exc.__traceback__)
            call.outlet.close()
        finally:
            _exit(status)

    def finish(self, call: Call, kind: int, *data: Any) -> None:
        """Send the last frame of a call, after all that it has printed."""
        call.outlet.close()
        _guard.send(kind, call.id, *data)
        self.calls.pop(call.id, None)
        call.task = None
        call.let_go()

    def cancel(self, call_id: int) -> None:
        """Cancel a coroutine. A sync function cannot be stopped from outside: what comes of it is thrown away."""
        call = self.calls.get(call_id)
        if call is None:
            # Over, or read by another thread that has not come to it yet. It looks there after it has entered its call.
            if len(self.cancelled_early) >= MAX_EARLY:
                self.cancelled_early.clear()
            self.cancelled_early.add(call_id)
            call = self.calls.get(call_id)
            if call is None:
                return
        call.cancelled = True
        call.let_go()
        self.loop.cancel(call)


def resolve(module: str, qualname: str) -> Any:
    """The function a call names: the one that ``@sandbox`` decorated under that name, else what the name means."""
    if module == "__main__":
        _main_module.load()
    elif module not in imported:
        __import__(module)
        imported.add(module)
    function = registered(module, qualname)
    if function is not None:
        return function
    found: Any = sys.modules[module]
    try:
        for name in qualname.split("."):
            found = getattr(found, name)
    except AttributeError:
        raise SandBoxError(
            f"the sandbox has no function {module}.{qualname}: it has to be found in its module by that name, "
            "also when the module is imported a second time"
        ) from None
    return found


def _is_coroutine_function(function: object) -> bool:
    """Whether to call ``function`` runs nothing of it."""
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & CO_COROUTINE)


def _yields(function: Any) -> bool:
    """Whether a call of ``function`` makes a generator, as the application, too, sees by its code.

    A generator that any other function returns is a value like all that cannot be pickled.
    """
    code = getattr(function, "__code__", None)
    return code is not None and bool(code.co_flags & (CO_GENERATOR | CO_ASYNC_GENERATOR))


def _task(found: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call what a pool was given: a callable, or where to find a function."""
    return _found(found)(*args, **kwargs)


def _chunk(found: Any, rows: list[tuple[Any, ...]], kwargs: dict[str, Any]) -> Any:
    """Call it for each row of arguments, and give the results."""
    function = _found(found)
    values = [function(*row, **kwargs) for row in rows]
    if any(type(value) is CoroutineType for value in values):
        return _all(values)
    return values


async def _all(values: list[Any]) -> list[Any]:
    return [await value if type(value) is CoroutineType else value for value in values]


def _found(found: Any) -> Any:
    return resolve(*found) if type(found) is tuple else found


def _unpicklable(call: Call, value: object, exc: BaseException) -> BaseException:
    kind = type(value)
    error = _guard.RestrictedUnpicklingError(
        f"the result of {call.name} cannot leave the sandbox: a {kind.__module__}.{kind.__qualname__} "
        f"cannot be pickled ({type(exc).__name__}: {exc}); return plain values"
    )
    error.__cause__ = exc if isinstance(exc, Exception) else None
    return error


def _bare(exc: BaseException, second: BaseException) -> dict[str, Any]:
    """A descriptor of an exception that could not be described: its class, and why there is no more."""
    kind = type(exc)
    return {
        "module": str(type.__dict__["__module__"].__get__(kind)),
        "qualname": str(type.__dict__["__qualname__"].__get__(kind)),
        "message": f"<it cannot be described: {type(second).__name__}>",
        "base": not isinstance(exc, Exception),
        "frames": [],
        "denials": [],
        "notes": [],
        "cause": None,
        "context": None,
        "suppress": False,
        "exceptions": [],
    }
