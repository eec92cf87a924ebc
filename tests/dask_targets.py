"""Tasks of the Dask test. Imported by the client, the worker and the sandbox, so it imports little."""

# ruff: noqa: PTH123

from __future__ import annotations

import os

from pysandboxes import is_in_sandbox


def where() -> tuple[bool, int]:
    return is_in_sandbox(), os.getpid()


def add(left: int, right: int = 1) -> int:
    return left + right


def total(values: list[int], named: dict[str, int]) -> int:
    return sum(values) + sum(named.values())


def read(path: str) -> str:
    with open(path) as file:
        return file.read()


def die() -> None:
    os._exit(3)


def fail() -> None:
    raise ValueError("so")


def name_of(value: object) -> str:
    return type(value).__name__
