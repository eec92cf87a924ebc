"""The event loop of a sandboxed interpreter, which reads the calls of its coroutines itself."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import loop_targets
import pytest

from pysandboxes import sandboxes

pytestmark = pytest.mark.smoke


@asynccontextmanager
async def loop_that_reads(profile: Path, **rules: str) -> AsyncIterator[None]:
    """A sandbox whose loop has the channel: some coroutines were called, one after the other."""
    async with asyncio.timeout(60), sandboxes(sandboxes_config=profile, **rules):
        for number in range(20):
            assert await loop_targets.same(number) == number
        yield


def test_coroutines_run_in_one_thread_and_functions_in_the_main_thread(profile: Path) -> None:
    async def main() -> None:
        async with loop_that_reads(profile):
            threads, in_main = set(), []
            for _ in range(30):
                threads.add(await loop_targets.thread())
                in_main.append(await asyncio.to_thread(loop_targets.main_thread))
                threads.add(await loop_targets.thread())
                threads.add(await loop_targets.thread())
            assert len(threads) == 1
            assert in_main.count(True) > 15, "the main thread comes first, unless it is kept from running"

    asyncio.run(main())


def test_a_module_is_imported_by_the_main_thread(profile: Path) -> None:
    async def main() -> None:
        async with loop_that_reads(profile):
            import api_targets

            assert await loop_targets.imported_by_main()
            assert await api_targets.aecho("from a module that is new") == "from a module that is new"

    asyncio.run(main())


def test_a_loop_that_is_blocked_keeps_nobody_waiting(profile: Path) -> None:
    async def main() -> None:
        async with loop_that_reads(profile):
            for _ in range(5):
                blocked = asyncio.create_task(loop_targets.block_the_loop())
                while not blocked.done():
                    await asyncio.to_thread(loop_targets.open_the_gate)
                assert await blocked
                assert await loop_targets.same(1) == 1

    asyncio.run(main())


def test_calls_behind_a_blocked_loop_are_not_lost(profile: Path) -> None:
    async def main() -> None:
        async with loop_that_reads(profile):
            blocked = asyncio.create_task(loop_targets.block_the_loop())
            behind = [asyncio.create_task(loop_targets.same(number)) for number in range(100)]
            await asyncio.sleep(0)
            assert await asyncio.to_thread(loop_targets.main_thread)
            await asyncio.to_thread(loop_targets.open_the_gate)
            assert await asyncio.gather(*behind) == list(range(100))
            assert await blocked

    asyncio.run(main())


def test_what_does_not_fit_the_buffer_is_read_by_others(profile: Path) -> None:
    async def main() -> None:
        async with loop_that_reads(profile):
            for size in (10, 60_000, 70_000, 3_000_000, 10):
                small = [asyncio.create_task(loop_targets.same(number)) for number in range(5)]
                assert await loop_targets.same(b"x" * size) == b"x" * size
                assert await asyncio.gather(*small) == list(range(5))

    asyncio.run(main())


def test_the_rest_of_a_large_call_is_never_taken_for_a_call(profile: Path) -> None:
    inner = pickle.dumps(("loop_targets", "same", ("from inside",), {}), 5)
    start = pickle.dumps(("loop_targets", "same", (bytes(1 << 21),), {}), 5).index(bytes(100))
    value = b"x" * ((1 << 20) - start) + inner + b"y" * 1000  # a part of a payload is 1 MiB

    async def main() -> None:
        async with loop_that_reads(profile):
            for _ in range(10):
                tasks = [asyncio.create_task(loop_targets.same(value if n % 10 == 5 else n)) for n in range(100)]
                assert await asyncio.gather(*tasks) == [value if n % 10 == 5 else n for n in range(100)]

    asyncio.run(main())


def test_signals_are_handled_while_the_loop_reads(profile: Path) -> None:
    async def main() -> None:
        async with loop_that_reads(profile):
            await asyncio.to_thread(loop_targets.watch_alarms)
            for number in range(1, 6):
                for _ in range(3):
                    await loop_targets.same(None)
                await loop_targets.alarm()
                while len(seen := await loop_targets.alarms()) < number:
                    pass
            assert seen == [True] * 5

    asyncio.run(main())


def test_a_program_that_plays_the_loop_does_no_harm(profile: Path) -> None:
    async def main() -> None:
        async with loop_that_reads(profile):
            playing = asyncio.create_task(asyncio.to_thread(loop_targets.play_the_loop))
            while not playing.done():
                assert await asyncio.gather(*(loop_targets.same(number) for number in range(20))) == list(range(20))
            assert await playing == set()

    asyncio.run(main())


def test_a_call_is_taken_once_while_a_program_compares_it(profile: Path) -> None:
    async def main() -> None:
        async with loop_that_reads(profile):
            taken = 0
            while taken < 3:
                (seen, count), *others = await asyncio.gather(
                    loop_targets.take_inside_take(), *(loop_targets.same(number) for number in range(20))
                )
                assert not any(seen), "what is being taken was taken a second time"
                assert [one for one in others if one != "taken"] == [n for n, one in enumerate(others) if one != "taken"]
                taken += count

    asyncio.run(main())


def test_a_copy_of_the_loop_takes_nothing_away(profile: Path) -> None:
    async def main() -> None:
        async with loop_that_reads(profile, python_api="ALLOW:os.fork"):
            for _ in range(3):
                assert await loop_targets.fork_in_the_loop() == 0
                for number in range(10):
                    assert await loop_targets.same(number) == number

    asyncio.run(main())
