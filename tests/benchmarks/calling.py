"""What single functions cost: a sandbox to its first result, a call, many callers, and the end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import echoes
from measure import NOTHING, How, Measure, Result, interleave, judge
from place import Place

from pysandboxes import sandboxes

MS = 1e-3
THREADS = 8
TASKS = 200

FIRST = Measure(
    "sandboxes() to the first result",
    "sandboxes()",
    "multiprocessing spawn",
    How.RATIO,
    1.0,
    "a sandbox that starts no slower than a worker process can be had for each request",
)
STOP = Measure(
    "end of an idle sandbox",
    "end of sandboxes()",
    NOTHING,
    How.LESS,
    20 * MS,
    "draining and taking away, nothing left behind",
)
CALL = Measure(
    "sync call, small",
    "sandboxed call",
    "mp.Pipe echo",
    How.RATIO,
    1.0,
    "the calling thread writes and reads itself; nothing stands in between",
    later=0.75,
)
TAIL = Measure(
    "its tail",
    "sandboxed call",
    NOTHING,
    How.TAIL,
    None,
    "a call that is now and then slow is slow for those who wait",
    later=5.0,
)
SHARED = Measure(
    f"{THREADS} threads calling",
    f"{THREADS} threads, sandboxed call",
    f"{THREADS} threads, ProcessPoolExecutor(1)",
    How.RATIO,
    None,
    "many callers share one child",
    later=0.2,
)
ASYNC = Measure(
    "async call, small",
    "sandboxed async call",
    "asyncio streams echo",
    How.RATIO,
    None,
    "agents call from an event loop",
    later=0.6,
)
ASYNC_MANY = Measure(
    f"{TASKS} async calls at once, each",
    f"{TASKS} tasks, sandboxed async call",
    NOTHING,
    How.LESS,
    None,
    "15 000 calls a second from one event loop",
    later=1 / 15_000,
)
#: What a turn takes: calls one after the other, and calls of all threads together.
CALLS, SHARED_CALLS = 1000, 2000


def run(place: Place) -> Iterator[Result]:
    with _surroundings(place):
        yield from _starts(place)
        yield from _calls(place)


@contextlib.contextmanager
def _surroundings(place: Place) -> Iterator[None]:
    """The folder and the few variables that all measured processes have: both children inherit from this process."""
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


def _starts(place: Place) -> Iterator[Result]:
    ends: list[float] = []

    def ours() -> list[float]:
        began = perf_counter()
        with sandboxes(sandboxes_config=place.profile):
            echoes.sandboxed(1)
            took = perf_counter() - began
            ends.append(-perf_counter())
        ends[-1] += perf_counter()
        return [took]

    def spawn() -> list[float]:
        began = perf_counter()
        with _echo_process() as ask:
            ask(1)
            return [perf_counter() - began]

    rounds = interleave({FIRST.ours: ours, FIRST.peer: spawn}, place.rounds)
    yield judge(FIRST, rounds)
    yield judge(STOP, {STOP.ours: [[end] for end in ends[-place.rounds :]]})


@contextlib.contextmanager
def _echo_process() -> Iterator[Callable[[int], int]]:
    """The peer: a spawned process that answers through a pipe."""
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


def _calls(place: Place) -> Iterator[Result]:
    with (
        _echo_process() as ask,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        sandboxes(sandboxes_config=place.profile),
        ThreadPoolExecutor(THREADS) as threads,
    ):
        one = {CALL.ours: partial(_each, echoes.sandboxed), CALL.peer: partial(_each, ask)}
        count = place.count(CALLS)
        rounds = interleave({side: partial(turn, count) for side, turn in one.items()}, place.rounds)
        yield judge(CALL, rounds)
        yield judge(TAIL, rounds)

        def pooled(value: int) -> int:
            return pool.submit(echoes.plain, value).result()

        shared = {SHARED.ours: partial(_together, threads, echoes.sandboxed), SHARED.peer: partial(_together, threads, pooled)}
        count = place.count(SHARED_CALLS)
        yield judge(SHARED, interleave({side: partial(turn, count) for side, turn in shared.items()}, place.rounds))
        yield from _async_calls(place)


def _async_calls(place: Place) -> Iterator[Result]:
    path = str(place.folder / "echo")
    with _stream_server(path), asyncio.Runner() as runner:
        reader, writer = runner.run(asyncio.open_unix_connection(path))

        async def stream(value: int) -> int:
            writer.write(pickle.dumps(value) + echoes.END)
            answer: int = pickle.loads(await reader.readuntil(echoes.END))
            return answer

        def turn(call: Callable[[int], Awaitable[int]]) -> list[float]:
            return runner.run(_each_async(call, place.count(CALLS)))

        def many() -> list[float]:
            return [runner.run(_at_once()) for _ in range(place.count(10))]

        one = {ASYNC.ours: partial(turn, echoes.sandboxed_async), ASYNC.peer: partial(turn, stream)}
        yield judge(ASYNC, interleave(one, place.rounds))
        yield judge(ASYNC_MANY, interleave({ASYNC_MANY.ours: many}, place.rounds))
        writer.close()


@contextlib.contextmanager
def _stream_server(path: str) -> Iterator[None]:
    """The peer of async calls: a spawned process whose event loop answers on a unix socket."""
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


def _each(call: Callable[[int], int], count: int) -> list[float]:
    """Seconds of each of ``count`` calls, one after the other."""
    samples = []
    for number in range(count):
        began = perf_counter()
        answer = call(number)
        samples.append(perf_counter() - began)
        if answer != number:
            raise AssertionError(f"the call of {number} gave {answer}")
    return samples


def _together(threads: ThreadPoolExecutor, call: Callable[[int], int], count: int) -> list[float]:
    """Seconds a call, where all threads call for their share of ``count``."""
    share = max(1, count // THREADS)
    began = perf_counter()
    for future in [threads.submit(_each, call, share) for _ in range(THREADS)]:
        future.result()
    return [(perf_counter() - began) / (share * THREADS)]


async def _each_async(call: Callable[[int], Awaitable[int]], count: int) -> list[float]:
    """As _each, from a task."""
    samples = []
    for number in range(count):
        began = perf_counter()
        answer = await call(number)
        samples.append(perf_counter() - began)
        if answer != number:
            raise AssertionError(f"the call of {number} gave {answer}")
    return samples


async def _at_once() -> float:
    """Seconds a call, where an event loop has all calls under way at once."""
    began = perf_counter()
    answers = await asyncio.gather(*(echoes.sandboxed_async(number) for number in range(TASKS)))
    took = (perf_counter() - began) / TASKS
    if answers != list(range(TASKS)):
        raise AssertionError("the calls at once gave other answers than they were asked for")
    return took
