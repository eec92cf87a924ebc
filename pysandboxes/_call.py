"""A call from the application's side: what travels there, what comes back, and in whose thread.

The calling thread itself reads the socket (``_core.call_next``), so that nothing stands between a call and its answer.
"""

from __future__ import annotations

import sys
from _pickle import dumps, loads
from time import monotonic

from . import _core
from ._exceptions import RestrictedUnpicklingError, SandBoxError, SandBoxProtocolError, SandBoxTimeoutError
from ._telemetry import TRACE, current
from ._wire import CANCELLED, CHUNK, EXCEPTION, INTERNAL, LOG, RESULT, STDERR, STDOUT, TASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Context
    from typing import Any, TextIO


def payload_of(module: str, qualname: str, args: tuple[Any, ...], kwargs: dict[str, Any], name: str = "") -> bytes:
    """What a CALL carries. An argument that cannot be pickled is named in the error."""
    try:
        if TRACE in sys.modules and (span := current()) is not None:
            return dumps((module, qualname, args, kwargs, span), 5)
        return dumps((module, qualname, args, kwargs), 5)
    except Exception as exc:
        args, kwargs = _given(module, qualname, args, kwargs)
        raise SandBoxError(
            f"{_unpicklable(args, kwargs)} of {name or f'{module}.{qualname}'} cannot be sent into the sandbox: "
            f"{type(exc).__name__}: {exc}; "
            "arguments travel as pickles, so pass plain values, or objects whose class is at the top level of a module "
            "(no lambda, no local function, no open file, no lock)"
        ) from exc


def _given(module: str, qualname: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of the function itself, where an operation of the serving loop calls it."""
    if module != INTERNAL or qualname not in (TASK, CHUNK):
        return args, kwargs
    found, given, named = args
    values = given if qualname == TASK else [value for row in given for value in row]
    return (*values, found), named


def _unpicklable(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    named = [(f"argument {place}", value) for place, value in enumerate(args, 1)]
    named += [(f"argument {name!r}", value) for name, value in kwargs.items()]
    for name, value in named:
        try:
            dumps(value, 5)
        except Exception:
            return f"{name} ({_kind(value)})"
    return "an argument"


def _kind(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def perform(handle: int, payload: bytes, name: str, timeout: float | None, rule: str = "") -> Reply:
    """Send a call and wait for what comes of it; ``timeout`` in seconds, None waits for ever; ``rule`` is its line.

    Whatever interrupts the wait (Ctrl-C, a failing ``sys.stdout``) cancels the call in the sandbox.
    """
    begun: list[int] = []
    try:
        begin(handle, payload, begun)
        return follow(handle, begun[0], name, timeout, rule)
    except BaseException:
        cancel(handle, begun)
        raise


def follow(handle: int, call_id: int, name: str, timeout: float | None, rule: str = "") -> Reply:
    """Wait for what comes of a call that was sent; who began it cancels it when this raises."""
    deadline = None if timeout is None else monotonic() + timeout
    reply = Reply()
    try:
        while True:
            wait = -1.0 if deadline is None else max(0.0, deadline - monotonic())
            event = _core.call_next(handle, call_id, wait, reply.buffers)
            if event is None:
                raise timed_out(name, timeout, rule)
            if reply.take(*event):
                break
    except RuntimeError as exc:
        if type(exc) is RuntimeError:
            raise failure(exc) from None
        raise
    return reply


class Reply:
    """Takes the events of one call: output to the caller's streams at once, the outcome for later."""

    __slots__ = ("_data", "_decoders", "_descriptor", "_kind", "_rich", "buffers", "context")

    def __init__(self) -> None:
        self._kind = 0
        self._data: bytes | None = None
        self._rich: bytes | None = None
        self._descriptor: str | None = None
        self._decoders: dict[int, Any] | None = None
        #: The context of a task that waits: what is shown there may depend on it, as it does in a notebook's cell.
        self.context: Context | None = None
        #: Large bytes objects and bytearrays of the result, which come beside its pickle.
        self.buffers: list[Any] = []

    def take(self, kind: int, data: bytes | None, rich: Any, descriptor: str | None) -> bool:
        """Act on one event; True when it was the last of its call."""
        if kind in (RESULT, EXCEPTION, CANCELLED):
            self._kind, self._data, self._descriptor = kind, data, descriptor
            if kind == RESULT:
                self.buffers = rich or self.buffers
            else:
                self._rich = rich
            return True
        if self.context is not None:
            context, self.context = self.context, None
            try:
                return context.run(self.take, kind, data, rich, descriptor)
            finally:
                self.context = context
        if kind == LOG:
            log(descriptor)
        elif kind == STDOUT:
            self._write(sys.stdout, kind, data or b"")
        elif kind == STDERR:
            self._write(sys.stderr, kind, data or b"")
        return False

    def outcome(self) -> Any:
        """The call's result, or its exception raised."""
        if self._kind == RESULT:
            # The transport has validated every opcode of it (core/unpickle).
            if self._descriptor is not None:
                from ._objects import load

                return load(self._data or b"", self.buffers, self._descriptor)
            try:
                if self.buffers:
                    return loads(self._data or b"", buffers=self.buffers)
                return loads(self._data or b"")
            except MemoryError:
                raise
            except Exception as exc:  # such as a time zone that only the sandbox has
                raise RestrictedUnpicklingError(f"the result cannot be rebuilt: {type(exc).__name__}: {exc}") from exc
        if self._kind == CANCELLED:
            from asyncio import CancelledError

            raise CancelledError
        raise exception(self._descriptor, self._rich)

    def _write(self, stream: TextIO | None, kind: int, data: bytes) -> None:
        if stream is None:
            return
        if self._decoders is None:
            self._decoders = {}
        decoder = self._decoders.get(kind)
        if decoder is None:
            import codecs

            decoder = self._decoders[kind] = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        text = decoder.decode(data)
        try:
            stream.write(text)
        except UnicodeEncodeError:
            encoding = getattr(stream, "encoding", None) or "ascii"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()


def exception(descriptor: str | None, rich: bytes | None) -> BaseException:
    """The exception that an EXCEPTION event tells of."""
    from json import loads as from_json

    from ._rebuild import rebuild

    try:
        fields = from_json(descriptor or "")
        if isinstance(fields, dict):
            return rebuild(fields, rich)
    except Exception:  # of a class whose instances cannot even be made
        pass
    return SandBoxProtocolError("the sandboxed call failed, and its account of how cannot be read")


def log(record: str | None) -> None:
    """Handle a log record of the sandbox, which the transport gives as a JSON object."""
    from json import loads as from_json

    from ._logs import handle

    fields = from_json(record or "{}")
    if isinstance(fields, dict):
        handle(fields)


def begin(handle: int, payload: bytes, begun: list[int]) -> None:
    """Send a call: its number is in ``begun`` from then on. An error means that the sandbox lacks it (``undelivered``)."""
    try:
        _core.call_begin(handle, payload, begun)
    except RuntimeError as exc:
        error = failure(exc)
        error.undelivered = True
        raise error from None


def cancel(handle: int, begun: list[int]) -> None:
    """Let go of a call, if it was begun; a sandbox that is gone meanwhile has nothing to cancel."""
    try:
        for call_id in begun:
            _core.call_cancel(handle, call_id)
    except RuntimeError:
        return


def timed_out(name: str, timeout: float | None, rule: str) -> SandBoxTimeoutError:
    return SandBoxTimeoutError(f"{name} has not answered within {timeout:g} s ({rule or f'@sandbox(timeout={timeout:g})'})")


def failure(exc: RuntimeError) -> SandBoxError:
    """The exception for an error of the engine, whose text is a JSON object ``{"kind", "message", ...}``."""
    from ._native import error_from

    return error_from(exc)
