"""What the tests of native output call in a sandbox: writes to descriptors 1 and 2 that pass Python's streams by."""

from __future__ import annotations

import ctypes
import os
import time

from pysandboxes import sandbox

_libc = ctypes.CDLL(None)


@sandbox
def write(out: bytes = b"", err: bytes = b"") -> None:
    os.write(1, out)
    os.write(2, err)


@sandbox
async def write_async(out: bytes) -> None:
    os.write(1, out)


@sandbox
def print_c(text: bytes) -> None:
    """By C's own buffered stream, without an end of line."""
    print("python")
    _libc.printf(b"%s", text)


@sandbox
def write_and_fail(out: bytes) -> None:
    os.write(1, out)
    raise ValueError("failed")


@sandbox
def write_and_die(err: bytes) -> None:
    os.write(2, err)
    os._exit(3)


@sandbox
def write_and_wait(out: bytes, path: str) -> bool:
    """True when ``path`` was there in time."""
    os.write(1, out)
    return _await(path)


@sandbox
def write_often(size: int) -> None:
    block = bytes(1 << 16)
    for _ in range(size >> 16):
        os.write(1, block)


def _await(path: str) -> bool:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if os.path.exists(path):  # noqa: PTH110
            return True
        time.sleep(0.002)
    return False
