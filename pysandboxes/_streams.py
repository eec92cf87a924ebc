"""sys.stdout and sys.stderr of a sandboxed interpreter: what a call prints goes to the caller of that call.

Text is handed over line by line, as a terminal shows it, or when flushed, and in any case before the call's result.
What is printed outside of any call, or by a thread that outlives its call, goes to this process's own descriptors 1 and 2,
which the application reads at any time: the channel of calls is read only while somebody waits for one.
"""

from __future__ import annotations

import io
from _thread import RLock
from contextvars import ContextVar
from posix import write

from . import _guard
from ._wire import STDERR, STDOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

#: Text of this many characters is handed over without waiting for the end of the line.
PENDING_LIMIT = 8192


class Outlet:
    """Where the output of one call goes: the call's number (0 once it is over) and its unfinished lines.

    Nothing may be sent for a call that is over: the application ends a sandbox that does. Hence the lock between a thread
    that prints and the end of its call; it may be taken again, since a signal handler or ``__del__`` may print as well.
    """

    __slots__ = ("err", "id", "lock", "out")

    def __init__(self, call_id: int) -> None:
        self.id = call_id
        self.lock = RLock()
        self.out: list[str] = []
        self.err: list[str] = []

    def add(self, kind: int, text: str) -> bool:
        """Keep a piece of text; True when it is time to hand it over."""
        with self.lock:
            parts = self.out if kind == STDOUT else self.err
            parts.append(text)
        return "\n" in text or "\r" in text or len(text) > PENDING_LIMIT or len(parts) > PENDING_LIMIT

    def send(self, kind: int, data: bytes) -> None:
        with self.lock:
            if self.id:
                _guard.send(kind, self.id, data)
            else:
                _write(kind - STDOUT + 1, data)

    def flush(self, kind: int) -> None:
        with self.lock:
            if kind == STDOUT:
                parts, self.out = self.out, []
            else:
                parts, self.err = self.err, []
            if parts:
                self.send(kind, encode("".join(parts)))

    def close(self) -> None:
        """Hand over what is pending; later output is the application's."""
        with self.lock:
            if self.out:
                self.flush(STDOUT)
            if self.err:
                self.flush(STDERR)
            self.id = 0


application = Outlet(0)
outlet: ContextVar[Outlet] = ContextVar("pysandboxes_outlet", default=application)


def encode(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[write(descriptor, view) :]
        except OSError:  # closed: as any output that nobody reads
            return


class _Raw(io.BufferedIOBase):
    """``sys.stdout.buffer``: bytes that keep their place among the text."""

    def __init__(self, kind: int) -> None:
        self._kind = kind

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._kind - STDOUT + 1

    def write(self, data: Buffer, /) -> int:
        view = memoryview(data)
        size = view.nbytes
        if size:
            target = outlet.get()
            target.flush(self._kind)
            target.send(self._kind, view.tobytes())
        return size

    def flush(self) -> None:
        outlet.get().flush(self._kind)


class Output(io.TextIOBase):
    """The text stream over :class:`_Raw`."""

    encoding = "utf-8"
    newlines = None
    line_buffering = True

    def __init__(self, kind: int) -> None:
        self._kind = kind
        self._buffer = _Raw(kind)
        self.name = "<stdout>" if kind == STDOUT else "<stderr>"
        self.mode = "w"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return "surrogateescape" if self._kind == STDOUT else "backslashreplace"

    @property
    def buffer(self) -> _Raw:
        return self._buffer

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._buffer.fileno()

    def reconfigure(self, **_: object) -> None:
        """Accepted as programs expect it; the stream is UTF-8 by lines whatever is asked."""

    def write(self, text: str, /) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        target = outlet.get()
        if target.add(self._kind, text):
            target.flush(self._kind)
        return len(text)

    def flush(self) -> None:
        outlet.get().flush(self._kind)
