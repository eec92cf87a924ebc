"""A sandbox as the application drives it: start, calls, restart with its ``init_fn``, end."""

from __future__ import annotations

import os
import sys
from _thread import RLock, allocate_lock
from time import monotonic, sleep

from . import _binary, _context, _spec
from ._asyncio import Pump, Threads, pump
from ._call import Reply, payload_of, perform
from ._exceptions import SandBoxError, SandBoxProtocolError, SandBoxTimeoutError
from ._generators import remote_async_generator, remote_generator
from ._native import Sandbox
from ._sandbox import Target, check_name
from ._wire import INTERNAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
    from typing import Any

    from ._context import Rule
    from ._pool_tasks import Initializer
    from ._travel import Journey, Luggage

#: Seconds that running calls have to finish when a sandbox is left.
DRAIN_TIMEOUT = 30.0
HURRIED_TIMEOUT = 1.0
CLOSED = "this sandbox is closed: its `with sandboxes()` block has ended"
#: In a payload that names anything of the main module.
MAIN = b"__main__"
FORKED = (
    "this process was forked from the one that opened the sandbox, which belongs to that one: open a sandbox in this process, "
    "or start it fresh (multiprocessing: `set_start_method('spawn')`)"
)


class Init:
    """What runs first in each interpreter of a sandbox; ``name`` stands in errors."""

    name = "init_fn"

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function

    def call(self, live: Live) -> tuple[Target, tuple[Any, ...], dict[str, Any]]:
        """What to call, and its arguments."""
        return Target(self.function, None, False), (), {}

    def run(self) -> None:
        """Run it in this process (``os-sandbox=none``)."""
        _context._run_init(self.function)


class Live:
    """One sandbox that was opened, until it is closed.

    ``open``: calls may go to it. ``direct``: ``os-sandbox=none``, functions run in the application itself.
    """

    def __init__(self, native: Sandbox, init: Init | Initializer | None, graceful: bool, fileless: bool) -> None:
        self.native = native
        self.handle = native.handle
        self.direct = native.provider() == "none"
        self.open = True
        self.forked = False
        #: The application's main module is in no file that the sandbox could load (a notebook, a prompt): see _travel.
        self.fileless = fileless
        self._luggage: Luggage | None = None
        self._init = init
        self._graceful = graceful
        self._ready = False
        self._generation = -1
        self._dead = -1  # the generation whose interpreter we know to be dead
        self._lock = RLock()  # of starts and reloads: it may be held for half a minute
        self._marks = allocate_lock()  # of the three above, for moments: an event loop takes it too
        self._pumps: dict[asyncio.AbstractEventLoop, Pump | Threads] = {}
        self._pumps_lock = allocate_lock()
        #: Seconds that the profile's call-timeout gives a call whose function names none.
        self._call_timeout: float | None = None
        self._call_timeout_rule = ""

    # ---- life -----------------------------------------------------------------------------------------------------

    def start(self, former: list[Pump | Threads] | None = None) -> None:
        """Have an interpreter that is up and initialised: a new one where the last has died, and its ``former`` pumps close."""
        with self._lock:
            self._check()
            if self.direct:
                if not self._ready and self._init is not None:
                    self._init.run()
                self._ready = True
                return
            if self._ready:
                return
            former = self._made() if former is None else former
            generation = self.native.ensure()
            deadline = monotonic() + Attempts.PATIENCE
            while generation == self._dead and monotonic() < deadline:
                sleep(Attempts.FIRST_DELAY)  # the engine learns of the death a moment after us
                generation = self.native.ensure()
            if generation != self._generation:
                self._drop(former)
                stats = self.native.stats()
                self._call_timeout = stats.get("call_timeout") or None
                self._call_timeout_rule = str(stats.get("call_timeout_rule", ""))
                self._luggage = None
                if self._init is not None:
                    payload, journey = self._payload(*self._init.call(self))
                    if journey is not None:
                        self._send_ahead(journey, self._init.name, None, "")
                    perform(self.handle, payload, self._init.name, None).outcome()
            with self._marks:
                self._generation = generation
                self._ready = True

    def reload(self) -> None:
        with self._lock:
            self._check()
            former = self._made()
            if not self.direct:
                self.native.reload(DRAIN_TIMEOUT)
            with self._marks:
                self._ready = False
            self.start(former)

    def close(self, *, hurried: bool = False) -> None:
        """End the sandbox; running calls finish first, where it is closed gracefully.

        ``hurried``: somebody pressed Ctrl-C and waits for the end; calls get a moment only.
        """
        with self._lock:
            was_open, self.open = self.open, False
        if not was_open or self.forked:
            return
        try:
            self.native.stop(self._graceful, HURRIED_TIMEOUT if hurried else DRAIN_TIMEOUT)
        except KeyboardInterrupt:
            self.native.stop(False, 0.0)  # nobody waits for the running calls any longer
            raise
        finally:
            self._drop(self._made())
            with self._lock:
                if self in _context.opened:
                    _context.opened.remove(self)
        report = self.native.learn_report()
        if report and sys.stderr is not None:
            sys.stderr.write(report if report.endswith("\n") else report + "\n")

    def _check(self) -> None:
        if self.forked:
            raise SandBoxError(FORKED)
        if not self.open:
            raise SandBoxError(CLOSED)

    def another(self) -> Live:
        """A sandbox under the same policy, with the same ``init_fn``; nothing is read again."""
        return Live(self.native.another(), self._init, self._graceful, self.fileless)

    # ---- what a handle tells ----------------------------------------------------------------------------------------

    def pid(self) -> int:
        self._check()
        return os.getpid() if self.direct else self.native.pid()

    def provider(self) -> str:
        self._check()
        return self.native.provider()

    def stats(self) -> dict[str, Any]:
        self._check()
        return self.native.stats()

    @property
    def alive(self) -> bool:
        """Whether no call has met the end of the interpreter in force."""
        return self._ready

    # ---- calls ------------------------------------------------------------------------------------------------------

    def call(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        payload, journey = self._payload(target, args, kwargs)
        return self._perform(payload, target.name, target.timeout, target.idempotent, journey).outcome()

    async def acall(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        payload, journey = self._payload(target, args, kwargs)
        reply = await self._aperform(payload, target.name, target.timeout, target.idempotent, journey)
        return reply.outcome()

    def _payload(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, Journey | None]:
        """What a call carries, and what has to be there before it."""
        if not self.fileless:
            return payload_of(target.module, target.qualname, args, kwargs, target.name), None
        journey = self._journey(target.module, target.function)
        payload = payload_of(target.module if journey is None else journey.label, target.qualname, args, kwargs, target.name)
        if MAIN in payload:
            if journey is None and MAIN in payload_of("", "", args, kwargs):
                from ._travel import Journey

                journey = Journey(None)
            if journey is not None:
                journey.arguments = (args, kwargs)
        return payload, journey

    def _journey(self, module: str, function: Any) -> Journey | None:
        if not self.fileless or module != "__main__":
            return None
        from ._travel import Journey

        return Journey(function)

    def _send_ahead(self, journey: Journey, name: str, timeout: float | None, rule: str) -> None:
        """Have the interpreter know what a call needs of a ``__main__`` without a file."""
        parcel = journey.parcel(self._known())
        payload = parcel.payload()
        if payload is not None:
            perform(self.handle, payload, name, timeout, rule).outcome()
            parcel.arrived()

    def _known(self) -> Luggage:
        luggage = self._luggage
        if luggage is None:
            from ._travel import Luggage

            luggage = self._luggage = Luggage()
        return luggage

    def generate(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Generator[Any, Any, Any]:
        made = -1

        def start() -> int:
            nonlocal made
            number: int = self.call(target, args, kwargs)
            made = self._generation
            return number

        def step(operation: str, arguments: tuple[Any, ...]) -> Any:
            if operation in ("close", "drop") and not self._lives(made):
                return None  # it has ended with its interpreter; none is started to close it
            payload = payload_of(INTERNAL, operation, arguments, {})
            if operation == "drop":
                return perform(self.handle, payload, target.name, HURRIED_TIMEOUT).outcome()
            return self._perform(payload, target.name, target.timeout, False).outcome()

        return remote_generator(start, step)

    def agenerate(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncGenerator[Any, Any]:
        made = -1

        async def start() -> int:
            nonlocal made
            number: int = await self.acall(target, args, kwargs)
            made = self._generation
            return number

        async def step(operation: str, arguments: tuple[Any, ...]) -> Any:
            if operation in ("aclose", "adrop") and not self._lives(made):
                return None
            payload = payload_of(INTERNAL, operation, arguments, {})
            if operation == "adrop":
                import asyncio

                return (await self._pump(asyncio.get_running_loop()).perform(payload, target.name, HURRIED_TIMEOUT)).outcome()
            return (await self._aperform(payload, target.name, target.timeout, False)).outcome()

        return remote_async_generator(start, step)

    def _lives(self, generation: int) -> bool:
        """Whether that interpreter is the one in force, for all we know."""
        return self.open and not self.forked and self._ready and self._generation == generation

    def _perform(
        self, payload: bytes, name: str, timeout: float | None, idempotent: bool, journey: Journey | None = None
    ) -> Reply:
        if not self._ready or self.forked or not self.open:
            self.start()
        attempts = Attempts(idempotent)
        while True:
            generation = self._generation
            limit, rule = (self._call_timeout, self._call_timeout_rule) if timeout is None else (timeout, "")
            try:
                if journey is not None:
                    self._send_ahead(journey, name, limit, rule)
                return perform(self.handle, payload, name, limit, rule)
            except SandBoxProtocolError as exc:
                self._died(generation)
                delay = attempts.after(exc)
            except SandBoxTimeoutError:
                self._end(generation)  # a sync function cannot be stopped but with its process
                raise
            if delay:
                sleep(delay)
            self.start()

    async def _aperform(
        self, payload: bytes, name: str, timeout: float | None, idempotent: bool, journey: Journey | None = None
    ) -> Reply:
        import asyncio

        loop = asyncio.get_running_loop()
        attempts = Attempts(idempotent)
        while True:
            if not self._ready or self.forked or not self.open:
                await loop.run_in_executor(None, self.start)
            generation = self._generation
            limit, rule = (self._call_timeout, self._call_timeout_rule) if timeout is None else (timeout, "")
            try:
                if journey is not None:
                    parcel = journey.parcel(self._known())
                    ahead = parcel.payload()
                    if ahead is not None:
                        (await self._pump(loop).perform(ahead, name, limit, rule)).outcome()
                        parcel.arrived()
                return await self._pump(loop).perform(payload, name, limit, rule)
            except SandBoxProtocolError as exc:
                self._died(generation)
                delay = attempts.after(exc)
            except SandBoxTimeoutError:
                if timeout is None:  # the profile's limit ends the interpreter; a function's own only cancels its task
                    await loop.run_in_executor(None, self._end, generation)
                raise
            if delay:
                await asyncio.sleep(delay)

    def _end(self, generation: int) -> None:
        if generation == self._generation:
            self.native.kill(generation)
        self._died(generation)

    def _died(self, generation: int) -> None:
        with self._marks:
            if generation == self._generation:
                self._dead = generation
                self._ready = False

    def _pump(self, loop: asyncio.AbstractEventLoop) -> Pump | Threads:
        found = self._pumps.get(loop)
        if found is None or found.over:
            with self._pumps_lock:
                for other in [other for other in self._pumps if other.is_closed() or other is loop]:
                    self._pumps.pop(other).release()
                found = self._pumps[loop] = pump(self.handle, loop)
        return found

    def _made(self) -> list[Pump | Threads]:
        with self._pumps_lock:
            return list(self._pumps.values())

    def _drop(self, former: list[Pump | Threads]) -> None:
        """Close pumps of a former interpreter. One that another thread has made meanwhile is the new one's."""
        with self._pumps_lock:
            for loop in [loop for loop, made in self._pumps.items() if made in former]:
                del self._pumps[loop]
        for one in former:
            one.close()


class Attempts:
    """How often one call is made when the interpreter dies: once more where that is safe.

    A call that was never delivered is made again in the next interpreter. That the last one has died may be known to the
    socket some milliseconds before it is known to the engine; so it is tried for a while.
    """

    FIRST_DELAY = 0.002
    PATIENCE = 2.0

    def __init__(self, idempotent: bool) -> None:
        self._again = idempotent
        self._delay = 0.0
        self._waited = 0.0

    def after(self, exc: SandBoxProtocolError) -> float:
        """Seconds to wait before the next attempt; raises ``exc`` where there is none."""
        if getattr(exc, "undelivered", False) and self._waited < self.PATIENCE:
            delay, self._delay = self._delay, max(2 * self._delay, self.FIRST_DELAY)
            self._waited += delay
            return delay
        if self._again:
            self._again = False
            return 0.0
        raise exc


def open_live(
    *,
    init_fn: Callable[[], object] | None,
    profile: str | os.PathLike[str] | None,
    envs: Mapping[str, str] | None,
    python_args: Sequence[str] | None,
    graceful: bool,
    learn: bool | str | os.PathLike[str] | None,
    rules: Mapping[str, Rule],
    package: str | None,
    learn_for: str = "",
) -> Live:
    """Open a sandbox by the arguments of :class:`sandboxes`. No interpreter runs yet: ``Live.start`` starts it."""
    if init_fn is not None:
        check_init(init_fn)
    spec = specification(
        profile=profile, rules=rules, envs=envs, python_args=python_args, learn=learn, package=package, learn_for=learn_for
    )
    return open_native(spec, None if init_fn is None else Init(init_fn), graceful)


def specification(**options: Any) -> dict[str, Any]:
    """What is to be opened, of the arguments of :func:`open_live`."""
    try:
        binary = _binary.find()
    except FileNotFoundError as exc:
        raise SandBoxError(str(exc)) from None
    return _spec.build(binary=binary, **options)


def open_native(spec: dict[str, Any], init: Init | Initializer | None, graceful: bool) -> Live:
    """Open what :func:`specification` says."""
    _once()
    native = Sandbox.open(spec)
    live = Live(native, init, graceful, fileless=not spec["target"])
    notices = native.notices()
    if notices:
        import logging

        for notice in notices:
            logging.getLogger("Pysandboxes").warning("%s", notice)
    return live


def check_init(function: Any) -> None:
    """Refuse an ``init_fn`` that the sandbox cannot find by a name, as it finds any function."""
    if not hasattr(function, "__code__") or not hasattr(function, "__qualname__"):
        raise SandBoxError(
            f"init_fn={function!r}: init_fn is a Python function (or coroutine function) at the top level of a module, "
            "which the sandbox imports by its name"
        )
    check_name(function, "init_fn is ")


_set_up = False


def _once() -> None:
    """What a process that opens sandboxes needs: marks in its forks, and an end for those that nobody leaves."""
    global _set_up
    if not _set_up:
        _set_up = True
        import atexit

        os.register_at_fork(after_in_child=_forked)
        atexit.register(_close_all)


def _forked() -> None:
    for live in _context.opened:
        live.forked = True


def _close_all() -> None:
    for live in reversed(_context.opened[:]):
        if live.open:
            live.close()
        elif not live.forked:  # its end was interrupted
            live.native.stop(False, 0.0)
    _context.opened.clear()
