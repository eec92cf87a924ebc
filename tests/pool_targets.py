"""Tasks of the pool's tests. Imported by both sides, so it imports little."""

# ruff: noqa: PTH110, PTH123, PTH208

from __future__ import annotations

import os
import sys
import time
from typing import Any

from pysandboxes import is_in_sandbox, sandbox

STATE: list[Any] = []


def initialise(*values: Any) -> None:
    STATE.extend(values)


def initialise_and_fail() -> None:
    raise ValueError("this initializer fails")


def initialise_and_die() -> None:
    os._exit(9)


def initialise_for_ever(mark: str) -> None:
    open(mark, "w").close()
    time.sleep(600)


def initialise_once(marker: str) -> None:
    """Works the first time only."""
    if os.path.exists(marker):
        raise ValueError("a second time")
    open(marker, "w").close()


def state() -> list[Any]:
    return list(STATE)


def pid() -> int:
    return os.getpid()


def inside() -> bool:
    return is_in_sandbox()


def add(left: int, right: int = 1) -> int:
    return left + right


@sandbox
def decorated(value: int) -> tuple[bool, int]:
    return is_in_sandbox(), value


async def double(value: int) -> int:
    import asyncio

    await asyncio.sleep(0)
    return 2 * value


def meet(folder: str, name: str, others: int) -> bool:
    """Come back when so many others are in this function at the same time."""
    open(f"{folder}/{name}", "w").close()
    while len(os.listdir(folder)) < others:
        time.sleep(0.001)
    return True


def wait_for(path: str) -> str:
    while not os.path.exists(path):
        time.sleep(0.001)
    return path


def began(path: str, seconds: float) -> None:
    open(path, "w").close()
    time.sleep(seconds)


@sandbox(timeout=0.2)
def too_long() -> None:
    time.sleep(60)


@sandbox(idempotent=True)
def die_once(marker: str) -> str:
    if not os.path.exists(marker):
        open(marker, "w").close()
        os._exit(3)
    return "second time"


def die() -> None:
    os._exit(3)


def leave() -> None:
    sys.exit(4)


def fail(text: str) -> None:
    raise ValueError(text)


def read(path: str) -> str:
    with open(path) as file:
        return file.read()


def say(name: str, times: int) -> None:
    for number in range(times):
        print(name, number)
        sys.stderr.write(f"{name} {number}\n")


def log(name: str) -> None:
    import logging

    logging.getLogger("pool").warning("of %s", name)


def generate() -> Any:
    yield 1


def give_generator() -> Any:
    return (number for number in range(3))


def give_lambda() -> Any:
    return lambda: 1


def give_object() -> Any:
    return Point(1, 2)


class Point:
    def __init__(self, left: int, right: int) -> None:
        self.left = left
        self.right = right

    def sum(self, more: int) -> int:
        return self.left + self.right + more

    def __call__(self, more: int) -> int:
        return self.sum(more)
