"""The program that runs bare and sandboxed at the same time, and does the same operations in turns.

It reads ``operation count`` lines from stdin and answers each with the nanoseconds of every single operation. So that bare
and sandboxed take turns without paying a start each time.

Arguments: a folder with files, the port of a loopback listener.
"""

# What is measured is os, not pathlib.
# ruff: noqa: PTH116, PTH118, PTH123, PTH208

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Callable
from time import perf_counter_ns

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close by RST, or TIME_WAIT would use up the ports


def no_operation(count: int, folder: str, port: int) -> list[int]:
    """What the timer itself costs; the caller takes it off."""
    samples = []
    for _ in range(count):
        began = perf_counter_ns()
        samples.append(perf_counter_ns() - began)
    return samples


def open_close(count: int, folder: str, port: int) -> list[int]:
    path = os.path.join(folder, "00.txt")
    samples = []
    for _ in range(count):
        began = perf_counter_ns()
        open(path).close()
        samples.append(perf_counter_ns() - began)
    return samples


def os_open_close(count: int, folder: str, port: int) -> list[int]:
    path = os.path.join(folder, "00.txt")
    samples = []
    for _ in range(count):
        began = perf_counter_ns()
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        samples.append(perf_counter_ns() - began)
    return samples


def os_stat(count: int, folder: str, port: int) -> list[int]:
    path = os.path.join(folder, "00.txt")
    samples = []
    for _ in range(count):
        began = perf_counter_ns()
        os.stat(path)
        samples.append(perf_counter_ns() - began)
    return samples


def os_listdir(count: int, folder: str, port: int) -> list[int]:
    samples = []
    for _ in range(count):
        began = perf_counter_ns()
        os.listdir(folder)
        samples.append(perf_counter_ns() - began)
    return samples


def cached_import(count: int, folder: str, port: int) -> list[int]:
    samples = []
    for _ in range(count):
        began = perf_counter_ns()
        import os.path  # noqa: F401

        samples.append(perf_counter_ns() - began)
    return samples


def connect_close(count: int, folder: str, port: int) -> list[int]:
    address = ("127.0.0.1", port)
    samples = []
    for _ in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        began = perf_counter_ns()
        one.connect(address)
        one.close()
        samples.append(perf_counter_ns() - began)
    return samples


OPERATIONS: dict[str, Callable[[int, str, int], list[int]]] = {
    one.__name__: one for one in (no_operation, open_close, os_open_close, os_stat, os_listdir, cached_import, connect_close)
}


def main() -> None:
    folder, port = sys.argv[1], int(sys.argv[2])
    print("ready", flush=True)
    for line in sys.stdin:
        operation, count = line.split()
        print(*OPERATIONS[operation](int(count), folder, port), flush=True)


main()
