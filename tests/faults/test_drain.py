"""What a call prints waits for whoever takes it, an end and a reload for the calls: nothing piles up, nothing is lost."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import fault_targets
import pytest

from pysandboxes import SandBoxError, SandBoxProtocolError, sandboxes

LINE = 64 << 10
#: Bytes that a call may print before somebody takes them, and the line that goes past (bindings/guard/channel_window.c).
AHEAD = (1 << 20) + LINE
GRANTS = ("ALLOW:process-exec",)


class Slow(io.TextIOBase):
    """A stream that takes its first piece only when it is let go; then it may fail."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.count = 0
        self.reached = threading.Event()
        self.go = threading.Event()
        self.failure = failure

    def write(self, text: str) -> int:
        self.reached.set()
        self.go.wait(60)
        if self.failure is not None:
            raise self.failure
        self.count += len(text)
        return len(text)


def in_thread(function: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Runs a function in a thread; its result or its exception goes into the list."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(function())
        except BaseException as exc:
            outcome.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


def test_output_comes_no_further_than_its_window(profile: Path) -> None:
    """Other calls go on, and read the socket meanwhile."""
    slow = Slow()
    with redirect_stdout(slow), sandboxes(sandboxes_config=profile) as handle:
        first = handle.pid
        thread, outcome = in_thread(lambda: fault_targets.write_and_count(LINE, 100))
        assert slow.reached.wait(20)
        most = max(fault_targets.written() for _ in range(1000))
        assert 0 < most <= AHEAD
        slow.go.set()
        thread.join(30)
        assert outcome == [100 * LINE]
        assert slow.count == 100 * LINE
        assert fault_targets.pid() == first


def test_a_call_that_is_given_up_prints_on(profile: Path) -> None:
    """Its output is nobody's, and does not hold it up."""
    slow = Slow(OSError("the terminal is gone"))
    with redirect_stdout(slow), sandboxes(sandboxes_config=profile) as handle:
        first = handle.pid
        thread, outcome = in_thread(lambda: fault_targets.write_and_count(LINE, 100))
        assert slow.reached.wait(20)
        slow.go.set()
        thread.join(30)
        assert outcome == [slow.failure]
        while fault_targets.written() < 100 * LINE:
            pass
        assert handle.pid == first


def test_the_end_waits_for_all_that_is_printed(profile: Path) -> None:
    slow = Slow()
    with redirect_stdout(slow):
        with sandboxes(sandboxes_config=profile):
            fault_targets.pid()
            thread, outcome = in_thread(lambda: fault_targets.write_and_count(LINE, 100))
            assert slow.reached.wait(20)
            timer = threading.Timer(0.2, slow.go.set)  # by then the end has begun, which is no matter if it has not
            timer.start()
        thread.join(30)
    assert outcome == [100 * LINE]
    assert slow.count == 100 * LINE


def test_the_end_does_not_wait_for_a_call_that_is_given_up_meanwhile(profile: Path) -> None:
    began = threading.Event()
    opened = sandboxes(sandboxes_config=profile)
    handle = opened.__enter__()

    async def call() -> None:
        task = asyncio.ensure_future(fault_targets.sleep_async(600))
        while handle.stats()["pending"] < 1:
            await asyncio.sleep(0)
        began.set()
        try:
            while handle.stats():
                await asyncio.sleep(0)
        except SandBoxError:  # it is being closed
            task.cancel()
        await task

    thread, outcome = in_thread(lambda: asyncio.run(call()))
    assert began.wait(20)
    before = time.monotonic()
    opened.__exit__(None, None, None)
    assert time.monotonic() - before < 20
    thread.join(20)
    assert [type(exc) for exc in outcome] == [asyncio.CancelledError]


def test_calls_go_on_over_a_reload(profile: Path) -> None:
    """A call that comes while the old interpreter drains waits for the new one."""
    over = threading.Event()
    pids: set[int] = set()

    def sync_calls() -> int:
        count = 0
        while not over.is_set():
            pids.add(fault_targets.pid())
            count += 1
        return count

    async def async_calls() -> int:
        count = 0
        while not over.is_set():
            assert await asyncio.gather(*(fault_targets.sleep_async(0.001) for _ in range(5))) == [0.001] * 5
            count += 1
        return count

    with sandboxes(sandboxes_config=profile) as handle:
        fault_targets.pid()
        running = [in_thread(sync_calls) for _ in range(3)] + [in_thread(lambda: asyncio.run(async_calls()))]
        for _ in range(4):
            done = {fault_targets.sleep(0.05)}
            handle.reload()
            assert done == {0.05}
        over.set()
        for thread, _ in running:
            thread.join(30)
        assert all(isinstance(outcome[0], int) and outcome[0] > 0 for _, outcome in running), running
        assert handle.stats()["starts"] == 5
        assert handle.pid in pids


def test_a_generator_of_a_dead_interpreter_is_no_other(profile: Path) -> None:
    with sandboxes(sandboxes_config=profile, python_api=GRANTS):
        old = fault_targets.count_from(1)
        assert next(old) == 1
        with pytest.raises(SandBoxProtocolError):
            fault_targets.end_by("_exit")
        new = fault_targets.count_from(1000)
        assert next(new) == 1000
        with pytest.raises(SandBoxError, match="this generator is gone"):
            next(old)
        assert next(new) == 1001
