"""What test_interrupted calls: one function for each way a call goes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

from pysandboxes import sandbox


@sandbox
def pid() -> int:
    return os.getpid()


@sandbox
def give(size: int) -> bytearray:
    return bytearray(size)


@sandbox
def say() -> None:
    print("said")


@sandbox
def fail() -> None:
    raise ValueError("as asked")


BEGUN: list[None] = []
ENDED: list[None] = []


@sandbox
def two() -> Iterator[int]:
    BEGUN.append(None)
    try:
        yield 1
        yield 2
    finally:
        ENDED.append(None)


@sandbox
async def two_async() -> AsyncIterator[int]:
    import asyncio

    BEGUN.append(None)
    try:
        yield 1
        await asyncio.sleep(0.001)
        yield 2
    finally:
        ENDED.append(None)


@sandbox
def left() -> int:
    """Generators that were begun and have not ended."""
    return len(BEGUN) - len(ENDED)


@sandbox
async def pid_async() -> int:
    return os.getpid()


@sandbox
async def sleep_async(seconds: float) -> float:
    import asyncio

    await asyncio.sleep(seconds)
    return seconds


@sandbox
def hold() -> Iterator[int]:
    """No other thread of the sandbox runs after the first value: a regular expression gives nobody a turn."""
    import re

    yield 1
    re.match(r"(a+)+$", "a" * 40 + "b")
    yield 2


@sandbox
async def hold_async() -> AsyncIterator[int]:
    import re

    yield 1
    re.match(r"(a+)+$", "a" * 40 + "b")
    yield 2
