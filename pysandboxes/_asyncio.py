"""Calls of an event loop: the loop watches one descriptor of the engine's, so a waiting task costs no thread.

One pump for each loop and interpreter. The descriptor stands for the socket and for what other threads have read of it
(core/transport/loop.go). Where nothing else is to be done, a call looks for its answer before it gives the loop back.
"""

from __future__ import annotations

from contextvars import copy_context

from . import _core
from ._call import Reply, begin, cancel, failure, follow, timed_out
from ._exceptions import SandBoxError, SandBoxProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Generator
    from typing import Any

#: Kind of the event that says that a call has failed.
FAILED = 0
#: Calls that may be answered one after the other before the loop has a turn: others wait there, and time passes.
INLINE_MOST = 8


class Pump:
    """The calls of one event loop to one interpreter."""

    def __init__(self, handle: int, loop: asyncio.AbstractEventLoop) -> None:
        self._handle = handle
        self._loop = loop
        self._waiting: dict[int, tuple[asyncio.Future[Reply], Reply]] = {}
        #: Events that were read and not acted on yet.
        self._events: list[tuple[int, int, bytes | None, Any, str | None]] = []
        self._inline = 0
        #: The connection is over: another pump is needed for what comes.
        self.over = False
        # What the loop is about to run, where it is asyncio's own: nothing in it means that a call may hold the loop up.
        ready = getattr(loop, "_ready", None)
        self._soon: Any = ready if type(ready).__name__ == "deque" else None
        self._number, self._fd = _core.loop_open(handle)
        try:
            loop.add_reader(self._fd, self._ready)
        except BaseException:
            _core.loop_close(handle, self._number)
            raise

    async def perform(self, payload: bytes, name: str, timeout: float | None, rule: str = "") -> Reply:
        """Send a call and wait for what comes of it; cancelling the task cancels the call in the sandbox."""
        look = self._soon is not None and not self._soon
        begun: list[int] = []
        call_id = 0
        future: asyncio.Future[Reply] | None = None
        timer: asyncio.TimerHandle | None = None
        try:
            call_id, kind, data, rich, descriptor = self._send(payload, look, begun)
            if kind == FAILED:
                raise _failed(descriptor)
            reply = Reply()
            if kind > 0 and reply.take(kind, data, rich, descriptor):
                self._inline += 1
                if self._inline >= INLINE_MOST:
                    self._inline = 0
                    await _Turn()
                return reply
            self._inline = 0
            future = self._loop.create_future()
            reply.context = copy_context()
            self._waiting[call_id] = (future, reply)
            if timeout is not None:
                timer = self._loop.call_later(timeout, _expire, future, timed_out(name, timeout, rule))
            return await future
        except BaseException:
            if future is None or not future.done() or future.cancelled() or call_id in self._waiting:
                cancel(self._handle, begun)
            raise
        finally:
            self._waiting.pop(call_id, None)
            if timer is not None:
                timer.cancel()

    def _send(self, payload: bytes, look: bool, begun: list[int]) -> tuple[int, int, bytes | None, Any, str | None]:
        try:
            return _core.loop_send(self._handle, self._number, payload, look, begun)
        except RuntimeError as exc:
            error = failure(exc)
            error.undelivered = True
            raise error from None

    def _ready(self) -> None:
        """The descriptor has something: take what has come."""
        if self._fd < 0:
            return
        error: SandBoxError | None = None
        try:
            try:
                _core.loop_take(self._handle, self._number, self._events)
            except RuntimeError as exc:
                error = failure(exc)
            while self._events:
                self._act(*self._events.pop(0))
        except BaseException:
            # Ctrl-C, where the loop leaves it to be raised anywhere: the other tasks still get theirs.
            self._loop.call_soon(self._ready)
            raise
        if error is not None:
            self.over = True
            self._fail(error)

    def _act(self, call_id: int, kind: int, data: bytes | None, rich: Any, descriptor: str | None) -> None:
        waiting = self._waiting.get(call_id)
        if waiting is None or waiting[0].done():
            return  # cancelled, and the task has not come to telling so
        future, reply = waiting
        try:
            if kind == FAILED:
                del self._waiting[call_id]
                future.set_exception(_failed(descriptor))
            elif reply.take(kind, data, rich, descriptor):
                del self._waiting[call_id]
                future.set_result(reply)
        except Exception as exc:  # a sys.stdout that fails
            if not future.done():
                future.set_exception(exc)

    def _fail(self, error: SandBoxError) -> None:
        """Nobody waits any longer. The descriptor of a connection that is over has told so, and is quiet."""
        waiting, self._waiting = self._waiting, {}
        for future, _ in waiting.values():
            if not future.done():
                future.set_exception(error)

    def close(self) -> None:
        """Let go of the loop, from any thread."""
        if self._loop.is_closed():
            self.release()
            return
        try:
            self._loop.call_soon_threadsafe(self._close)
        except RuntimeError:  # closed meanwhile
            self.release()

    def _close(self) -> None:
        self._ready()  # a last answer may be there, and the loop has not come to it
        self._fail(SandBoxProtocolError("the sandbox was closed while this call was under way"))
        self.release()

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        if not self._loop.is_closed():
            self._loop.remove_reader(fd)
        try:
            _core.loop_close(self._handle, self._number)
        except RuntimeError:  # a forked copy of the process: it is the parent's
            return


class Threads:
    """The same for an event loop that cannot watch a descriptor: a waiting call costs a thread of its executor."""

    over = False

    def __init__(self, handle: int, loop: asyncio.AbstractEventLoop) -> None:
        self._handle = handle
        self._loop = loop

    async def perform(self, payload: bytes, name: str, timeout: float | None, rule: str = "") -> Reply:
        begun: list[int] = []
        try:
            begin(self._handle, payload, begun)
            return await self._loop.run_in_executor(
                None, copy_context().run, follow, self._handle, begun[0], name, timeout, rule
            )
        except BaseException:
            cancel(self._handle, begun)
            raise

    def close(self) -> None:
        """Nothing to let go of: its threads wait for the interpreter, whose end they are told."""

    release = close


def pump(handle: int, loop: asyncio.AbstractEventLoop) -> Pump | Threads:
    try:
        return Pump(handle, loop)
    except NotImplementedError:
        return Threads(handle, loop)


class _Turn:
    """Awaited, it gives the loop one turn."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield


def _failed(text: str | None) -> Exception:
    return MemoryError("there is no memory for what the call gave") if text is None else failure(RuntimeError(text))


def _expire(future: asyncio.Future[Reply], error: SandBoxError) -> None:
    if not future.done():
        future.set_exception(error)
