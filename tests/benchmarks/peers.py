"""The peers of the calls: worker processes that answer what they are asked, and the surroundings they share with ours."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path

import echoes
from place import Place


@contextlib.contextmanager
def surroundings(place: Place) -> Iterator[None]:
    """The folder and the few variables that all measured processes have: the children inherit them from this process."""
    folder, environment = Path.cwd(), dict(os.environ)
    os.chdir(place.folder)
    os.environ.clear()
    os.environ.update(place.environment)
    try:
        yield
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)


@contextlib.contextmanager
def echo_process() -> Iterator[Callable[[int], int]]:
    """A spawned process that answers through a multiprocessing.Pipe."""
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=echoes.serve, args=(there,))
    process.start()
    there.close()

    def ask(value: int) -> int:
        here.send(value)
        answer: int = here.recv()
        return answer

    try:
        yield ask
    finally:
        here.send(None)
        process.join()
        here.close()


@contextlib.contextmanager
def large_process() -> Iterator[Callable[[int | bytes], bytes]]:
    """A spawned process that takes and gives large messages through a multiprocessing.Pipe."""
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=echoes.serve_large, args=(there,))
    process.start()
    there.close()

    def ask(asked: int | bytes) -> bytes:
        here.send(asked)
        answer: bytes = here.recv()
        return answer

    try:
        yield ask
    finally:
        here.send(None)
        process.join()
        here.close()


@contextlib.contextmanager
def stream_process(path: str) -> Iterator[None]:
    """A spawned process whose event loop answers on a unix socket."""
    context = get_context("spawn")
    ready = context.Event()
    process = context.Process(target=echoes.serve_streams, args=(path, ready))
    process.start()
    try:
        if not ready.wait(30):
            raise RuntimeError("the asyncio streams echo did not start within 30 s")
        yield
    finally:
        process.terminate()
        process.join()
