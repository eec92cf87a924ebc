"""Functions that the tests of the public API call in a sandbox. Imported by both sides, so it imports little."""

# The open() that programs write; importing pathlib would be charged to the profile.
# ruff: noqa: PTH110, PTH123

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any

from pysandboxes import is_in_sandbox, sandbox

INITIALISED: list[str] = []


def initialise() -> None:
    INITIALISED.append("sync")


async def initialise_async() -> None:
    INITIALISED.append("async")


def initialise_and_fail() -> None:
    raise ValueError("this init_fn fails")


def not_decorated(value: int) -> int:
    return value


@sandbox
def initialised() -> list[str]:
    return list(INITIALISED)


@sandbox
def add(left: int, right: int = 1, *, times: int = 1) -> int:
    """The sum, times over."""
    return (left + right) * times


@sandbox
def where() -> tuple[bool, int]:
    return is_in_sandbox(), os.getpid()


@sandbox
def echo(value: Any) -> Any:
    return value


@sandbox
def say(text: str, end: str = "\n") -> None:
    print(text, end=end)


@sandbox
def say_error(text: str) -> None:
    sys.stderr.write(text)


@sandbox
def say_bytes(data: bytes) -> None:
    print("before", end="")
    sys.stdout.buffer.write(data)
    print("after")


@sandbox
def say_slowly(name: str, times: int) -> None:
    for number in range(times):
        print(name, number)
        time.sleep(0.001)


@sandbox
def sleep(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@sandbox(timeout=0.2)
def sleep_too_long(seconds: float) -> None:
    time.sleep(seconds)


class CustomError(Exception):
    """Has a constructor and a text of its own, and what they need in an attribute."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code
        CONSTRUCTED.append(reason)

    def __str__(self) -> str:
        return f"{self.args[0]} (code {self.code})"


CONSTRUCTED: list[str] = []


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class UnreducibleError(Exception):
    def __reduce__(self) -> Any:
        raise RuntimeError("no pickle")


class OwnOSError(OSError):
    pass


class StopEverything(BaseException):
    pass


@sandbox
def fail(kind: str) -> None:
    """Raise in one of the ways that programs do."""
    if kind == "chain":
        try:
            int("x")
        except ValueError as exc:
            raise KeyError("key", 1) from exc
    if kind == "suppressed":
        try:
            int("x")
        except ValueError:
            raise LookupError("only this") from None
    if kind == "group":
        raise ExceptionGroup(
            "several", [ValueError(1), FileNotFoundError(2, "no such", "f"), ExceptionGroup("in", [OSError(5)])]
        )
    if kind == "notes":
        exc = ValueError("noted")
        exc.add_note("a note")
        raise exc
    if kind == "recursion":
        fail_deep()
    raise {
        "os": FileNotFoundError(2, "No such file or directory", "/nowhere"),
        "own os": OwnOSError(13, "denied", "/x"),
        "unicode": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        "custom": CustomError("why", 7),
        "unspeakable": UnspeakableError("x"),
        "unreducible": UnreducibleError("y"),
        "stop": StopIteration("over"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
        "base": StopEverything("all"),
        "local": type("Local", (Exception,), {"__module__": "not_there"})("z"),
    }[kind]


def fail_deep() -> None:
    fail_deep()


@sandbox
def die(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), 9)
    os._exit(3)


@sandbox
def unpicklable_result() -> Any:
    return lambda: 1


@sandbox
def generator_result() -> Any:
    return (number for number in range(3))


@sandbox
async def generator_result_async() -> Any:
    return (number for number in range(3))


@sandbox
def object_result() -> Any:
    return CustomError("x", 1)


@sandbox
def log(name: str) -> None:
    import logging

    logging.getLogger(name).warning("a %s", "warning")
    logging.getLogger(name).info("too quiet")
    try:
        int("x")
    except ValueError:
        logging.getLogger(name).exception("failed")


@sandbox
def count(upto: int) -> Generator[int, str, list[str]]:
    got = []
    try:
        for number in range(upto):
            got += [(yield number)]
    except KeyError:
        yield -1
    finally:
        print("closed")
    return got


@sandbox
def count_and_fail() -> Iterator[int]:
    yield 1
    raise ValueError("in the middle")


@sandbox
async def acount(upto: int) -> AsyncIterator[int]:
    for number in range(upto):
        yield number


@sandbox
async def aecho(value: Any) -> Any:
    return value


@sandbox
async def aadd(left: int, right: int) -> int:
    import asyncio

    await asyncio.sleep(0)
    print("adding", left)
    return left + right


ASYNC_STATE = {"running": 0, "cancelled": 0}


@sandbox
async def asleep(seconds: float) -> float:
    import asyncio

    ASYNC_STATE["running"] += 1
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        ASYNC_STATE["cancelled"] += 1
        raise
    return seconds


@sandbox
async def afail() -> None:
    raise CustomError("async", 1)


@sandbox
def async_state() -> dict[str, int]:
    return dict(ASYNC_STATE)


class Tools:
    @sandbox
    @staticmethod
    def double(value: int) -> int:
        return value * 2

    @staticmethod
    @sandbox
    def triple(value: int) -> int:
        return value * 3

    @sandbox
    @classmethod
    def named(cls, value: int) -> str:
        return f"{cls.__name__} {value}"

    @classmethod
    @sandbox
    async def anamed(cls, value: int) -> str:
        return f"{cls.__name__} {value}"


class MoreTools(Tools):
    pass


@sandbox
def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


@sandbox
def read_and_hide(path: str) -> None:
    """As libraries do that replace a refusal by an error of their own."""
    refused = False
    try:
        open(path).close()
    except OSError:
        refused = True
    if refused:
        raise ConnectionError("something went wrong")


def die_first(marker: str) -> str:
    """Ends the interpreter the first time it is called."""
    if not os.path.exists(marker):
        open(marker, "w").close()
        os._exit(3)
    return "second time"


@sandbox(idempotent=True)
def die_first_and_again(marker: str) -> str:
    return die_first(marker)


@sandbox
def die_first_once(marker: str) -> str:
    return die_first(marker)


@sandbox
def where_generated() -> Iterator[bool]:
    yield is_in_sandbox()
    yield is_in_sandbox()


@sandbox
async def where_generated_async() -> AsyncIterator[bool]:
    yield is_in_sandbox()
    yield is_in_sandbox()
