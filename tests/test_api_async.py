"""Calls from an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import threading
from pathlib import Path

import api_targets
import pytest

import pysandboxes
from pysandboxes import SandBoxError, SandBoxProtocolError, sandboxes


async def wait_for_running(number: int) -> None:
    while True:
        if (await asyncio.to_thread(api_targets.async_state))["running"] >= number:
            return


def test_run_is_asyncio_run_with_a_sandbox(profile: Path) -> None:
    async def main() -> int:
        assert pysandboxes.is_in_sandbox() is False
        return await api_targets.aadd(1, 2)

    assert pysandboxes.run(main(), sandboxes_config=profile) == 3

    async def fail() -> None:
        await api_targets.afail()

    with pytest.raises(api_targets.CustomError, match="async"):
        pysandboxes.run(fail(), sandboxes_config=profile)
    with pytest.raises(SandBoxError, match="no sandbox is running"):
        api_targets.add(1)


@pytest.mark.filterwarnings("error")
def test_run_that_cannot_start_closes_the_coroutine(tmp_path: Path) -> None:
    async def main() -> None: ...

    with pytest.raises(pysandboxes.ConfigSyntaxError):
        pysandboxes.run(main(), sandboxes_config=tmp_path / "missing")


def test_async_with(profile: Path) -> None:
    async def main() -> None:
        async with sandboxes(api_targets.initialise_async, sandboxes_config=profile) as handle:
            assert (await api_targets.aadd(1, 2), handle.provider) == (3, handle.provider)
            assert await asyncio.to_thread(api_targets.initialised) == ["async"]
            assert [number async for number in api_targets.acount(3)] == [0, 1, 2]
        with pytest.raises(SandBoxError):
            await api_targets.aadd(1, 2)

    asyncio.run(main())


def test_many_calls_at_once(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> list[int]:
        return await asyncio.gather(*(api_targets.aadd(number, 1) for number in range(200)))

    assert pysandboxes.run(main(), sandboxes_config=profile) == list(range(1, 201))
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(f"adding {number}" for number in range(200))


def test_waiting_blocks_neither_the_loop_nor_other_calls(profile: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            waiting = asyncio.create_task(api_targets.asleep(60))
            await wait_for_running(1)
            assert await api_targets.aadd(1, 2) == 3
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    pysandboxes.run(main(), sandboxes_config=profile)


def test_cancelling_the_task_cancels_the_sandbox_s_task(profile: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            waiting = [asyncio.create_task(api_targets.asleep(60)) for _ in range(3)]
            await wait_for_running(3)
            for task in waiting:
                task.cancel()
            assert [type(end) for end in await asyncio.gather(*waiting, return_exceptions=True)] == [asyncio.CancelledError] * 3
            while (await asyncio.to_thread(api_targets.async_state))["cancelled"] < 3:
                pass
            assert await api_targets.aadd(1, 2) == 3

    pysandboxes.run(main(), sandboxes_config=profile)


def test_a_child_that_dies_wakes_its_tasks_and_is_replaced(profile: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(30):
            waiting = [asyncio.create_task(api_targets.asleep(60)) for _ in range(3)]
            await wait_for_running(3)
            with pytest.raises(SandBoxProtocolError):
                await asyncio.to_thread(api_targets.die, "kill")
            ends = await asyncio.gather(*waiting, return_exceptions=True)
            assert [type(end) for end in ends] == [SandBoxProtocolError] * 3
            assert await api_targets.aadd(1, 2) == 3

    pysandboxes.run(main(), sandboxes_config=profile)


def test_a_death_that_an_idle_loop_has_seen_is_no_error_of_the_next_call(profile: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), sandboxes(sandboxes_config=profile) as handle:
            assert await api_targets.aadd(1, 2) == 3
            child = handle.pid
            with contextlib.suppress(ProcessLookupError):
                while True:
                    os.kill(child, signal.SIGKILL)
                    await asyncio.sleep(0)
            for _ in range(100):  # the loop hears of it
                await asyncio.sleep(0)
            assert await api_targets.aadd(3, 4) == 7
            assert handle.pid != child

    asyncio.run(main())


def test_a_loop_that_is_closed_with_calls_under_way_gives_them_up(profile: Path) -> None:
    def abandon() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(api_targets.asleep(60))
        loop.run_until_complete(wait_for_running(1))
        assert not task.done()
        task._log_destroy_pending = False  # that is what is tested
        loop.close()

    with sandboxes(sandboxes_config=profile):
        abandon()
        gc.collect()

        async def look() -> None:
            async with asyncio.timeout(30):
                assert await api_targets.aadd(1, 2) == 3  # a later loop's call takes away what the closed one left
                while (await asyncio.to_thread(api_targets.async_state))["cancelled"] < 1:
                    pass

        asyncio.run(look())


def test_other_tasks_run_while_one_calls_over_and_over(profile: Path) -> None:
    async def main() -> None:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with asyncio.timeout(60):
            task = asyncio.create_task(others())
            for number in range(300):
                assert await api_targets.aecho(number) == number
            task.cancel()
        assert turns >= 300 // 8

    pysandboxes.run(main(), sandboxes_config=profile)


def test_an_event_loop_that_watches_no_descriptors_waits_in_threads(profile: Path) -> None:
    class Loop(asyncio.SelectorEventLoop):
        def add_reader(self, *_: object) -> None:  # type: ignore[override]
            raise NotImplementedError

    async def main() -> None:
        async with asyncio.timeout(30):
            assert await api_targets.aadd(1, 2) == 3
            waiting = asyncio.create_task(api_targets.asleep(60))
            await wait_for_running(1)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            while (await asyncio.to_thread(api_targets.async_state))["cancelled"] < 1:
                pass

    with sandboxes(sandboxes_config=profile), asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main())


def test_threads_and_tasks_share_a_sandbox(profile: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(60):
            tasks = [api_targets.aadd(number, 1) for number in range(50)]
            threads = [asyncio.to_thread(api_targets.add, number) for number in range(50)]
            results = await asyncio.gather(*tasks, *threads)
            assert results == [*range(1, 51)] * 2

    pysandboxes.run(main(), sandboxes_config=profile)


def test_many_loops_at_one_time_use_one_sandbox(profile: Path) -> None:
    results: dict[int, list[int]] = {}

    def work(number: int) -> None:
        results[number] = [asyncio.run(api_targets.aadd(number, step)) for step in range(30)]

    with sandboxes(sandboxes_config=profile):
        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert results == {number: [number + step for step in range(30)] for number in range(6)}


def test_two_loops_one_after_the_other_use_one_sandbox(profile: Path) -> None:
    with sandboxes(sandboxes_config=profile):
        for number in range(3):
            assert asyncio.run(api_targets.aadd(number, 1)) == number + 1


def test_os_sandbox_none(profile: Path) -> None:
    async def main() -> int:
        return await api_targets.aadd(1, 2)

    assert pysandboxes.run(main(), sandboxes_config=profile, os_sandbox="none") == 3
