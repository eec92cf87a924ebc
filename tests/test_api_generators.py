"""Generators of the sandbox behave step by step as they do in the application; output goes where the caller's streams are."""

from __future__ import annotations

import asyncio
import gc
import io
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import generator_targets as targets
import pytest

from pysandboxes import sandboxes

pytestmark = pytest.mark.smoke

#: What is made, and the steps that are taken with it: a method and its arguments.
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...], list[tuple[Any, ...]]]] = {
    "to the end": (targets.talk, (2,), [("send", None), ("send", "a"), ("send", "b"), ("send", None)]),
    "a value too early": (targets.talk, (2,), [("send", "early"), ("send", None)]),
    "an exception that is handled": (targets.talk, (3,), [("send", None), ("throw", ValueError("v")), ("send", "on")]),
    "an exception that is not": (targets.talk, (3,), [("send", None), ("throw", KeyError("k")), ("send", None)]),
    "an exception before the first step": (targets.talk, (3,), [("throw", ValueError("early")), ("send", None)]),
    "closed in the middle": (targets.talk, (3,), [("send", None), ("close",), ("send", None), ("close",)]),
    "closed before the first step": (targets.talk, (3,), [("close",), ("send", None)]),
    "closed at the end": (targets.talk, (0,), [("send", None), ("close",)]),
    "thrown out": (targets.talk, (3,), [("send", None), ("throw", GeneratorExit()), ("send", None)]),
    "one that stays": (targets.stubborn, (), [("send", None), ("close",)]),
    "one within another": (targets.nested, (), [("send", None), ("send", "x"), ("send", None), ("send", None)]),
}


def outcome(step: Any, *arguments: Any) -> Any:
    """What a step gives, or the exception that it raises, without what only this side's own could have."""
    try:
        return step(*arguments)
    except StopIteration as exc:
        return "end", exc.value
    except BaseException as exc:
        return type(exc), str(exc), any(exc is given for given in arguments)  # what was thrown in comes out itself


def take(name: str) -> tuple[list[Any], str]:
    make, arguments, steps = PROGRAMS[name]
    with redirect_stdout(io.StringIO()) as out:
        generator = make(*arguments)
        outcomes = [outcome(getattr(generator, method), *given) for method, *given in steps]
        del generator
        gc.collect()
    targets.KEPT.clear()
    return outcomes, out.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_step_is_as_here(name: str, profile: Path) -> None:
    with sandboxes(sandboxes_config=profile, os_sandbox="none"):
        here = take(name)
    with sandboxes(sandboxes_config=profile):
        assert take(name) == here


ASYNC_PROGRAMS: dict[str, list[tuple[Any, ...]]] = {
    "to the end": [("asend", None), ("asend", "a"), ("asend", "b"), ("asend", None)],
    "a value too early": [("asend", "early"), ("asend", None)],
    "an exception that is handled": [("asend", None), ("athrow", ValueError("v")), ("asend", "on")],
    "an exception that is not": [("asend", None), ("athrow", KeyError("k")), ("asend", None)],
    "closed in the middle": [("asend", None), ("aclose",), ("asend", None), ("aclose",)],
    "closed before the first step": [("aclose",), ("asend", None)],
}


async def atake(name: str) -> tuple[list[Any], str]:
    outcomes: list[Any] = []
    with redirect_stdout(io.StringIO()) as out:
        generator = targets.atalk(2)
        for method, *given in ASYNC_PROGRAMS[name]:
            try:
                outcomes.append(await getattr(generator, method)(*given))
            except BaseException as exc:
                outcomes.append((type(exc), str(exc), exc in given))
        await generator.aclose()
    return outcomes, out.getvalue()


@pytest.mark.parametrize("name", ASYNC_PROGRAMS)
def test_each_awaited_step_is_as_here(name: str, profile: Path) -> None:
    with sandboxes(sandboxes_config=profile, os_sandbox="none"):
        here = asyncio.run(atake(name))
    with sandboxes(sandboxes_config=profile):
        assert asyncio.run(atake(name)) == here


def test_one_that_is_left_in_the_middle_is_closed(profile: Path) -> None:
    with sandboxes(sandboxes_config=profile), redirect_stdout(io.StringIO()) as out:
        for number, _ in targets.talk(5):
            if number == 1:
                break
        gc.collect()
        assert out.getvalue() == "told to go\ngone\n"


def test_an_async_one_that_is_left_in_the_middle_is_closed(profile: Path) -> None:
    async def main() -> None:
        async for number, _ in targets.atalk(5):
            if number == 1:
                break
        while not out.getvalue().endswith("gone\n"):  # by a task of the loop's own, which must not end before
            await asyncio.sleep(0)

    with sandboxes(sandboxes_config=profile), redirect_stdout(io.StringIO()) as out:
        asyncio.run(main())
        assert out.getvalue() == "told to go\ngone\n"


def test_output_without_a_stream(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As print() does: nothing where there is no sys.stdout, and ValueError where it is closed."""
    with sandboxes(sandboxes_config=profile):
        monkeypatch.setattr(sys, "stdout", None)
        targets.say("to nobody")
        closed = io.StringIO()
        closed.close()
        monkeypatch.setattr(sys, "stdout", closed)
        with pytest.raises(ValueError, match="closed file"):
            targets.say("to a closed one")
        with redirect_stdout(io.StringIO()) as out:
            targets.say("to", " an", " open one")
        assert out.getvalue() == "to an open one"


def test_output_after_the_end_of_its_call_is_the_application_s(
    profile: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        sandboxes(sandboxes_config=profile, python_api="ALLOW:threads", expose_rw=str(tmp_path)),
        redirect_stdout(io.StringIO()) as out,
    ):
        targets.say_later("late", str(tmp_path / "go"), str(tmp_path / "said"))
        (tmp_path / "go").touch()
        while not (tmp_path / "said").exists():
            time.sleep(0.001)
    assert (capfd.readouterr().out, out.getvalue()) == ("late\n", "")
