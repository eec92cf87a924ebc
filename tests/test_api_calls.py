"""Calls end to end: values, output, exceptions, generators, and what a call may not do."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import logging
import os
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import api_targets
import pytest

import pysandboxes
from pysandboxes import (
    RestrictedUnpicklingError,
    RuleFileNotFoundError,
    SandBoxBaseExceptionError,
    SandBoxError,
    SandBoxProtocolError,
    SandBoxTimeoutError,
    sandbox_denials,
    sandboxes,
)


@pytest.fixture(scope="module", autouse=True)
def shared(profile: Path) -> Iterator[None]:
    """One sandbox for the tests of this file."""
    with sandboxes(sandboxes_config=profile):
        yield


@pytest.mark.smoke
def test_a_call_runs_in_another_process() -> None:
    inside, pid = api_targets.where()
    assert inside is True
    assert pid != os.getpid()
    assert pysandboxes.is_in_sandbox() is False


def test_arguments_travel() -> None:
    assert api_targets.add(1) == 2
    assert api_targets.add(1, 2, times=3) == 9
    assert api_targets.Tools.double(4) == 8
    assert api_targets.Tools.triple(4) == 12
    assert api_targets.Tools.named(4) == "Tools 4"
    assert api_targets.MoreTools.named(5) == "MoreTools 5"
    assert api_targets.Tools().named(6) == "Tools 6"
    assert asyncio.run(api_targets.MoreTools.anamed(7)) == "MoreTools 7"
    with pytest.raises(TypeError, match="unexpected keyword"):
        api_targets.add(1, nothing=2)


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        -(1 << 100),
        1.5,
        "ä\0\n",
        b"\xff",
        [1, (2, {"three": {4}})],
        frozenset({1}),
        datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC),
        decimal.Decimal("1.10"),
        Path("/a/b"),
        "x" * 3_000_000,
        os.urandom(5_000_000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_come_back_as_they_went(value: Any) -> None:
    assert api_targets.echo(value) == value


def test_an_object_is_no_result() -> None:
    with pytest.raises(RestrictedUnpicklingError, match=r"CustomError[\s\S]*remote-result-mode=objects"):
        api_targets.object_result()
    assert api_targets.add(1) == 2


def test_a_result_that_cannot_be_pickled() -> None:
    with pytest.raises(RestrictedUnpicklingError, match=r"unpicklable_result.*function.*plain values"):
        api_targets.unpicklable_result()


@pytest.mark.parametrize("value", [lambda: 1, threading.Lock(), memoryview(b"")], ids=["lambda", "lock", "memoryview"])
def test_an_argument_that_cannot_be_pickled(value: Any) -> None:
    with pytest.raises(SandBoxError, match=r"argument 1 \(\w+.*\) of api_targets\.echo cannot be sent"):
        api_targets.echo(value)
    with pytest.raises(SandBoxError, match=r"argument 'right'"):
        api_targets.add(1, right=value)


def test_output_is_the_caller_s(capsys: pytest.CaptureFixture[str]) -> None:
    api_targets.say("one line")
    api_targets.say("no end", end="")
    api_targets.say(" ä\udcff€")
    api_targets.say_error("an error")
    api_targets.say_bytes(b"\xe2\x82")
    captured = capsys.readouterr()
    assert captured.out == "one line\nno end ä\\xff€\nbefore\\xe2\\x82after\n"
    assert captured.err == "an error"


def test_output_comes_before_the_call_returns_or_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="middle"):
        for _ in api_targets.count_and_fail():
            api_targets.say("step", end="")
            assert capsys.readouterr().out == "step"


def test_lines_of_calls_at_one_time_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["a" * 50, "b" * 50, "c" * 50]
    threads = [threading.Thread(target=api_targets.say_slowly, args=(name, 20)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == sorted(f"{name} {number}" for name in names for number in range(20))


def test_log_records_are_the_application_s(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        api_targets.log("tests.sandboxed")
    first, second = caplog.records
    assert (first.name, first.levelname, first.getMessage()) == ("tests.sandboxed", "WARNING", "a warning")
    assert first.filename == "api_targets.py"
    assert first.pathname.startswith("<sandbox:")
    assert second.levelname == "ERROR"
    assert "ValueError: invalid literal" in (second.exc_text or "")


def test_an_exception_arrives_whole() -> None:
    with pytest.raises(KeyError) as caught:
        api_targets.fail("chain")
    assert caught.value.args == ("key", 1)
    assert isinstance(caught.value.__cause__, ValueError)
    text = "".join(traceback.format_exception(caught.value))
    assert 'raise KeyError("key", 1) from exc' in text
    assert 'int("x")' in text
    assert "_serve.py" not in text


@pytest.mark.parametrize(
    ("kind", "cls", "text"),
    [
        ("os", FileNotFoundError, "[Errno 2] No such file or directory: '/nowhere'"),
        ("own os", api_targets.OwnOSError, "[Errno 13] denied: '/x'"),
        ("unicode", UnicodeDecodeError, "'utf-8' codec can't decode byte 0xff in position 0: bad"),
        ("custom", api_targets.CustomError, "why (code 7)"),
        ("suppressed", LookupError, "only this"),
        ("notes", ValueError, "noted"),
        ("group", ExceptionGroup, "several (3 sub-exceptions)"),
        ("stop", StopIteration, "over"),
        ("recursion", RecursionError, "maximum recursion depth exceeded"),
        ("unspeakable", Exception, "UnspeakableError"),
        ("unreducible", api_targets.UnreducibleError, "y"),
    ],
)
def test_exceptions_of_all_kinds(kind: str, cls: type[Exception], text: str) -> None:
    with pytest.raises(cls) as caught:
        api_targets.fail(kind)
    assert text in str(caught.value)
    assert api_targets.add(1) == 2


@pytest.mark.parametrize(
    ("kind", "name"), [("exit", "SystemExit"), ("interrupt", "KeyboardInterrupt"), ("base", "StopEverything")]
)
def test_what_would_end_the_program_does_not(kind: str, name: str) -> None:
    _, pid = api_targets.where()
    with pytest.raises(SandBoxBaseExceptionError, match=name):
        api_targets.fail(kind)
    assert api_targets.where()[1] == pid


def test_a_class_that_the_application_does_not_know() -> None:
    with pytest.raises(SandBoxProtocolError, match=r"not_there\.Local: z"):
        api_targets.fail("local")


def test_a_function_that_is_not_found_there() -> None:
    from pysandboxes._sandbox import Target

    def call(module: str, qualname: str) -> Any:
        target = Target(api_targets.not_decorated, None, False)
        target.module, target.qualname = module, qualname
        return pysandboxes._context.current().call(target, (1,), {})

    with pytest.raises(SandBoxError, match=r"no function api_targets\.missing"):
        call("api_targets", "missing")
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all"):
        call("not_there_at_all", "f")
    assert call("api_targets", "not_decorated") == 1


def test_a_refusal_is_the_builtin_and_names_the_line_to_add() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        api_targets.read("/etc/passwd")
    assert type(caught.value) is RuleFileNotFoundError
    assert (caught.value.errno, caught.value.filename) == (2, "/etc/passwd")
    (message,) = sandbox_denials(caught.value)
    assert message.endswith("expose-ro=/etc/passwd")
    assert str(caught.value).endswith("expose-ro=/etc/passwd")
    assert api_targets.read(__file__).startswith('"""Calls end to end')


def test_a_refusal_that_a_library_hid_is_still_known() -> None:
    with pytest.raises(ConnectionError, match="something went wrong") as caught:
        api_targets.read_and_hide("/etc/shadow")
    (denial,) = pysandboxes.denials(caught.value)
    assert (denial.family, denial.subject) == ("file", "/etc/shadow")


def test_a_generator_is_no_result(sandbox_here: Any) -> None:
    """Only a generator function's own has steps; any other is a value that cannot be pickled."""
    with pytest.raises(RestrictedUnpicklingError, match=r"generator_result cannot leave the sandbox: a builtins\.generator"):
        api_targets.generator_result()
    with pytest.raises(RestrictedUnpicklingError, match="generator_result_async"):
        asyncio.run(api_targets.generator_result_async())


def test_generators(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(api_targets.count(3)) == [0, 1, 2]
    generator = api_targets.count(9)
    assert (next(generator), generator.send("got"), generator.throw(KeyError("k"))) == (0, 1, -1)
    generator.close()
    assert capsys.readouterr().out == "closed\nclosed\n"
    generator = api_targets.count(1)
    next(generator)
    with pytest.raises(StopIteration) as stop:
        generator.send("last")
    assert stop.value.value == ["last"]


def test_a_blocked_call_blocks_no_other() -> None:
    blocked = threading.Thread(target=api_targets.sleep, args=(3.0,))
    blocked.start()
    calls = [api_targets.add(number) for number in range(50)]
    assert blocked.is_alive()
    assert calls == [number + 1 for number in range(50)]
    blocked.join()


def test_many_threads_call_at_once() -> None:
    results: dict[int, int] = {}

    def work(number: int) -> None:
        for step in range(20):
            results[number * 100 + step] = api_targets.add(number, step)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number * 100 + step: number + step for number in range(8) for step in range(20)}


def test_a_call_over_its_time() -> None:
    with pytest.raises(SandBoxTimeoutError, match=r"sleep_too_long has not answered within 0\.2 s"):
        api_targets.sleep_too_long(30)
    with pytest.raises(TimeoutError):
        api_targets.sleep_too_long(30)
    assert api_targets.sleep_too_long(0) is None
    assert api_targets.add(1) == 2


def test_call_timeout_of_the_profile(profile: Path) -> None:
    with sandboxes(sandboxes_config=profile, call_timeout="300ms") as handle:
        before = handle.pid
        with pytest.raises(SandBoxTimeoutError, match=r"has not answered within 0\.3 s"):
            api_targets.sleep(30)
        assert api_targets.add(1) == 2
        assert handle.pid != before, "the interpreter of a call over its time is replaced"


async def _slow_async() -> None:
    with pytest.raises(SandBoxTimeoutError, match=r"has not answered within 2 s"):
        await api_targets.asleep(30)
    assert await api_targets.aadd(1, 1) == 2


def test_call_timeout_of_the_profile_with_asyncio(profile: Path) -> None:
    # Two seconds, since the first coroutine of an interpreter pays for the import of asyncio.
    with sandboxes(sandboxes_config=profile, call_timeout="2s"):
        asyncio.run(_slow_async())
