"""What single functions cost: a sandbox to its first result and to its end, a call, many threads that call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from time import perf_counter

import echoes
from measure import NOTHING, How, Measure, Result, interleave, judge
from peers import echo_process, surroundings
from place import Place

from pysandboxes import sandboxes

MS = 1e-3
THREADS = 8

# Nothing here loads asyncio, which makes a start heavier on both sides. awaiting.py measures that.
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
#: What a turn takes: calls one after the other, and calls of all threads together.
CALLS, SHARED_CALLS = 1000, 2000


def run(place: Place) -> Iterator[Result]:
    with surroundings(place):
        yield from starts(place, FIRST, STOP)
        yield from _calls(place)


def starts(place: Place, first: Measure, stop: Measure) -> Iterator[Result]:
    """The two ends of a sandbox, beside the start of a spawned process."""
    ends: list[float] = []

    def ours() -> list[float]:
        began = perf_counter()
        with sandboxes(sandboxes_config=place.profile):
            echoes.sandboxed(1)
            took = perf_counter() - began
            leaving = perf_counter()
        ends.append(perf_counter() - leaving)
        return [took]

    def spawn() -> list[float]:
        began = perf_counter()
        with echo_process() as ask:
            ask(1)
            return [perf_counter() - began]

    yield judge(first, interleave({first.ours: ours, first.peer: spawn}, place.rounds))
    yield judge(stop, {stop.ours: [[end] for end in ends[-place.rounds :]]})


def _calls(place: Place) -> Iterator[Result]:
    with (
        echo_process() as ask,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        sandboxes(sandboxes_config=place.profile),
        ThreadPoolExecutor(THREADS) as threads,
    ):
        count = place.count(CALLS)
        one = {CALL.ours: partial(_each, echoes.sandboxed, count), CALL.peer: partial(_each, ask, count)}
        rounds = interleave(one, place.rounds)
        yield judge(CALL, rounds)
        yield judge(TAIL, rounds)

        def pooled(value: int) -> int:
            return pool.submit(echoes.plain, value).result()

        count = place.count(SHARED_CALLS)
        shared = {
            SHARED.ours: partial(_together, threads, echoes.sandboxed, count),
            SHARED.peer: partial(_together, threads, pooled, count),
        }
        yield judge(SHARED, interleave(shared, place.rounds))


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
