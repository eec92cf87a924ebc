"""Reads the one msgpack shape the application takes from a sandbox in Python: a flat map of plain values.

The bytes are the child's: anything but that shape, and any length that does not fit, gives None.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_FIELDS = 64


def unpack_map(data: bytes) -> dict[str, Any] | None:
    """The map of ``data`` with its text keys; None where it is anything else."""
    try:
        count, at = _map_header(data)
        if count > MAX_FIELDS:
            return None
        fields: dict[str, Any] = {}
        for _ in range(count):
            key, at = _value(data, at)
            value, at = _value(data, at)
            if not isinstance(key, str):
                return None
            fields[key] = value
    except (IndexError, ValueError):
        return None
    return fields if at == len(data) else None


def _map_header(data: bytes) -> tuple[int, int]:
    first = data[0]
    if first & 0xF0 == 0x80:
        return first & 0x0F, 1
    if first == 0xDE:
        return int.from_bytes(_slice(data, 1, 2), "big"), 3
    raise ValueError("no map")


# First byte -> width of the number that follows, signed.
_INTEGERS = {
    0xCC: (1, False),
    0xCD: (2, False),
    0xCE: (4, False),
    0xCF: (8, False),
    0xD0: (1, True),
    0xD1: (2, True),
    0xD2: (4, True),
    0xD3: (8, True),
}
# First byte -> width of the length that follows, and whether the value is text.
_STRINGS = {0xD9: (1, True), 0xDA: (2, True), 0xDB: (4, True), 0xC4: (1, False), 0xC5: (2, False), 0xC6: (4, False)}
_CONSTANTS: dict[int, object] = {0xC0: None, 0xC2: False, 0xC3: True}
_FLOATS = {0xCA: (4, "f"), 0xCB: (8, "d")}


def _value(data: bytes, at: int) -> tuple[Any, int]:
    first = data[at]
    at += 1
    if first < 0x80:
        return first, at
    if first >= 0xE0:
        return first - 0x100, at
    if first & 0xE0 == 0xA0:
        return _text(data, at, first & 0x1F, True)
    if first in _CONSTANTS:
        return _CONSTANTS[first], at
    if first in _INTEGERS:
        width, signed = _INTEGERS[first]
        return int.from_bytes(_slice(data, at, width), "big", signed=signed), at + width
    if first in _STRINGS:
        width, text = _STRINGS[first]
        return _text(data, at + width, int.from_bytes(_slice(data, at, width), "big"), text)
    if first in _FLOATS:
        from struct import unpack

        width, code = _FLOATS[first]
        return unpack(f">{code}", _slice(data, at, width))[0], at + width
    raise ValueError("not a plain value")


def _slice(data: bytes, at: int, size: int) -> bytes:
    part = data[at : at + size]
    if len(part) != size:
        raise ValueError("cut short")
    return part


def _text(data: bytes, at: int, size: int, text: bool) -> tuple[str | bytes, int]:
    part = _slice(data, at, size)
    return part.decode("utf-8", "backslashreplace") if text else part, at + size
