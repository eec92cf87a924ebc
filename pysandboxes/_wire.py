"""What both ends of a sandbox agree on: the kinds of frames, and the settings the application gives its child.

Imported by the child before the guard is armed, so it imports nothing.
"""

from __future__ import annotations

# Kinds of frames from the child (docs/implementation.md, "Calls").
CALL = 1
CANCEL = 2
STOP = 3
STDOUT = 11
STDERR = 12
LOG = 13
RESULT = 14
EXCEPTION = 15
CANCELLED = 16

#: Payload module of a request to the serving loop itself; the qualified name is one of its operations.
INTERNAL = ""
#: Operations that call what a pool was given. In errors they stand for its name.
TASK = "the task"
CHUNK = "the chunk of tasks"


def pack_settings(settings: list[tuple[str, str]]) -> bytes:
    """Settings as ``key=value`` fields that end with NUL. A key may come more than once (``path``, ``argv``).

    Paths and arguments of a process hold no NUL; what is not UTF-8 crosses by surrogates.
    """
    fields = []
    for key, value in settings:
        if "\0" in value:
            raise ValueError(f"a NUL in the setting {key!r} for a sandboxed interpreter")
        fields.append(f"{key}={value}\0")
    return "".join(fields).encode("utf-8", "surrogateescape")


def unpack_settings(data: bytes) -> dict[str, list[str]]:
    """The settings that :func:`pack_settings` packed, the values of a key in their order."""
    settings: dict[str, list[str]] = {}
    for field in data.decode("utf-8", "surrogateescape").split("\0"):
        key, equals, value = field.partition("=")
        if equals:
            settings.setdefault(key, []).append(value)
    return settings
