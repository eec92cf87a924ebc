"""Threads and event loops that call one sandbox at a time, in all ways: nobody waits for ever, or because of the others."""

from __future__ import annotations

import asyncio
import io
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

import load_targets as targets
import pytest

from pysandboxes import SandBoxTimeoutError, sandboxes

pytestmark = pytest.mark.smoke

#: Seconds after which a call is lost. A busy machine takes its time.
PATIENCE = 40.0
SECONDS = 3.0
#: From in one piece, by parts of a frame that pass no buffer, to several frames.
SIZES = [10, 20_000, 70_000, 200_000, 1_500_000]


class Stream(io.TextIOBase):
    """A standard output that takes nothing before the gate is open, and says who waits there."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.waiting: set[int] = set()
        self.lines = 0

    def write(self, text: str) -> int:
        if not self.gate.is_set():
            self.waiting.add(threading.get_ident())
            self.gate.wait(PATIENCE)
        self.lines += text.count("\n")
        return len(text)


def test_a_line_wakes_nobody_but_the_next_to_write(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    callers, count = 32, 40
    stream = Stream()
    with sandboxes(sandboxes_config=profile):
        targets.same(None)
        monkeypatch.setattr(sys, "stdout", stream)
        threads = [threading.Thread(target=targets.lines, args=(count, 4000)) for _ in range(callers)]
        before = targets.switches()
        for thread in threads:
            thread.start()
        end = time.monotonic() + PATIENCE
        while len(stream.waiting) < callers:  # now nobody reads: the socket fills up, and who prints stands in line
            assert time.monotonic() < end
            time.sleep(0.01)
        stream.gate.set()
        for thread in threads:
            thread.join(PATIENCE)
        slept = targets.switches() - before
    assert stream.lines == callers * count
    assert slept < 6 * callers * count, slept / (callers * count)


def by_thread(chance: random.Random, number: int) -> None:
    kind = chance.randrange(10)
    if kind < 6:
        assert targets.same(number) == number
    elif kind == 6:
        value = bytes([number % 256]) * chance.choice(SIZES)
        assert targets.same(value) == value
    elif kind == 7:
        value = "x" * chance.choice(SIZES)
        assert targets.same(value) == value
    elif kind == 8:
        assert targets.nap(number) == number
    else:
        assert targets.say(number) == number


async def by_task(chance: random.Random, number: int) -> None:
    kind = chance.randrange(16)
    if kind < 6:
        assert await targets.asame(number) == number
    elif kind == 6:
        value = bytes([number % 256]) * chance.choice(SIZES)
        assert await targets.asame(value) == value
    elif kind == 7:
        assert await targets.anap(number, chance.choice([0, 0.0005, 0.005])) == number
    elif kind == 8:
        assert await targets.hold_the_loop(number) == number
    elif kind == 9:
        assert await targets.asay(number) == number
    elif kind == 10:
        await asyncio.to_thread(by_thread, chance, number)
    elif kind == 11:
        try:
            assert await targets.hurried(number) == number
        except SandBoxTimeoutError:
            return
    elif kind == 12:
        await asyncio.sleep(chance.choice([0.0005, 0.005, 0.05]))  # also the watchdog sleeps
    else:
        call: Any = targets.anap(number, 60) if kind == 13 else targets.asame(b"x" * chance.choice(SIZES))
        task = asyncio.ensure_future(call)
        await asyncio.sleep(chance.choice([0, 0.0002, 0.002]))
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize("callers", [1, 4])
def test_no_call_is_lost_among_others(profile: Path, monkeypatch: pytest.MonkeyPatch, callers: int) -> None:
    over = time.monotonic() + SECONDS
    failed: list[BaseException] = []

    def thread(seed: int) -> None:
        chance = random.Random(seed)
        try:
            while time.monotonic() < over and not failed:
                by_thread(chance, chance.randrange(10**6))
        except BaseException as exc:
            failed.append(exc)

    async def task(seed: int) -> None:
        chance = random.Random(seed)
        while time.monotonic() < over and not failed:
            async with asyncio.timeout(PATIENCE):
                await by_task(chance, chance.randrange(10**6))

    async def tasks(seed: int) -> None:
        await asyncio.gather(*(task(seed + number) for number in range(callers)))

    def loop(seed: int) -> None:
        try:
            asyncio.run(tasks(seed))
        except BaseException as exc:
            failed.append(exc)

    with sandboxes(sandboxes_config=profile):
        targets.same(None)
        stream = Stream()
        stream.gate.set()
        monkeypatch.setattr(sys, "stdout", stream)
        threads = [threading.Thread(target=thread, args=(seed,), daemon=True) for seed in range(callers)]
        threads += [threading.Thread(target=loop, args=(1000 * number,), daemon=True) for number in range(1, 3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(max(0.0, over - time.monotonic()) + PATIENCE)
        assert not failed, failed
        assert not [one for one in threads if one.is_alive()], "a call was not answered"
