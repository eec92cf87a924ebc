"""The life of a pool: sandboxes that die or are replaced, and what cannot be started."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path
from typing import Any

import pool_targets
import pytest

from pysandboxes import (
    ConfigSyntaxError,
    SandBoxError,
    SandboxPoolExecutor,
    SandBoxProtocolError,
)

Pool = Callable[..., SandboxPoolExecutor]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.smoke
def test_a_task_that_kills_its_sandbox_harms_no_other(pool: Pool) -> None:
    executor = pool(2)
    futures = [
        executor.submit(pool_targets.die if number % 5 == 0 else pool_targets.add, *[1] * (number % 5 > 0))
        for number in range(40)
    ]
    ends = [future.exception() for future in futures]
    for number, end in enumerate(ends):
        if number % 5 == 0:
            assert type(end) is SandBoxProtocolError
            assert "exit code 3" in str(end)
        else:
            assert end is None
    assert executor.submit(pool_targets.add, 1).result() == 2


def test_only_an_idempotent_task_is_made_again(pool: Pool, tmp_path: Path) -> None:
    assert pool(1, expose_rw=tmp_path).submit(pool_targets.die_once, str(tmp_path / "a")).result() == "second time"


def test_an_idle_sandbox_that_dies_is_replaced_unseen(pool: Pool) -> None:
    executor = pool(1)
    first = executor.submit(pool_targets.pid).result()
    os.kill(first, signal.SIGKILL)
    seen = set()
    while first in seen or not seen:
        try:
            seen = {executor.submit(pool_targets.pid).result()}
        except SandBoxProtocolError:
            seen = {first}
    assert executor.submit(pool_targets.add, 1).result() == 2


def test_the_initializer(pool: Pool) -> None:
    executor = pool(1, initializer=pool_targets.initialise, initargs=("a", 1))
    assert executor.submit(pool_targets.state).result() == ["a", 1]
    with pytest.raises(SandBoxProtocolError):
        executor.submit(pool_targets.die).result()
    assert executor.submit(pool_targets.state).result() == ["a", 1]
    assert pool_targets.STATE == []


def test_tasks_per_child(pool: Pool) -> None:
    executor = pool(1, max_tasks_per_child=2, initializer=pool_targets.initialise, initargs=("x",))
    pids = [executor.submit(pool_targets.pid).result() for _ in range(6)]
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4] == pids[5]
    assert executor.submit(pool_targets.state).result() == ["x"]
    assert len(executor.stats()) == 1


@pytest.mark.parametrize(
    ("initializer", "cause"),
    [(pool_targets.initialise_and_fail, ValueError), (pool_targets.initialise_and_die, SandBoxProtocolError)],
)
def test_a_pool_that_cannot_start_is_broken(pool: Pool, initializer: Any, cause: type[Exception]) -> None:
    executor = pool(2, initializer=initializer)
    futures = [executor.submit(pool_targets.add, 1) for _ in range(2)]
    for future in futures:
        end = future.exception()
        assert isinstance(end, BrokenExecutor)
        assert isinstance(end, SandBoxError)
        assert isinstance(end.__cause__, cause)
        assert str(end.__cause__) in str(end)
    with pytest.raises(BrokenExecutor, match="no sandbox of this pool can be started"):
        executor.submit(pool_targets.add, 1)
    assert "broken" in repr(executor)


def test_a_worker_that_cannot_start_leaves_its_task_to_others(pool: Pool, tmp_path: Path) -> None:
    marker, go = tmp_path / "marker", tmp_path / "go"
    executor = pool(2, initializer=pool_targets.initialise_once, initargs=(str(marker),), expose_rw=tmp_path)
    first = executor.submit(pool_targets.wait_for, str(go))
    while not marker.exists():
        pass
    second = executor.submit(pool_targets.add, 1)  # a further worker, whose initializer fails
    while len(executor._crew.workers) > 1:
        pass
    assert not second.done()
    go.touch()
    assert (first.result(), second.result()) == (str(go), 2)


def test_a_pool_that_has_worked_is_not_broken_by_a_lack_of_descriptors(run_program: Any) -> None:
    done = run_program("""\
import os, resource
import pool_targets
from pysandboxes import SandboxPoolExecutor

if __name__ == "__main__":
    with SandboxPoolExecutor(1, sandboxes_config=os.environ["PROFILE"]) as pool:
        pool.submit(pool_targets.add, 1).result()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        for task in (pool_targets.die, pool_targets.pid):
            failed = pool.submit(task).exception()
            print(type(failed).__name__, failed)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        print(pool.submit(pool_targets.add, 1).result())
""")
    died, unstarted, after = done.stdout.splitlines()
    assert died.startswith("SandBoxProtocolError "), done
    assert unstarted.startswith("SandBoxError the sandbox of this task could not be started: "), done
    assert "too many open files" in unstarted.lower()
    assert after == "2"


def test_what_is_wrong_is_told_at_once(profile: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigSyntaxError, match="missing"):
        SandboxPoolExecutor(sandboxes_config=tmp_path / "missing")
    with pytest.raises(ConfigSyntaxError, match="python-import"):
        SandboxPoolExecutor(sandboxes_config=profile, python_imports="json")
    with pytest.raises(TypeError, match="config_path"):
        SandboxPoolExecutor(sandboxes_config=profile, config_path=profile)
    with pytest.raises(TypeError, match="does not learn"):
        SandboxPoolExecutor(sandboxes_config=profile, learn=True)
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            SandboxPoolExecutor(wrong, sandboxes_config=profile)
    for nonsense in ({"max_workers": "2"}, {"max_tasks_per_child": 1.5}, {"initializer": 7}):
        with pytest.raises(TypeError, match=next(iter(nonsense))):
            SandboxPoolExecutor(sandboxes_config=profile, **nonsense)  # type: ignore[arg-type]
    with pytest.raises(SandBoxError, match="lambda"):
        SandboxPoolExecutor(sandboxes_config=profile, initializer=lambda: None)


def test_a_changed_profile_changes_no_pool(profile: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text(profile.read_text())
    with SandboxPoolExecutor(2, sandboxes_config=own, max_tasks_per_child=1) as executor:
        assert executor.submit(pool_targets.add, 1).result() == 2
        own.write_text(profile.read_text() + "expose-ro=/etc/passwd\n")
        for _ in range(3):
            with pytest.raises(FileNotFoundError):
                executor.submit(pool_targets.read, "/etc/passwd").result()


def test_os_sandbox_none(pool: Pool) -> None:
    with pool(2, os_sandbox="none", initializer=pool_targets.initialise, initargs=(1,)) as executor:
        assert executor.submit(pool_targets.inside).result() is True
        assert executor.submit(pool_targets.decorated, 1).result() == (True, 1)
        assert executor.submit(pool_targets.pid).result() == os.getpid()
        assert executor.submit(pool_targets.double, 2).result() == 4
        assert list(executor.map(pool_targets.add, range(4), chunksize=3)) == [1, 2, 3, 4]
        assert executor.stats() == []
    assert set(pool_targets.STATE) == {1}
    pool_targets.STATE.clear()


def test_who_hears_of_a_result_finds_its_worker_free(pool: Pool) -> None:
    """No second sandbox is started for a task that is submitted because the first one has ended."""
    next_task: list[Future[int]] = []
    taken_by_another = threading.Event()

    def another(_: Future[int]) -> None:  # the worker's thread, which is not back at the queue yet
        next_task.append(executor.submit(pool_targets.pid))
        end = time.monotonic() + 0.3
        while time.monotonic() < end and not taken_by_another.is_set():
            if next_task[0].running() or next_task[0].done():
                taken_by_another.set()

    with pool(max_workers=3) as executor:
        first = executor.submit(pool_targets.pid)
        first.add_done_callback(another)
        assert first.result(60)
        executor.shutdown()
    assert not taken_by_another.is_set()
    assert next_task[0].result(60) == first.result()
