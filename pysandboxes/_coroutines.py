"""Coroutines in a sandboxed interpreter: one event loop runs those of all calls, in a thread of its own."""

from __future__ import annotations

import sys
from _thread import allocate_lock
from contextvars import Context, copy_context

from . import _guard
from ._wire import CALL, CANCELLED

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from types import CoroutineType
    from typing import Any

    from ._serve import Call, Server

#: Coroutines that are called one after the other before their loop reads for itself.
STREAK = 2
#: Calls that it takes before its tasks have a turn.
AT_ONCE = 16
#: Times that it finds one without looking whether anything else has happened.
LOOKS = 8
#: Functions that it knows.
MAX_KNOWN = 10_000
EVENT_READ = 1  # of selectors


class LoopThread:
    """The event loop in which the coroutines of all calls run.

    asyncio is loaded for the first of them: half of a start would be its import, and most sandboxes call no coroutine.

    While coroutines are called one after the other the loop reads the channel itself (``_guard.take``), so that a call
    changes no thread. It takes the functions that it knows: those that another thread has called once, with what they
    import, and whose call runs nothing of theirs but makes the coroutine. What else comes is read by the other threads, and
    so is everything when a task keeps the loop busy.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.lock = allocate_lock()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.tasks: set[asyncio.Task[Any]] = set()
        self.known: set[bytes] = set()
        self.streak = 0
        # Where the loop is one that lets itself be told of the channel: its selector's own select(), and what it says then.
        self._select: Callable[[float | None], list[Any]] | None = None
        self._told: Any = None
        self._looked = 0
        self._fd = -1
        # What asyncio's own loop is about to run.
        self._soon: Any = None

    def start(self, call: Call, coroutine: CoroutineType[Any, Any, Any], target: bytes | None) -> None:
        """Begin a coroutine from another thread. ``target``: what names it in calls, where the loop may take such itself."""
        loop = self._ensure()
        # The call's own context, in which the coroutine was made: its output, its denials, its span.
        loop.call_soon_threadsafe(self.begin, call, coroutine, copy_context())
        self.streak += 1
        if target is not None and self._select is not None:
            if len(self.known) < MAX_KNOWN:
                self.known.add(target)
            if self.streak >= STREAK and (fd := _guard.lend()) >= 0:
                loop.call_soon_threadsafe(self._watch, fd)

    def cancel(self, call: Call) -> None:
        loop = self.loop
        if loop is not None:
            loop.call_soon_threadsafe(self._cancel, call)

    def _cancel(self, call: Call) -> None:
        if call.task is not None:
            call.task.cancel()

    # ---- in the loop's thread ---------------------------------------------------------------------------------------

    def begin(self, call: Call, coroutine: CoroutineType[Any, Any, Any], context: Context) -> None:
        loop = self.loop
        assert loop is not None
        if call.cancelled:
            coroutine.close()
            self.server.finish(call, CANCELLED)
            return
        soon = self._soon
        before = len(soon) if soon is not None else 0
        call.task = task = loop.create_task(self._run(call, coroutine), context=context)
        if soon is not None and len(soon) == before + 1:
            # Its first step at once, as tasks of Python 3.12 can be asked to: most are over by it, without a turn of the loop.
            soon.pop()._run()
        if not task.done():
            self.tasks.add(task)

    async def _run(self, call: Call, coroutine: CoroutineType[Any, Any, Any]) -> None:
        server, task = self.server, call.task
        try:
            value = await coroutine
        except BaseException as exc:
            last = server.failed(call, exc)
        else:
            last = server.succeeded(call, value)
        coroutine = value = None  # type: ignore[assignment]
        if task is not None:
            self.tasks.discard(task)
        server.finish(call, *last)

    def _watch(self, fd: int) -> None:
        assert self.loop is not None
        self.loop.add_reader(fd, self._read)
        self._fd = fd
        self._told = (self.loop._selector.get_key(fd), EVENT_READ)  # type: ignore[attr-defined]

    def _read(self) -> None:
        """Something has come by the channel: take what is for this thread."""
        assert self.loop is not None
        for _ in range(AT_ONCE):
            message = _guard.take(self.known)
            if message is None or message is True:
                return
            if message is False:
                self.streak = 0
                self._told = None
                self.loop.remove_reader(self._fd)
                return
            kind, call_id, payload, more = message
            try:
                if kind == CALL:
                    held: list[Any] = [payload]  # for perform alone, which lets go of it
                    del message, payload
                    context = Context()
                    made = context.run(self.server.perform, call_id, held, True)
                    if made is not None:
                        self.begin(*made, context)
                else:
                    self.server.cancel(call_id)
            except BaseException as exc:
                report("the event loop of the sandbox", exc)
            if not more:
                return
        self.loop.call_soon(self._read)

    def _look_and_select(self, timeout: float | None = None) -> list[Any]:
        """The selector's select(): before the loop sleeps it looks at the channel for a moment."""
        assert self._select is not None
        if self._told is None or (timeout is not None and timeout <= 0):
            return self._select(timeout)
        come = _guard.look()
        self._looked = self._looked + 1 if come else 0
        if come and self._looked < LOOKS:
            _guard.leave()
            return [self._told]
        self._looked = 0
        try:
            events = self._select(0 if come else timeout)
        finally:
            _guard.leave()
        if come:
            events.append(self._told)
        return events

    # ---- its beginning ----------------------------------------------------------------------------------------------

    def _ensure(self) -> asyncio.AbstractEventLoop:
        with self.lock:
            if self.loop is None:
                import asyncio

                loop = asyncio.new_event_loop()
                selector = getattr(loop, "_selector", None)
                if type(loop) is asyncio.SelectorEventLoop and selector is not None:
                    self._soon = getattr(loop, "_ready", None)
                    self._select = selector.select
                    selector.select = self._look_and_select
                self.loop = loop
                self.server.start_thread(self._forever, self.loop)
            return self.loop

    @staticmethod
    def _forever(loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        asyncio.set_event_loop(loop)
        loop.run_forever()


def report(where: str, exc: BaseException) -> None:
    """A failure of our own on the interpreter's real stderr, which the application shows."""
    try:
        stream = sys.__stderr__
        if stream is not None:
            stream.write(f"pysandboxes: {where}: {type(exc).__name__}: {exc}\n")
            stream.flush()
    except BaseException:
        return
