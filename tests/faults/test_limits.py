"""Each limit is held, its error names the line that sets it, and what is within the limit is as in bare Python."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fault_targets
import pytest

from pysandboxes import RestrictedUnpicklingError, SandBoxError, SandBoxProtocolError, SandBoxTimeoutError, sandboxes

MB = 1 << 20
OVER = r"more than the 1048576 of limit-result=1MB, .*:5\. Make that:\n    limit-result=\d+"


@pytest.fixture
def limited(tmp_path: Path) -> Callable[..., Any]:
    """Opens a sandbox whose profile ends with these lines, which stand from line 5 on."""

    @contextmanager
    def opened(*lines: str) -> Iterator[Any]:
        own = tmp_path / "limits.py-sandboxes"
        head = (
            "os-sandbox=${OS_SANDBOX:-auto}",
            "python-import=*",
            "python-api=ALLOW:process-exec,ALLOW:threads,ALLOW:process-control",
        )
        own.write_text("\n".join((*head, f"expose-ro={Path(__file__).parent}", *lines)) + "\n")
        with sandboxes(sandboxes_config=own) as handle:
            yield handle

    return opened


def notes(exc: BaseException) -> str:
    return "\n".join(getattr(exc, "__notes__", ()))


def test_memory(limited: Callable[..., Any]) -> None:
    with limited("limit-memory=100MB") as handle:
        first = handle.pid
        assert fault_targets.take(40 * MB) == 40 * MB
        for take in (lambda: fault_targets.take(160 * MB), fault_targets.take_all):
            with pytest.raises((MemoryError, SandBoxProtocolError)) as caught:
                take()
            if isinstance(caught.value, MemoryError):
                assert re.search(r"bounded by limit-memory=100MB, .*limits\.py-sandboxes:5$", notes(caught.value))
                assert caught.value.args == ()
                assert handle.pid == first, "a MemoryError ends no sandbox"
            else:  # in a control group the kernel ends it
                assert re.search(r"was ended by limit-memory=100MB, .*:5$", str(caught.value))
        assert fault_targets.take(40 * MB) == 40 * MB


def test_what_a_call_held_is_free_when_it_is_answered(limited: Callable[..., Any]) -> None:
    """The next call may come on another thread, and needs the memory."""
    with limited():
        with pytest.raises(MemoryError):
            fault_targets.hold_and_raise("sync")
        assert sorted(fault_targets.freed()) == ["sync-0", "sync-1", "sync-2"]
        with pytest.raises(MemoryError):
            asyncio.run(fault_targets.hold_and_raise_async("async"))  # type: ignore[arg-type]
        assert sorted(fault_targets.freed())[:3] == ["async-0", "async-1", "async-2"]
        assert fault_targets.hold_and_return("value", fault_targets.Slowly("ours")) == 5
        assert sorted(fault_targets.freed())[-2:] == ["value", "value-argument"]


def test_a_memory_error_without_a_limit_names_none(limited: Callable[..., Any]) -> None:
    with limited(), pytest.raises(MemoryError) as caught:
        fault_targets.take(1 << 60)
    assert notes(caught.value) == ""


def test_an_argument_that_does_not_fit(limited: Callable[..., Any]) -> None:
    with limited("limit-memory=64MB"):
        assert fault_targets.take_argument(b"x" * (4 * MB)) == 4 * MB
        with pytest.raises((SandBoxError, MemoryError)) as caught:
            fault_targets.take_argument(b"x" * (160 * MB))
        assert "limit-memory=64MB" in str(caught.value) + notes(caught.value)
        assert fault_targets.take_argument(b"x" * (4 * MB)) == 4 * MB


def test_memory_that_is_too_little_to_start_with(limited: Callable[..., Any]) -> None:
    with pytest.raises(SandBoxError, match=r"limit-memory=0"), limited("limit-memory=0MB"):
        raise AssertionError("it is no limit to set")


def test_processor_time(limited: Callable[..., Any]) -> None:
    with limited("limit-cpu=1s") as handle:
        first = handle.pid
        assert fault_targets.sleep(0.01) == 0.01
        with pytest.raises(SandBoxProtocolError, match=r"was ended by limit-cpu=1s, .*limits\.py-sandboxes:5$"):
            fault_targets.compute(30)
        assert fault_targets.sleep(0.01) == 0.01
        assert handle.pid != first, "each interpreter has that much"


def test_processor_time_of_one_that_goes_on(limited: Callable[..., Any]) -> None:
    with (
        limited("limit-cpu=1s"),
        pytest.raises(SandBoxProtocolError, match=r"was ended by limit-cpu=1s, .*:5$"),
    ):
        fault_targets.compute_through_signals(30)


def test_open_files(limited: Callable[..., Any]) -> None:
    with limited("limit-open-files=64", "expose-rw=/dev/null"):
        assert fault_targets.open_files(30) == 30
        with pytest.raises(OSError, match="Too many open files") as caught:
            fault_targets.open_files(100)
        assert (caught.value.errno, caught.value.filename) == (24, "/dev/null")
        assert re.search(r"bounded by limit-open-files=64, .*:5$", notes(caught.value))
        assert fault_targets.open_files(30) == 30


def test_processes(limited: Callable[..., Any], unheld: str) -> None:
    with limited("limit-processes=40") as handle:
        assert handle.pid
        if unheld:
            pytest.skip(unheld)
        with pytest.raises(BlockingIOError) as caught:
            fault_targets.start_processes(100)
        assert re.search(r"bounded by limit-processes=40, .*:5$", notes(caught.value))


@pytest.fixture
def unheld(limited: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> str:
    """What the start says of a limit-processes that this machine does not hold."""
    with limited("limit-processes=40"):
        said = [record.getMessage() for record in caplog.records if "limit-processes is" in record.getMessage()]
    caplog.clear()
    return said[0] if said else ""


def test_what_is_partial_is_said_at_the_start(limited: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    with limited("limit-memory=100MB", "limit-processes=4000", "limit-open-files=64"):
        said = [record.getMessage() for record in caplog.records if record.name == "Pysandboxes"]
    memory = [text for text in said if "limit-memory is partial" in text]
    if memory:
        assert re.search(r"limits\.py-sandboxes:5: limit-memory is partial: .*no control group for this sandbox \(", memory[0])
        assert any(re.search(r":6: limit-processes is (partial|not held)", text) for text in said)
    assert not any("limit-open-files" in text for text in said), "held fully"


def test_a_result_over_the_limit(limited: Callable[..., Any]) -> None:
    with limited("limit-result=1MB") as handle:
        first = handle.pid
        assert len(fault_targets.answer(MB - 100)) == MB - 100
        with pytest.raises(
            RestrictedUnpicklingError,
            match=OVER,
        ):
            fault_targets.answer(3 * MB)
        assert len(fault_targets.answer(MB - 100)) == MB - 100
        assert handle.pid == first


def test_a_call_over_its_time_names_the_line_that_said_so(limited: Callable[..., Any]) -> None:
    with limited("call-timeout=3s") as handle:
        assert fault_targets.sleep(0.01) == 0.01
        first = handle.pid
        with pytest.raises(SandBoxTimeoutError, match=r"sleep has not answered within 3 s \(call-timeout=3s, .*:5\)$"):
            fault_targets.sleep(60)
        with pytest.raises(ProcessLookupError):
            os.kill(first, 0)
        assert fault_targets.pid() != first


def test_the_limits_are_not_the_sandbox_s_to_raise(limited: Callable[..., Any]) -> None:
    with limited("limit-memory=100MB", "limit-open-files=64", "limit-cpu=60s") as handle:
        for name in ("RLIMIT_NOFILE", "RLIMIT_CPU", *(["RLIMIT_DATA"] if fault_targets.limit_of("RLIMIT_DATA") > 0 else [])):
            if handle.provider == "subprocess" and os.geteuid() == 0:
                continue  # no boundary: root may
            with pytest.raises((ValueError, PermissionError)):
                fault_targets.raise_limit(name)
