"""A sandbox that speaks on its own call channel: found by its number, written to by the C library, past all of ours."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
import time
from typing import Any

from pysandboxes import sandbox

LIBC = ctypes.CDLL(None, use_errno=True)
SOL_SOCKET, SO_TYPE, SO_DOMAIN = 1, 3, 39


def option(fd: int, name: int) -> int:
    value, size = ctypes.c_int(-1), ctypes.c_uint(4)
    return value.value if LIBC.getsockopt(fd, SOL_SOCKET, name, ctypes.byref(value), ctypes.byref(size)) == 0 else -1


def channel() -> int:
    """The one local stream socket that the guard has put at a high number."""
    return next(fd for fd in range(1100, 2, -1) if option(fd, SO_TYPE) == 1 and option(fd, SO_DOMAIN) == 1)


def write(data: bytes, fd: int) -> None:
    at = 0
    while at < len(data):
        done = LIBC.write(fd, data[at:], ctypes.c_size_t(len(data) - at))
        if done <= 0:
            return
        at += done


def pack(value: Any) -> bytes:
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, str):
        return b"\xdb" + struct.pack(">I", len(value.encode())) + value.encode()
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, dict):
        return b"\xdf" + struct.pack(">I", len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())
    return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))


def frame(*fields: Any) -> bytes:
    body = pack(list(fields))
    return struct.pack(">I", len(body)) + body


def own_call() -> int:
    from pysandboxes._streams import outlet

    return outlet.get().id


NONE = b"\x80\x05N."
BOMB = b"\x80\x05\x8c\x05posix\x8c\x06system\x93\x8c\x0ctouch /tmp/x\x85R."


def descriptor(**more: Any) -> bytes:
    return pack({"module": "builtins", "qualname": "ValueError", "message": "m", **more})


@sandbox
def attack(how: str) -> str:
    fd, mine = channel(), own_call()
    if how == "half a frame, and the end":
        write(frame(14, mine, b"x" * 1000)[:500], fd)
        os._exit(0)
    if how == "closes":
        LIBC.shutdown(fd, 2)  # else the thread that reads keeps it open, and all there is to see is a call that hangs
        LIBC.close(fd)
    elif how == "shuts its end":
        LIBC.shutdown(fd, 1)
    elif how == "output without end":
        while True:
            write(frame(11, mine, b"x" * 65536) * 16, fd)
    elif how == "records without end":
        while True:
            write(frame(13, mine, pack({"msg": "x"})) * 1000, fd)
    else:
        write(
            {
                "garbage": os.urandom(100_000),
                "a huge frame": b"\x7f\xff\xff\xff" + b"x" * 1000,
                "an answer to no question": frame(14, mine + 1000, NONE),
                "an answer to call 0": frame(14, 0, NONE),
                "output of no such call": frame(11, mine + 1000, b"x"),
                "two answers": frame(14, mine, NONE) * 2,
                "READY again": frame(10, 0, "0", 1, "3"),
                "another version": frame(10, 0, "9.9", 1, "3"),
                "a kind of the application's": frame(1, mine, b"x"),
                "an unknown field": frame(15, mine, descriptor(evil=1), None),
                "a pickle bomb": frame(14, mine, BOMB),
                "an exception of a million frames": frame(15, mine, descriptor(frames=[["f", 1, "g", ""]] * 50_000), None),
                "a bomb in an exception": frame(15, mine, descriptor(), BOMB),
            }[how],
            fd,
        )
    time.sleep(60)
    return how


@sandbox(timeout=0.5)
def stall() -> None:
    """Begins a frame and leaves it at that."""
    write(frame(11, own_call(), b"x" * 1000)[:100], channel())
    threading.Event().wait(60)


@sandbox
def quiet() -> int:
    return os.getpid()
