"""Ctrl-C, cancellation and time in each wait for a call: it ends at once, and the sandbox goes on without it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fault_targets
import pytest

from pysandboxes import SandBoxTimeoutError, sandboxes

HERE = Path(__file__).resolve().parent

#: The wait, and what has to be true while it lasts.
PENDING = 'handle.stats()["pending"] >= 1'
WAITS = {
    "a call": ("fault_targets.sleep(600)", PENDING),
    "a call, while another thread reads": (
        "other(); fault_targets.sleep(600)",
        'handle.stats()["pending"] >= 2',
    ),
    "an awaited call": ("asyncio.run(fault_targets.wait_for_ever('awaited'))", "fault_targets.started()"),
    "the next of a generator": ("list(fault_targets.one_and_wait())", "fault_targets.started()"),
    "the next of an async generator": ("asyncio.run(consume())", "fault_targets.started()"),
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c(wait: str, program: Callable[..., subprocess.Popen[str]]) -> None:
    how, there = WAITS[wait]
    others = 1 if "another" in wait else 0
    process = program(f"""\
import asyncio, os, sys, threading
sys.path.insert(0, {str(HERE)!r})
import fault_targets
from pysandboxes import SandBoxError, sandboxes

def quiet():
    try:
        fault_targets.sleep(600)
    except SandBoxError:
        pass

async def consume():
    async for _ in fault_targets.one_and_wait_async():
        pass

def other():
    threading.Thread(target=quiet, daemon=True).start()
    while handle.stats()["pending"] < 1:
        pass

def tell():
    while not ({there}):
        pass
    print("waiting", flush=True)

if __name__ == "__main__":
    with sandboxes(sandboxes_config=os.environ["PROFILE"]) as handle:
        first = fault_targets.pid()
        threading.Thread(target=tell).start()
        try:
            {how}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        assert fault_targets.pid() == first == handle.pid
        while handle.stats()["pending"] > {others}:
            pass
        if {"async" in wait or "await" in wait}:
            while not fault_targets.cancelled():
                pass
        print("well", flush=True)
""")
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    if others:  # the other call is waited for at the end, until that is interrupted as well
        assert process.stdout.readline() == "interrupted\n"
        assert process.stdout.readline() == "well\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert process.returncode == -signal.SIGINT, err
        return
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (0, "interrupted\nwell\n"), err


def test_a_cancelled_task_is_cancelled_there(profile: Path) -> None:
    async def main(handle: Any) -> None:
        task = asyncio.ensure_future(fault_targets.wait_for_ever("task"))  # type: ignore[arg-type]
        while not fault_targets.started():
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert handle.stats()["pending"] == 0, "its place is free"
        while fault_targets.cancelled() != ["task"]:
            await asyncio.sleep(0)

    with sandboxes(sandboxes_config=profile) as handle:
        first = handle.pid
        asyncio.run(main(handle))
        assert fault_targets.pid() == first, "and the late answer is nobody's"


def test_an_awaited_call_over_its_own_time_is_cancelled_alone(profile: Path) -> None:
    async def main() -> None:
        other = asyncio.ensure_future(fault_targets.sleep_async(2))  # type: ignore[arg-type]
        with pytest.raises(SandBoxTimeoutError, match=r"wait_for_a_moment has not answered within 1\.5 s"):
            await fault_targets.wait_for_a_moment("late")
        assert await other == 2

    with sandboxes(sandboxes_config=profile) as handle:
        first = handle.pid
        asyncio.run(main())
        while fault_targets.cancelled() != fault_targets.started():
            pass
        assert fault_targets.pid() == first


@pytest.mark.parametrize("wait_for", [True, False], ids=["wait_for", "timeout"])
def test_asyncio_s_own_time(profile: Path, wait_for: bool) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            if wait_for:
                await asyncio.wait_for(fault_targets.wait_for_ever("asyncio"), 1.5)  # type: ignore[arg-type]
            else:
                async with asyncio.timeout(1.5):
                    await fault_targets.wait_for_ever("asyncio")
        while fault_targets.cancelled() != fault_targets.started():
            await asyncio.sleep(0)

    with sandboxes(sandboxes_config=profile) as handle:
        first = handle.pid
        asyncio.run(main())
        assert fault_targets.pid() == first
