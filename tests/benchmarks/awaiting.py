"""What calls cost an application with an event loop."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from time import perf_counter

import calling
import echoes
from measure import NOTHING, How, Measure, Result, interleave, judge
from peers import stream_process, surroundings
from place import Place

from pysandboxes import sandboxes

TASKS = 200

FIRST = replace(
    calling.FIRST,
    name="first result, asyncio loaded",
    why="an application that has asyncio loaded must not wait for its sandbox to load it, too",
)
STOP = replace(calling.STOP, name="end of an idle sandbox, asyncio")
CALL = Measure(
    "async call, small",
    "sandboxed async call",
    "asyncio streams echo",
    How.RATIO,
    None,
    "agents call from an event loop",
    later=0.6,
)
TAIL = Measure(
    "its tail",
    "sandboxed async call",
    NOTHING,
    How.TAIL,
    None,
    "a call that is now and then slow holds its event loop's tasks up",
    later=5.0,
)
MANY = Measure(
    f"{TASKS} async calls at once, each",
    f"{TASKS} tasks, sandboxed async call",
    NOTHING,
    How.LESS,
    None,
    "15 000 calls a second from one event loop",
    later=1 / 15_000,
)
CALLS, BATCHES = 500, 5  # a turn


def run(place: Place) -> Iterator[Result]:
    with surroundings(place):
        yield from calling.starts(place, FIRST, STOP)
        yield from _calls(place)


def _calls(place: Place) -> Iterator[Result]:
    path = str(place.folder / "echo")
    with stream_process(path), sandboxes(sandboxes_config=place.profile), asyncio.Runner() as runner:
        reader, writer = runner.run(asyncio.wait_for(asyncio.open_unix_connection(path), 10))

        async def stream(value: int) -> int:
            writer.write(pickle.dumps(value) + echoes.END)
            answer: int = pickle.loads(await reader.readuntil(echoes.END))
            return answer

        def each(call: Callable[[int], Awaitable[int]]) -> list[float]:
            return runner.run(_each(call, place.count(CALLS)))

        def at_once() -> list[float]:
            return [runner.run(_at_once()) for _ in range(place.count(BATCHES))]

        one = {CALL.ours: partial(each, echoes.sandboxed_async), CALL.peer: partial(each, stream)}
        rounds = interleave(one, place.rounds)
        yield judge(CALL, rounds)
        yield judge(TAIL, rounds)
        yield judge(MANY, interleave({MANY.ours: at_once}, place.rounds))
        writer.close()


async def _each(call: Callable[[int], Awaitable[int]], count: int) -> list[float]:
    """Seconds of each of ``count`` calls, one after the other."""
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
