"""Calls of an event loop: the loop watches the sandbox's socket, so a waiting task costs no thread.

One pump for each loop and sandbox. Threads may read the same socket at the same time; an event that one of them read for
a task is told by the second descriptor. All loops watch that one, and the first to look at it clears it: so each pump
that has looked pokes the others.
"""

from __future__ import annotations

import os

from . import _core
from ._call import Reply, cancel, failure, timed_out
from ._exceptions import SandBoxError, SandBoxProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio


class Pump:
    """The calls of one event loop to one interpreter.

    The descriptors are duplicates of the engine's, so that closing those cannot make the loop watch another file that got
    the same number.
    """

    def __init__(self, handle: int, loop: asyncio.AbstractEventLoop, pumps: dict[asyncio.AbstractEventLoop, Pump]) -> None:
        self._handle = handle
        self._loop = loop
        self._pumps = pumps
        self._waiting: dict[int, tuple[asyncio.Future[Reply], Reply]] = {}
        self._writing = False
        socket, wake = _core.call_fds(handle)
        self._socket = os.dup(socket)
        self._fds = [self._socket, os.dup(wake)]
        for fd in self._fds:
            loop.add_reader(fd, self._ready)

    async def perform(self, payload: bytes, name: str, timeout: float | None, rule: str = "") -> Reply:
        """Send a call and wait for what comes of it; cancelling the task cancels the call in the sandbox."""
        try:
            call_id = _core.call_begin(self._handle, payload, True)
        except RuntimeError as exc:
            error = failure(exc)
            error.undelivered = True
            raise error from None
        future: asyncio.Future[Reply] = self._loop.create_future()
        self._waiting[call_id] = (future, Reply())
        timer: asyncio.TimerHandle | None = None
        if timeout is not None:
            timer = self._loop.call_later(timeout, _expire, future, timed_out(name, timeout, rule))
        try:
            # What came in while the call was written is here already, and what could not be written has to be.
            self._ready()
            return await future
        except BaseException:
            if not future.done() or future.cancelled() or call_id in self._waiting:
                cancel(self._handle, call_id)
            raise
        finally:
            self._waiting.pop(call_id, None)
            if timer is not None:
                timer.cancel()

    def _ready(self) -> None:
        """A descriptor has something: take what has come, send what could not be sent."""
        if not self._fds:
            return
        try:
            state = _core.call_pump(self._handle)
        except RuntimeError as exc:
            self._fail(failure(exc))
            return
        finally:
            if len(self._pumps) > 1:
                for pump in list(self._pumps.values()):
                    if pump is not self and pump._waiting:
                        pump._poke()
        self._watch_writing(bool(state & _core.WANT_WRITE))
        self._take_all()
        if state & _core.ENDED:
            # The socket says so for ever; the other descriptor tells when it is known why.
            self._loop.remove_reader(self._socket)

    def _poke(self) -> None:
        """Have this pump's loop look for events, from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._take_all)
        except RuntimeError:  # closed: nobody waits there
            return

    def _take_all(self) -> None:
        for call_id in list(self._waiting):
            self._take(call_id)

    def _watch_writing(self, wanted: bool) -> None:
        if wanted != self._writing and self._fds:
            self._writing = wanted
            if wanted:
                self._loop.add_writer(self._socket, self._ready)
            else:
                self._loop.remove_writer(self._socket)

    def _take(self, call_id: int) -> None:
        """Act on the events of a call that have come."""
        waiting = self._waiting.get(call_id)
        if waiting is None:
            return
        future, reply = waiting
        try:
            while not future.done():
                event = _core.call_poll(self._handle, call_id)
                if event is None:
                    return
                if reply.take(*event):
                    del self._waiting[call_id]
                    future.set_result(reply)
        except RuntimeError as exc:
            if not future.done():
                del self._waiting[call_id]
                future.set_exception(failure(exc))
        except Exception as exc:
            if not future.done():
                future.set_exception(exc)

    def _fail(self, error: SandBoxError) -> None:
        """The interpreter is gone: nobody waits any longer, and the loop watches nothing."""
        waiting, self._waiting = self._waiting, {}
        for future, _ in waiting.values():
            if not future.done():
                future.set_exception(error)
        self.release()

    def close(self) -> None:
        """Let go of the loop, from any thread."""
        if self._loop.is_closed():
            self.release()
            return
        try:
            self._loop.call_soon_threadsafe(
                self._fail, SandBoxProtocolError("the sandbox was closed while this call was under way")
            )
        except RuntimeError:  # closed meanwhile
            self.release()

    def release(self) -> None:
        self._watch_writing(False)
        fds, self._fds = self._fds, []
        for fd in fds:
            if not self._loop.is_closed():
                self._loop.remove_reader(fd)
            os.close(fd)


def _expire(future: asyncio.Future[Reply], error: SandBoxError) -> None:
    if not future.done():
        future.set_exception(error)
