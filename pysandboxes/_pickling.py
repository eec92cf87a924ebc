"""How a result is pickled: what is large in it goes beside the pickle, as it lies in memory (PEP 574).

Only objects that ask for it (numpy's arrays) are out-of-band to CPython's pickler. Bytes are not, but the pickler hands large
ones to its file as they are, right after the instruction that would hold them: which then becomes NEXT_BUFFER.
"""

from __future__ import annotations

from _pickle import Pickler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pickle import PickleBuffer
    from typing import Any

#: Types of values that are not worth looking for something large in.
SMALL = frozenset({type(None), bool, int, float, complex, str})
#: Bytes from which on the pickler hands bytes over as they are (FRAME_SIZE_TARGET of _pickle.c), and that go beside the pickle.
LARGE = 64 << 10

PROTO, FRAME, NEXT_BUFFER = b"\x80", b"\x95", b"\x97"
BINBYTES, BINBYTES8 = b"B", b"\x8e"


def pickled(value: object) -> tuple[bytes, list[Any]]:
    """The pickle of ``value``, and what belongs beside it, in order."""
    if type(value) is bytes and len(value) >= LARGE:
        return PROTO + b"\x05" + NEXT_BUFFER + b".", [value]
    sink = _Sink()
    Pickler(sink, 5, buffer_callback=sink.keep).dump(value)
    return b"".join(sink.parts), sink.buffers


class _Sink:
    """The pickler's file."""

    __slots__ = ("buffers", "header", "parts")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.buffers: list[Any] = []
        #: Whether the last part ends with the header of what is written next.
        self.header = False

    def keep(self, buffer: PickleBuffer) -> bool:
        """Take a buffer that an object offers; True: it is too small, and stays in the pickle."""
        if buffer.raw().nbytes < LARGE:
            return True
        self.buffers.append(buffer)
        return False

    def write(self, data: Any) -> None:
        if self.header:
            self.header = False
            if type(data) is bytes:
                last = self.parts[-1]
                for header in (BINBYTES + len(data).to_bytes(4, "little"), BINBYTES8 + len(data).to_bytes(8, "little")):
                    if last.endswith(header):
                        self.parts[-1] = last[: -len(header)] + NEXT_BUFFER
                        self.buffers.append(data)
                        return
        else:
            self.header = _ends_in_header(data, not self.parts)
        # A view is of memory that only the pickler's caller keeps alive.
        self.parts.append(data if type(data) is bytes else bytes(data))


def _ends_in_header(data: bytes, first: bool) -> bool:
    """Whether something follows the frame that ``data`` is, which then ends in the header of a large text.

    What the pickler writes at a time is one frame, perhaps after PROTO, or up to three bytes that are not worth one; and
    after that a header of five bytes or nine, or nothing. So nothing that a program puts into its values looks like one.
    """
    start = 2 if first else 0
    if data[start : start + 1] == FRAME:
        start += 9 + int.from_bytes(data[start + 1 : start + 9], "little")
    return len(data) - start >= 5
