"""The life of a sandbox: start, init_fn, death and restart, reload, nesting, end."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from pathlib import Path
from typing import Any

import api_targets
import pytest

import pysandboxes
from pysandboxes import ConfigSyntaxError, SandBoxError, SandBoxProtocolError, _core, sandboxes


@pytest.fixture(autouse=True)
def no_sandbox_before_or_after() -> Any:
    assert pysandboxes._context.opened == []
    yield
    assert pysandboxes._context.opened == []


def test_after_the_block_nothing_runs(profile: Path) -> None:
    gc.collect()
    before = _core.NumHandles()  # an earlier test's failure may hold its sandbox
    with sandboxes(sandboxes_config=profile) as handle:
        pid = handle.pid
        assert api_targets.where()[1] == pid
        assert handle.provider in ("landlock", "subprocess")
        assert handle.stats()["pid"] == pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(SandBoxError, match="no sandbox is running"):
        api_targets.add(1)
    for use in ("pid", "provider", "stats", "reload"):
        with pytest.raises(SandBoxError, match="closed"):
            getattr(handle, use)()
    assert pysandboxes.is_in_sandbox() is False
    del handle
    gc.collect()
    assert _core.NumHandles() <= before, "and the engine keeps nothing of it"


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_many_times_in_one_process(profile: Path) -> None:
    for number in range(6):
        with sandboxes(config_path=str(profile)):
            assert api_targets.add(number) == number + 1
        if number == 0:
            before = descriptors()  # the first of a process opens what the engine keeps
    assert descriptors() <= before + 2


def test_a_block_is_used_once(profile: Path) -> None:
    scope = sandboxes(sandboxes_config=profile)
    with scope, pytest.raises(SandBoxError, match="make a new one"):
        scope.__enter__()
    with pytest.raises(SandBoxError, match="make a new one"):
        scope.__enter__()


def test_the_innermost_sandbox_is_called(profile: Path) -> None:
    with sandboxes(sandboxes_config=profile) as outer:
        with sandboxes(sandboxes_config=profile) as inner:
            assert api_targets.where()[1] == inner.pid != outer.pid
        assert api_targets.where()[1] == outer.pid


def test_a_thread_calls_the_newest_open_one(profile: Path) -> None:
    seen: list[int] = []
    with sandboxes(sandboxes_config=profile) as handle:
        thread = threading.Thread(target=lambda: seen.append(api_targets.where()[1]))
        thread.start()
        thread.join()
        assert seen == [handle.pid]


def test_enter_and_exit_may_be_far_apart(profile: Path) -> None:
    """As in a notebook, where each cell has a context of its own."""
    scope = sandboxes(sandboxes_config=profile)
    handle = asyncio.run(asyncio.to_thread(scope.__enter__))
    assert api_targets.where()[1] == handle.pid
    asyncio.run(asyncio.to_thread(scope.__exit__, None, None, None))


@pytest.mark.parametrize(("init_fn", "word"), [(api_targets.initialise, "sync"), (api_targets.initialise_async, "async")])
def test_init_fn_runs_first_and_after_each_restart(profile: Path, init_fn: Any, word: str) -> None:
    with sandboxes(init_fn, sandboxes_config=profile) as handle:
        assert api_targets.initialised() == [word]
        first = handle.pid
        with pytest.raises(SandBoxProtocolError):
            api_targets.die("kill")
        assert api_targets.initialised() == [word]
        assert handle.pid != first
        handle.reload()
        assert api_targets.initialised() == [word]
    assert api_targets.INITIALISED == []


def test_an_init_fn_that_fails_ends_the_sandbox(profile: Path) -> None:
    with (
        pytest.raises(ValueError, match="this init_fn fails"),
        sandboxes(api_targets.initialise_and_fail, sandboxes_config=profile),
    ):
        raise AssertionError("entered")


def test_an_init_fn_is_found_by_its_name(profile: Path) -> None:
    with pytest.raises(SandBoxError, match=r"^init_fn is a lambda: .*top level of a module"):
        sandboxes(lambda: None, sandboxes_config=profile).__enter__()
    with pytest.raises(SandBoxError, match=r"^init_fn=.*: init_fn is a Python function"):
        sandboxes(print, sandboxes_config=profile).__enter__()


@pytest.mark.parametrize(("how", "words"), [("kill", "killed|SIGKILL"), ("exit", "exit")])
def test_a_child_that_dies(profile: Path, how: str, words: str) -> None:
    with sandboxes(sandboxes_config=profile) as handle:
        first = handle.pid
        with pytest.raises(SandBoxProtocolError, match=words):
            api_targets.die(how)
        assert api_targets.add(1) == 2
        assert handle.pid != first


def test_a_child_that_dies_fails_every_call_under_way(profile: Path) -> None:
    with sandboxes(sandboxes_config=profile) as handle:
        failures: list[BaseException] = []

        def call() -> None:
            try:
                api_targets.sleep(60)
            except BaseException as exc:
                failures.append(exc)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        while handle.stats()["pending"] < 4:
            assert api_targets.add(1) == 2
        os.kill(handle.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(10)
        assert [type(exc) for exc in failures] == [SandBoxProtocolError] * 4


def test_a_child_that_died_idle_is_replaced_unseen(profile: Path) -> None:
    with sandboxes(sandboxes_config=profile) as handle:
        first = handle.pid
        os.kill(first, signal.SIGKILL)
        results = []
        while handle.pid == first:
            try:
                results.append(api_targets.add(1))
            except SandBoxProtocolError:
                results.append(2)
        assert set(results) <= {2}
        assert api_targets.add(1) == 2


def test_only_an_idempotent_call_is_made_again(profile: Path, tmp_path: Path) -> None:
    with sandboxes(sandboxes_config=profile, expose_rw=tmp_path):
        assert api_targets.die_first_and_again(str(tmp_path / "a")) == "second time"
        with pytest.raises(SandBoxProtocolError):
            api_targets.die_first_once(str(tmp_path / "b"))


def test_reload_reads_the_profile_again(profile: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("content")
    own = tmp_path / "own"
    own.write_text(profile.read_text())
    with sandboxes(sandboxes_config=own) as handle:
        with pytest.raises(FileNotFoundError):
            api_targets.read(str(secret))
        own.write_text(profile.read_text() + f"expose-ro={secret}\n")
        handle.reload()
        assert api_targets.read(str(secret)) == "content"
        own.write_text("no rule\n")
        with pytest.raises(ConfigSyntaxError):
            handle.reload()


def test_running_calls_finish_at_the_end(profile: Path) -> None:
    results: list[float] = []
    with sandboxes(sandboxes_config=profile) as handle:
        thread = threading.Thread(target=lambda: results.append(api_targets.sleep(0.3)))
        thread.start()
        while handle.stats()["pending"] < 1:
            pass
    thread.join()
    assert results == [0.3]


def test_without_grace_they_do_not(profile: Path) -> None:
    failures: list[BaseException] = []

    def call() -> None:
        try:
            api_targets.sleep(60)
        except BaseException as exc:
            failures.append(exc)

    with sandboxes(sandboxes_config=profile, graceful_shutdown=False) as handle:
        thread = threading.Thread(target=call)
        thread.start()
        while handle.stats()["pending"] < 1:
            pass
    thread.join(10)
    assert [type(exc) for exc in failures] == [SandBoxProtocolError]


def test_rules_from_code(profile: Path) -> None:
    with sandboxes(sandboxes_config=profile, expose_ro=["/etc/hostname", "/etc/passwd"]):
        assert "root" in api_targets.read("/etc/passwd")
    with sandboxes(sandboxes_config=profile, python_import="DENY:logging"), pytest.raises(ModuleNotFoundError, match="logging"):
        api_targets.log("x")


def test_an_unknown_rule_is_named_with_the_nearest_one(profile: Path) -> None:
    with pytest.raises(ConfigSyntaxError, match="python-import"):
        sandboxes(sandboxes_config=profile, python_imports="json").__enter__()


def test_a_profile_that_does_not_parse(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_text("# fine\npython-imprt=json\n")
    with pytest.raises(ConfigSyntaxError, match=r"bad:2") as caught:
        sandboxes(sandboxes_config=bad).__enter__()
    assert isinstance(caught.value, ValueError)
    assert caught.value.lineno == 2


def test_a_named_profile_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigSyntaxError, match="missing"):
        sandboxes(sandboxes_config=tmp_path / "missing").__enter__()


def test_two_names_for_one_profile_are_a_mistake(profile: Path) -> None:
    with pytest.raises(TypeError, match="config_path"):
        sandboxes(sandboxes_config=profile, config_path=profile)


def test_os_sandbox_none(profile: Path) -> None:
    with sandboxes(api_targets.initialise, sandboxes_config=profile, os_sandbox="none") as handle:
        assert api_targets.where() == (True, os.getpid())
        assert (handle.pid, handle.provider) == (os.getpid(), "none")
        assert api_targets.INITIALISED == ["sync"]
        assert pysandboxes.is_in_sandbox() is False
    api_targets.INITIALISED.clear()
