"""As worker.py, for connections: it does the same bare and sandboxed, in turns, and is told by lines what to do.

Arguments: the megabytes of a download, the ports of a listener, of a server of bytes and (where there is one) of a gRPC server.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import sys
from collections.abc import Callable
from time import perf_counter_ns

MEGABYTES, LISTENER, BYTES, *REST = map(int, sys.argv[1:])
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close by RST, or TIME_WAIT would use up the ports
libc = ctypes.CDLL(None, use_errno=True)


def no_operation(count: int) -> list[int]:
    samples = []
    for _ in range(count):
        began = perf_counter_ns()
        samples.append(perf_counter_ns() - began)
    return samples


def connect_close(count: int) -> list[int]:
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", LISTENER, socket.inet_aton("127.0.0.1"))
    samples = []
    for _ in range(count):
        fd = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
        libc.setsockopt(fd, socket.SOL_SOCKET, socket.SO_LINGER, RESET, len(RESET))
        began = perf_counter_ns()
        done = libc.connect(fd, address, len(address))
        libc.close(fd)
        samples.append(perf_counter_ns() - began)
        if done:
            raise OSError(ctypes.get_errno(), "connect")
    return samples


def download(count: int) -> list[int]:
    samples, buffer = [], bytearray(1 << 18)
    for _ in range(count):
        began, left = perf_counter_ns(), MEGABYTES * 1_000_000
        with socket.create_connection(("127.0.0.1", BYTES)) as one:
            one.sendall(b"%d\n" % left)
            while left and (got := one.recv_into(buffer)):
                left -= got
        samples.append(perf_counter_ns() - began)
        if left:
            raise OSError(f"{left} bytes did not come")
    return samples


def unary(count: int) -> list[int]:
    import grpc

    samples = []
    with grpc.insecure_channel(f"127.0.0.1:{REST[0]}") as channel:
        call = channel.unary_unary("/echo.Echo/Say")
        call(b"first", timeout=10)
        for _ in range(count):
            began = perf_counter_ns()
            call(b"hello", timeout=10)
            samples.append(perf_counter_ns() - began)
    return samples


OPERATIONS: dict[str, Callable[[int], list[int]]] = {
    one.__name__: one for one in (no_operation, connect_close, download, unary)
}


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        operation, count = line.split()
        print(*OPERATIONS[operation](int(count)), flush=True)


main()
