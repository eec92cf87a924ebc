"""Generators of every temper. Imported by both sides."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any

from pysandboxes import sandbox

KEPT: list[Any] = []


@sandbox
def talk(upto: int) -> Generator[Any, Any, str]:
    """Answers what it is sent, survives ValueError, says when it goes."""
    got: Any = None
    try:
        for number in range(upto):
            try:
                got = yield (number, got)
            except ValueError as exc:
                got = yield ("handled", str(exc))
    except GeneratorExit:
        print("told to go")
        raise
    finally:
        print("gone")
    return f"said {got}"


@sandbox
def stubborn() -> Generator[int, None, None]:
    while True:
        try:
            yield 1
        except GeneratorExit:
            print("stays")
            KEPT.append(1)
            if len(KEPT) > 1:
                return


@sandbox
def nested() -> Generator[Any, Any, Any]:
    value = yield from _inner()
    yield ("inner gave", value)
    raise StopIteration("is an error here")


def _inner() -> Generator[Any, Any, Any]:
    got = yield "inner"
    return got


@sandbox
async def atalk(upto: int) -> AsyncGenerator[Any, Any]:
    got: Any = None
    try:
        for number in range(upto):
            try:
                got = yield (number, got)
            except ValueError as exc:
                got = yield ("handled", str(exc))
    except GeneratorExit:
        print("told to go")
        raise
    finally:
        print("gone")


@sandbox
def say(*texts: str) -> None:
    for text in texts:
        print(text, end="", flush=True)


@sandbox
def say_later(text: str, path: str, said: str) -> None:
    """By a thread that outlives the call: once ``path`` is there, which the caller makes when it has its answer.

    Then it makes ``said``.
    """
    import os
    import threading

    def run() -> None:
        while not os.path.exists(path):  # noqa: PTH110
            pass
        print(text, flush=True)
        os.close(os.open(said, os.O_CREAT | os.O_WRONLY))

    import contextvars

    threading.Thread(target=contextvars.copy_context().run, args=(run,)).start()
