"""SandboxPoolExecutor: an executor of concurrent.futures whose workers are sandboxes."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import api_targets
import pool_targets
import pytest

import pysandboxes
from pysandboxes import (
    RestrictedUnpicklingError,
    SandBoxBaseExceptionError,
    SandBoxError,
    SandboxPoolExecutor,
    SandBoxTimeoutError,
    sandbox_denials,
)

Pool = Callable[..., SandboxPoolExecutor]


# ---- what an executor does ----------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_tasks_run_in_sandboxes(pool: Pool) -> None:
    with pool() as executor:
        assert isinstance(executor, Executor)
        assert executor.submit(pool_targets.inside).result() is True
        assert pysandboxes.is_in_sandbox() is False
        assert executor.submit(pool_targets.add, 2, right=3).result() == 5
        assert executor.submit(pool_targets.decorated, 7).result() == (True, 7)
        found = {executor.submit(pool_targets.pid).result() for _ in range(5)}
        assert found <= {stats["pid"] for stats in executor.stats()}
        assert os.getpid() not in found
        assert "open" in repr(executor)
    assert executor.stats() == []
    assert "closed" in repr(executor)
    for number in found:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def repr_of(value: object) -> str:
    """Without addresses, which differ between the test's processes."""
    return re.sub(r" at 0x\w+|[<>]", "", str(value))


@pytest.mark.parametrize(
    ("function", "args", "wanted"),
    [
        (pool_targets.double, (4,), 8),
        (api_targets.aadd, (4, 5), 9),
        (partial(pool_targets.add, 1), (5,), 6),
        (partial(partial(pool_targets.add, 1), right=7), (), 8),
        (math.sqrt, (4,), 2.0),
        ("a b".split, (), ["a", "b"]),
        (int, ("7",), 7),
        (pool_targets.Point(1, 2).sum, (3,), 6),
        (pool_targets.Point(1, 2), (3,), 6),
        (api_targets.Tools.double, (3,), 6),
    ],
    ids=repr_of,
)
def test_what_can_be_a_task(pool: Pool, function: Any, args: tuple[Any, ...], wanted: object) -> None:
    assert pool(1).submit(function, *args).result() == wanted


def local() -> Any:
    def inner() -> None: ...

    return inner


def replaced() -> None: ...


old = replaced


def replaced() -> None: ...  # type: ignore[no-redef]


@pytest.mark.parametrize(
    ("function", "args", "words"),
    [
        (lambda: 1, (), "a task is a lambda"),
        (local(), (), "a function inside a function"),
        (old, (), "does not mean the function"),
        (pool_targets.generate, (), "is a generator function"),
        (api_targets.count, (3,), "is a generator function"),
        (api_targets.acount, (3,), "is a generator function"),
        (pool_targets.add, (threading.Lock(),), r"argument 1 \(_thread.lock\) of pool_targets.add cannot be sent"),
        (partial(pool_targets.add, right=local()), (1,), r"argument 'right' \(function\) of pool_targets.add"),
        ("".join, (local(),), r"argument 1 \(function\) of str.join cannot be sent"),
        (7, (), "not callable"),
    ],
    ids=repr_of,
)
def test_what_cannot_travel_is_told_by_the_future(pool: Pool, function: Any, args: tuple[Any, ...], words: str) -> None:
    executor = pool(1)
    future = executor.submit(function, *args)
    with pytest.raises((SandBoxError, TypeError), match=words):
        future.result()
    assert executor.submit(pool_targets.add, 1).result() == 2


@pytest.mark.parametrize("function", [pool_targets.give_lambda, pool_targets.give_object, pool_targets.give_generator])
def test_results_are_validated(pool: Pool, function: Any) -> None:
    executor = pool(1)
    with pytest.raises(RestrictedUnpicklingError):
        executor.submit(function).result()
    with pytest.raises(RestrictedUnpicklingError):
        list(executor.map(function, [], chunksize=5)) or executor.submit(function).result()
    assert executor.submit(pool_targets.add, 1).result() == 2


def test_refusals_name_the_line(pool: Pool) -> None:
    executor = pool(1)
    with pytest.raises(FileNotFoundError) as caught:
        executor.submit(pool_targets.read, "/etc/passwd").result()
    assert sandbox_denials(caught.value)[0].endswith("expose-ro=/etc/passwd")
    with pool(1, expose_ro="/etc/passwd") as allowed:
        assert "root" in allowed.submit(pool_targets.read, "/etc/passwd").result()


def test_exceptions(pool: Pool) -> None:
    executor = pool(1)
    with pytest.raises(ValueError, match=r"^so$"):
        executor.submit(pool_targets.fail, "so").result()
    with pytest.raises(SandBoxBaseExceptionError, match="SystemExit: 4"):
        executor.submit(pool_targets.leave).result()
    with pytest.raises(SandBoxTimeoutError, match="too_long"):
        executor.submit(pool_targets.too_long).result()
    assert executor.submit(pool_targets.add, 1).result() == 2


def test_map(pool: Pool) -> None:
    executor = pool()
    wanted = list(map(pool_targets.add, range(20), range(5, 22)))
    for chunksize in (1, 3, 17, 1000):
        assert list(executor.map(pool_targets.add, range(20), range(5, 22), chunksize=chunksize)) == wanted
    assert list(executor.map(pool_targets.double, range(4), chunksize=2)) == [0, 2, 4, 6]
    assert list(executor.map(partial(pool_targets.add, 1), range(4), chunksize=3)) == [1, 2, 3, 4]
    assert list(executor.map(pool_targets.add, [], chunksize=4)) == []
    with pytest.raises(ValueError, match="at least 1"):
        executor.map(pool_targets.add, [1], chunksize=0)
    got = executor.map(int, ["1", "x", "3"], chunksize=1)
    assert next(got) == 1
    with pytest.raises(ValueError, match="invalid literal"):
        next(got)
    with pytest.raises(ValueError, match="invalid literal"):
        list(executor.map(int, ["1", "x", "3"], chunksize=3))


def test_map_times_out(pool: Pool, tmp_path: Path) -> None:
    executor = pool(1, expose_ro=tmp_path)
    waiting = executor.map(pool_targets.wait_for, [str(tmp_path / "come")], timeout=0.1)
    with pytest.raises(TimeoutError):
        next(waiting)
    (tmp_path / "come").touch()


# ---- many at a time -----------------------------------------------------------------------------------------------------


def test_workers_work_at_the_same_time(pool: Pool, tmp_path: Path) -> None:
    executor = pool(3, expose_rw=tmp_path)
    meeting = [executor.submit(pool_targets.meet, str(tmp_path), str(number), 3) for number in range(3)]
    assert [future.result(60) for future in meeting] == [True] * 3
    assert len(executor.stats()) == 3


def test_no_more_sandboxes_than_are_needed(pool: Pool) -> None:
    executor = pool(4)
    assert executor.stats() == []
    for number in range(5):
        assert executor.submit(pool_targets.add, number).result() == number + 1
        while executor._crew._idle < len(executor._crew.workers):
            pass  # the worker has told, and is on its way back to the queue
    assert len(executor.stats()) == 1


def test_first_come_first_served(pool: Pool, tmp_path: Path) -> None:
    """Whoever submits much keeps nobody waiting longer than what was there before."""
    executor = pool(1, expose_ro=tmp_path)
    ended: list[str] = []
    gate = executor.submit(pool_targets.wait_for, str(tmp_path / "go"))
    for number in range(30):
        name = f"{'few' if number % 10 == 9 else 'many'} {number}"
        executor.submit(pool_targets.add, number).add_done_callback(lambda _, name=name: ended.append(name))
    (tmp_path / "go").touch()
    gate.result()
    executor.shutdown()
    assert [int(name.split()[1]) for name in ended] == list(range(30))


def test_many_threads_submit(pool: Pool) -> None:
    executor = pool(2)
    results: dict[int, list[int]] = {}

    def submit(number: int) -> None:
        futures = [executor.submit(pool_targets.add, number, step) for step in range(40)]
        results[number] = [future.result() for future in futures]

    threads = [threading.Thread(target=submit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [number + step for step in range(40)] for number in range(8)}


@pytest.mark.smoke
def test_an_event_loop_s_executor(pool: Pool) -> None:
    executor = pool()

    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(executor, pool_targets.add, number) for number in range(50)))

    assert asyncio.run(main()) == list(range(1, 51))


def test_what_is_printed_and_logged_is_the_submitter_s(
    pool: Pool, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who")

    class Marks(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            record.who = who.get()
            return True

    logger = logging.getLogger("pool")
    marks = Marks()
    logger.addFilter(marks)
    try:
        executor = pool(3)
        futures: list[Future[None]] = []
        for number in range(12):
            who.set(f"n{number}")
            futures += [executor.submit(pool_targets.log, f"n{number}"), executor.submit(pool_targets.say, f"n{number}", 20)]
        for future in futures:
            future.result()
    finally:
        logger.removeFilter(marks)
    assert sorted((record.who, record.message) for record in caplog.records) == sorted(  # type: ignore[attr-defined]
        (f"n{number}", f"of n{number}") for number in range(12)
    )
    wanted = sorted(f"n{number} {step}" for number in range(12) for step in range(20))
    captured = capsys.readouterr()
    assert sorted(captured.out.splitlines()) == sorted(captured.err.splitlines()) == wanted


TYPED = """\
from concurrent.futures import Executor, Future
from typing import assert_type

from pysandboxes import SandboxPoolExecutor


def plain(number: int, text: str = "") -> bytes: ...
async def awaited(number: int) -> str: ...
def use(executor: Executor) -> None: ...


with SandboxPoolExecutor(2, initializer=plain, initargs=(1,), python_import="json") as pool:
    assert_type(pool.submit(plain, 1, text="x"), Future[bytes])
    assert_type(pool.submit(awaited, 1), Future[str])
    assert_type(pool.submit(int, "1"), Future[int])
    assert_type(list(pool.map(plain, [1], chunksize=3)), list[bytes])
    use(pool)
    pool.submit(plain, "wrong")
"""


def test_it_is_typed(tmp_path: Path) -> None:
    """As ``submit`` of Executor is, and a coroutine function's future has what it returns."""
    file = tmp_path / "typed.py"
    file.write_text(TYPED.replace(": ...", ":\n    raise NotImplementedError"))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=Path(__file__).parent.parent)
    assert re.findall(r"typed.py:(\d+): error: (.*)", done.stdout) == [
        (str(file.read_text().splitlines().index('    pool.submit(plain, "wrong")') + 1), ANY)
    ], done.stdout
