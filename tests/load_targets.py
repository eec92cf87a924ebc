"""Functions that many threads and tasks call at a time. Imported by both sides."""

from __future__ import annotations

import asyncio
import resource
import time

from pysandboxes import sandbox


@sandbox
def switches() -> int:
    """How often threads of this interpreter have slept."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw


@sandbox
def lines(count: int, size: int) -> int:
    for _ in range(count):
        print("x" * size)
    return count


@sandbox
def same(value: object) -> object:
    return value


@sandbox
async def asame(value: object) -> object:
    return value


@sandbox
def nap(value: int) -> int:
    """Long enough for the watchdog to have another thread read."""
    time.sleep(0.002)
    return value


@sandbox
async def anap(value: int, seconds: float) -> int:
    await asyncio.sleep(seconds)
    return value


@sandbox
async def hold_the_loop(value: int) -> int:
    time.sleep(0.002)
    return value


@sandbox
def say(value: int) -> int:
    for number in range(20):
        print(value, number)
    return value


@sandbox
async def asay(value: int) -> int:
    for number in range(20):
        print(value, number)
        await asyncio.sleep(0)
    return value


@sandbox(timeout=0.002)
async def hurried(value: int) -> int:
    await asyncio.sleep(0.0018)
    return value
