"""Results with large bytes in them, which come beside the pickle."""

from __future__ import annotations

import asyncio
import pickle
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import api_targets
import pytest

from pysandboxes import RestrictedUnpicklingError, SandBoxError, sandboxes
from pysandboxes._pickling import LARGE, pickled

pytestmark = pytest.mark.smoke

SIZES = (0, LARGE - 1, LARGE, LARGE + 1, 1 << 20, (1 << 20) + 1, 5_000_000)


@pytest.fixture(scope="module", autouse=True)
def sandbox_of_module(profile: Path) -> Iterator[None]:
    with sandboxes(sandboxes_config=profile):
        yield


def values() -> list[Any]:
    shared = b"s" * LARGE
    return [
        *(b"b" * size for size in SIZES),
        *([b"n" * size, size] for size in SIZES),
        *("t" * size for size in SIZES),
        {b"key" * LARGE: ("nested", [bytearray(b"a" * 100_000), memoryview(b"x").tobytes()])},
        (shared, [shared, shared]),
        [1, "text", None] * 50_000,
        # What looks like an instruction before large bytes, at the end of a frame and of a text.
        ["x" * (LARGE - 20) + "B" + struct.pack("<I", LARGE).decode("latin-1"), b"y" * LARGE],
        [b"x" * (LARGE - 5) + b"B" + struct.pack("<I", LARGE), b"y" * LARGE, "z" * LARGE],
        *([b"f" * (LARGE - 30 + step) + b"B" + struct.pack("<I", LARGE), b"g" * LARGE] for step in range(30)),
    ]


def test_the_pickle_with_its_buffers_is_the_value() -> None:
    for value in values():
        data, buffers = pickled(value)
        again = pickle.loads(data, buffers=buffers)
        assert again == value
        assert all(type(buffer) is bytes for buffer in buffers)
    data, buffers = pickled([b"x" * LARGE, b"y" * (LARGE - 1)])
    assert len(buffers) == 1 and LARGE < len(data) + 100 < 2 * LARGE


def test_results_are_what_they_were() -> None:
    for value in values():
        result = api_targets.echo(value)
        assert result == value and type(result) is type(value)
    one, (two, three) = api_targets.echo((b"s" * LARGE, [b"t" * LARGE] * 2))
    assert two is three and one != two
    array = api_targets.echo([bytearray(b"a" * 100_000)])[0]
    array.append(1)
    assert len(array) == 100_001


def test_results_of_threads_and_tasks_at_the_same_time() -> None:
    wrong: list[object] = []

    def thread(number: int) -> None:
        for size in SIZES:
            value = [bytes([number]) * size, number]
            if api_targets.echo(value) != value:
                wrong.append((number, size))

    async def tasks() -> None:
        asked = [bytes([number]) * 3_000_000 for number in range(4)]
        assert await asyncio.gather(*(api_targets.aecho(value) for value in asked)) == asked

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    asyncio.run(tasks())
    for one in threads:
        one.join()
    assert not wrong


def test_what_may_not_cross_is_still_refused() -> None:
    with pytest.raises(RestrictedUnpicklingError, match=r"result\[1\]"):
        api_targets.echo([b"x" * LARGE, threading.Thread])
    assert api_targets.add(1) == 2


def test_the_limit_counts_what_comes_beside(profile: Path) -> None:
    with sandboxes(sandboxes_config=profile, limit_result="1MB"):
        assert len(api_targets.echo(b"x" * 900_000)) == 900_000
        for value in (b"x" * 2_000_000, [b"x" * 600_000, b"y" * 600_000]):
            with pytest.raises(SandBoxError, match="limit-result"):
                api_targets.echo(value)
        assert api_targets.add(1) == 2
