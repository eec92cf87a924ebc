"""Functions that fail in every way a limit or a fault makes them fail. Imported by both sides, so it imports little."""

# ruff: noqa: PTH123

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from pysandboxes import sandbox

MB = 1 << 20


@sandbox
def take(size: int) -> int:
    """As much memory at once."""
    return len(bytearray(size))


@sandbox
def take_all() -> None:
    kept = []
    while True:
        kept.append(bytes(MB))


@sandbox
def share(size: int) -> int:
    """Memory that a resource limit of one process does not count."""
    import mmap

    with mmap.mmap(-1, size) as shared:
        return shared.write(b"x" * MB)


@sandbox
def compute(seconds: float) -> float:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return seconds


@sandbox
def compute_through_signals(seconds: float) -> None:
    """Goes on after SIGXCPU."""
    import signal

    signal.signal(signal.SIGXCPU, lambda *_: None)
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@sandbox
def open_files(number: int) -> int:
    with contextlib.ExitStack() as files:
        for _ in range(number):
            files.enter_context(open("/dev/null"))
    return number


@sandbox
def start_processes(number: int) -> int:
    """Forks that do nothing; all are collected."""
    made = []
    try:
        for _ in range(number):
            pid = os.fork()
            if not pid:
                try:
                    time.sleep(60)
                finally:
                    os._exit(0)
            made.append(pid)
    finally:
        for pid in made:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    return number


@sandbox
def start_threads(number: int) -> int:
    import threading

    end = threading.Event()
    threads: list[threading.Thread] = []
    try:
        for _ in range(number):
            thread = threading.Thread(target=end.wait)
            thread.start()
            threads.append(thread)
    finally:
        end.set()
        for thread in threads:
            thread.join()
    return number


@sandbox
def answer(size: int) -> bytes:
    return b"x" * size


@sandbox
def take_argument(value: Any) -> int:
    return len(value)


@sandbox
def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@sandbox
async def sleep_async(seconds: float) -> float:
    import asyncio

    await asyncio.sleep(seconds)
    return seconds


@sandbox
def pid() -> int:
    return os.getpid()


def _deeper() -> int:
    return 1 + _deeper()


@sandbox
def end_by(how: str) -> Any:
    """End the interpreter, or try to."""
    if how == "_exit":
        os._exit(3)
    if how == "exit":
        sys.exit(4)
    if how == "quit":
        raise SystemExit("by a message")
    if how == "recursion":
        return _deeper()
    if how == "fault":
        import ctypes

        ctypes.string_at(0)
    os.kill(os.getpid(), int(how))
    return None


@sandbox
def limit_of(name: str) -> int:
    import resource

    return resource.getrlimit(getattr(resource, name))[1]


@sandbox
def raise_limit(name: str) -> None:
    import resource

    hard = resource.getrlimit(getattr(resource, name))[1]
    resource.setrlimit(getattr(resource, name), (hard + 1, hard + 1))


@sandbox
def say(text: str) -> None:
    print(text)


@sandbox
def write(chunks: list[bytes], times: int = 1) -> int:
    """To sys.stdout as bytes, a chunk at a time."""
    written = 0
    for _ in range(times):
        for chunk in chunks:
            written += sys.stdout.buffer.write(chunk)
            sys.stdout.flush()
    return written


@sandbox
def write_natively(data: bytes) -> int:
    """As a C library does: to the descriptor."""
    return os.write(1, data)


@sandbox
def fork_and_go_on() -> int:
    """A fork that neither calls nor answers: its end is its own."""
    pid = os.fork()
    if not pid:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@sandbox
def fork_and_come_back(how: str) -> int:
    """A fork that comes back from the call as its parent does; the status it ends with."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if how == "exit":
        sys.exit(5)
    if how == "message":
        sys.exit("a last word")
    if how == "raise":
        raise ValueError("in the fork")
    return -1


INITIALISED: list[str] = []


def initialise_by_a_call() -> None:
    INITIALISED.append(answer(3).decode())


@sandbox
def initialised() -> list[str]:
    return INITIALISED


def initialise_for_ever() -> None:
    print("initialising", flush=True)
    time.sleep(600)


def initialise_and_die() -> None:
    os._exit(9)


@sandbox(timeout=0.3)
def sleep_a_moment(seconds: float) -> None:
    time.sleep(seconds)


WRITTEN = [0]


@sandbox
def write_and_count(size: int, times: int) -> int:
    """To sys.stdout, in lines of that size; ``written`` tells how far it has come."""
    line = "x" * (size - 1) + "\n"
    WRITTEN[0] = 0
    for _ in range(times):
        sys.stdout.write(line)
        WRITTEN[0] += size
    return WRITTEN[0]


@sandbox
def written() -> int:
    return WRITTEN[0]


@sandbox
def count_from(start: int) -> Iterator[int]:
    while True:
        yield start
        start += 1


FREED: list[str] = []


class Slowly:
    """Takes its time to go."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __del__(self) -> None:
        time.sleep(0.2)
        FREED.append(self.name)


def _raise(name: str, depth: int) -> None:
    held = Slowly(f"{name}-{depth}")
    if depth:
        _raise(name, depth - 1)
    raise MemoryError(f"with {held}")


@sandbox
def hold_and_raise(name: str) -> None:
    _raise(name, 2)


@sandbox
async def hold_and_raise_async(name: str) -> None:
    _raise(name, 2)


@sandbox
def hold_and_return(name: str, argument: Slowly) -> int:
    held = Slowly(name)
    argument.name = f"{name}-argument"
    return len(held.name)


@sandbox
def freed() -> list[str]:
    return FREED


STARTED: list[str] = []
CANCELLED: list[str] = []


async def _for_ever(name: str) -> None:
    import asyncio

    STARTED.append(name)
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        CANCELLED.append(name)
        raise


@sandbox
async def wait_for_ever(name: str) -> None:
    await _for_ever(name)


@sandbox(timeout=1.5)
async def wait_for_a_moment(name: str) -> None:
    await _for_ever(name)


@sandbox
def started() -> list[str]:
    return STARTED


@sandbox
def cancelled() -> list[str]:
    return CANCELLED


@sandbox
def one_and_wait() -> Iterator[int]:
    yield 1
    STARTED.append("generator")
    time.sleep(600)


@sandbox
async def one_and_wait_async() -> AsyncIterator[int]:
    yield 1
    await _for_ever("async generator")
