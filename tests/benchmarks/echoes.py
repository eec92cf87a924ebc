"""The functions that the call benchmarks call, ours and the peers'.

Light on purpose: both children import this module, and what it imports would be charged to both starts.
"""

from __future__ import annotations

import time

from pysandboxes import sandbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Event

#: Ends a message of the stream server; no pickle of a small number holds it.
END = b"\r\n\r\n"


def plain(value: int) -> int:
    return value


@sandbox
def sandboxed(value: int) -> int:
    return value


@sandbox
async def sandboxed_async(value: int) -> int:
    return value


_kept: dict[int, bytes] = {}


def large(size: int) -> bytes:
    """The same bytes each time: what is measured is their way, not their making."""
    if size not in _kept:
        _kept[size] = b"x" * size
    return _kept[size]


@sandbox
def sandboxed_large(size: int) -> bytes:
    return large(size)


@sandbox
def sandboxed_length(data: bytes) -> bytes:
    return data[:0]


@sandbox
def sandboxed_sleep(seconds: float) -> None:
    time.sleep(seconds)


def serve_large(connection: Connection) -> None:
    """The peer's child for large messages: bytes of a size for the size, nothing for bytes, until told None."""
    while (asked := connection.recv()) is not None:
        connection.send(large(asked) if isinstance(asked, int) else asked[:0])


def serve(connection: Connection) -> None:
    """The peer's child: answers until told None."""
    while (value := connection.recv()) is not None:
        connection.send(plain(value))


def serve_streams(path: str, ready: Event) -> None:
    """The peer's child for async calls: answers on a unix socket by asyncio streams, until it is ended."""
    import asyncio
    import pickle

    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            while True:
                value = pickle.loads(await reader.readuntil(END))
                writer.write(pickle.dumps(plain(value)) + END)
        except asyncio.IncompleteReadError:  # the caller has gone
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_unix_server(answer, path)
        ready.set()
        await server.serve_forever()

    asyncio.run(serve())
