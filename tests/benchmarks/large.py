"""What large results and arguments cost, and what a call costs that others are in the way of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter

import echoes
from measure import How, Measure, Result, interleave, judge
from peers import large_process, surroundings
from place import Place

from pysandboxes import sandboxes

MB = 1 << 20
WHY = "documents and images are results, too; what is validated need not be copied"
RESULTS = {
    size: Measure(f"result of {size} MB", f"sandboxed, {size} MB", f"mp.Pipe, {size} MB", How.RATIO, None, WHY, later=goal)
    for size, goal in ((1, 0.25), (16, 0.25), (100, 0.4))
}
ARGUMENT = Measure(
    "argument of 16 MB",
    "sandboxed, 16 MB sent",
    "mp.Pipe, 16 MB sent",
    How.RATIO,
    None,
    "what is large goes both ways",
)
BLOCKED = Measure(
    "call behind one that blocks",
    "behind one that blocks",
    "with nothing in the way",
    How.LESS,
    None,
    "a slow tool must not make the others slow",
    later=1e-3,
)
CALLS = 20


def run(place: Place) -> Iterator[Result]:
    with surroundings(place), large_process() as ask, sandboxes(sandboxes_config=place.profile):
        for size, measure in RESULTS.items():
            if place.quick and size > 1:
                continue
            turns = {
                measure.ours: partial(_timed, echoes.sandboxed_large, size * MB, size * MB),
                measure.peer: partial(_timed, ask, size * MB, size * MB),
            }
            yield judge(measure, interleave(turns, place.rounds))
        data = b"x" * ((1 if place.quick else 16) * MB)
        turns = {
            ARGUMENT.ours: partial(_timed, echoes.sandboxed_length, data, 0),
            ARGUMENT.peer: partial(_timed, ask, data, 0),
        }
        yield judge(ARGUMENT, interleave(turns, place.rounds))
        count = place.count(CALLS)
        yield judge(
            BLOCKED, interleave({BLOCKED.ours: partial(_behind, count), BLOCKED.peer: partial(_alone, count)}, place.rounds)
        )


def _timed(call: Callable[..., bytes], argument: object, expected: int) -> list[float]:
    began = perf_counter()
    answer = call(argument)
    took = perf_counter() - began
    if len(answer) != expected:
        raise AssertionError(f"{len(answer)} bytes instead of {expected}")
    return [took]


def _alone(count: int) -> list[float]:
    return [_call() for _ in range(count)]


def _behind(count: int) -> list[float]:
    """The first call behind one that keeps the reading thread busy, over and over: the next ones find a thread that reads."""
    samples = []
    for _ in range(count):
        blocked = threading.Thread(target=echoes.sandboxed_sleep, args=(0.02,))
        blocked.start()
        samples.append(_call())
        blocked.join()
    return samples


def _call() -> float:
    began = perf_counter()
    echoes.sandboxed(1)
    return perf_counter() - began
