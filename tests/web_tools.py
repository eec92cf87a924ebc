"""The sandboxed functions of the web application. Imported by both sides, so it imports little."""

# ruff: noqa: PTH123

from __future__ import annotations

import os

from pysandboxes import sandbox

if os.environ.get("BARE"):  # the same application without a sandbox

    def sandbox(function):  # type: ignore[no-redef]
        return function


def say(number: int) -> None:
    import logging

    print("working on", number)
    logging.getLogger("tool").warning("number %d", number)


@sandbox
def double(number: int) -> int:
    return 2 * number


@sandbox
async def adouble(number: int) -> int:
    return 2 * number


@sandbox
def work(number: int) -> int:
    say(number)
    return 2 * number


@sandbox
async def awork(number: int) -> int:
    import asyncio

    print("awaiting")
    await asyncio.sleep(0.002)
    say(number)
    return 2 * number


@sandbox
def read(path: str) -> str:
    with open(path) as file:
        return file.read()


@sandbox
async def aread(path: str) -> str:
    with open(path) as file:
        return file.read()
