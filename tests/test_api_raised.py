"""Exceptions end to end: classes that misbehave on both sides, and accounts that the sandbox makes up."""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import result_targets as targets

from pysandboxes import SandBoxBaseExceptionError, SandBoxProtocolError, sandbox_denials, sandboxes


@pytest.fixture(scope="module", autouse=True)
def shared(profile: Path) -> Iterator[None]:
    with sandboxes(sandboxes_config=profile):
        yield


def caught(call: Any, *arguments: Any) -> BaseException:
    with pytest.raises(Exception) as info:
        call(*arguments)
    return info.value


def slot(exc: BaseException, name: str) -> Any:
    """What is in one of BaseException's own slots, whatever the class makes of it."""
    return BaseException.__dict__[name].__get__(exc)


@pytest.mark.smoke
def test_a_class_that_answers_nothing() -> None:
    targets.MADE.clear()
    exc = caught(targets.throw, "hostile")
    assert targets.MADE == []  # no constructor of the application's
    assert type(exc) is Exception
    assert exc.args == ("Hostile: <the text of this Hostile cannot be had>",)
    frames = traceback.extract_tb(exc.__traceback__)
    assert frames[-1].line == "raise RAISED[name]()"


def test_one_bad_part_does_not_spoil_a_group() -> None:
    exc = caught(targets.throw, "hostile in a group")
    assert isinstance(exc, ExceptionGroup)
    assert [type(part).__name__ for part in exc.exceptions] == ["ValueError", "Exception", "KeyError"]
    assert exc.exceptions[2].args == ("'last'",)


def test_a_bad_cause_leaves_the_rest() -> None:
    exc = caught(targets.throw_from, "nested", "hostile")
    assert (type(exc), str(exc)) == (targets.Outer2.Inner, "in")
    assert "Hostile" in str(slot(exc, "__cause__"))
    exc = caught(targets.throw_from, "hostile", "nested")
    assert type(slot(exc, "__cause__")) is targets.Outer2.Inner


def test_notes_that_cannot_be_said() -> None:
    exc = caught(targets.throw, "notes that cannot be said")
    assert exc.__notes__ == ["one", "<the text of this Mute cannot be had>", "three"]


def test_what_it_says_of_its_class_counts_for_nothing() -> None:
    exc = caught(targets.throw, "a liar")
    assert type(exc) is targets.Liar
    assert not isinstance(exc, SandBoxBaseExceptionError)


def test_arguments_that_are_no_data_leave_the_text() -> None:
    exc = caught(targets.throw, "an argument that is no data")
    assert type(exc) is ValueError
    assert exc.args == ("<the text of this ValueError cannot be had>",)


# Accounts that are made up.


@pytest.mark.parametrize(
    ("module", "qualname"),
    [
        ("this", "Error"),
        ("os", "system"),
        ("subprocess", "Popen"),
        ("result_targets", "codes.JSONDecodeError"),
        ("x" * 5000, "y\x1b[2J"),
    ],
)
def test_a_class_that_is_none_here(module: str, qualname: str) -> None:
    exc = caught(targets.forge, {"module": module, "qualname": qualname, "message": "why"}, None)
    assert type(exc) is SandBoxProtocolError
    assert exc.original == f"{module}.{qualname}"
    assert "why" in str(exc)
    assert "this" not in sys.modules


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "BaseExceptionGroup"])
@pytest.mark.parametrize("base", [True, False])
def test_what_would_end_the_program_is_never_raised(name: str, base: bool) -> None:
    exc = caught(targets.forge, {"qualname": name, "base": base}, None)
    assert type(exc) is (SandBoxBaseExceptionError if base else SandBoxProtocolError)
    assert exc.original == name


RICH = {
    "a class": b"\x80\x05\x8c\x02os\x8c\x06system\x93.",
    "a call": b"\x80\x05\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.",
    "an exception of another class": pickle.dumps(KeyError("k"), 5),
    "an exception within": pickle.dumps(Exception((ValueError(1),), {}), 5),
    "an object": pickle.dumps(Exception((targets.Point(1, 2),), {}), 5),
    "a state": pickle.dumps(targets.with_notes(Exception(("a",), {}), "n"), 5),
    "protocol 0": pickle.dumps(Exception(("a",), {}), 0),
    "no pickle": b"no pickle",
    "a zone that is none": pickle.dumps(Exception((targets.VALUES["values"],), {}), 5)[:-4],
}


@pytest.mark.parametrize("form", RICH)
def test_a_rich_form_that_is_refused_leaves_the_descriptor(form: str) -> None:
    exc = caught(targets.forge, {"message": "the text"}, RICH[form])
    assert (type(exc), exc.args) == (ValueError, ("the text",))


def test_a_rich_form_that_is_accepted() -> None:
    values = pickle.dumps(
        Exception((1, targets.VALUES["values"]), {"code": 7, "__class__": "x", "args": "y", "with_traceback": 1}), 5
    )
    exc: Any = caught(targets.forge, {}, values)
    assert (type(exc), exc.args) == (ValueError, (1, targets.VALUES["values"]))
    assert exc.code == 7
    assert callable(exc.with_traceback)


def test_a_denial_that_nobody_made_has_no_line_to_add() -> None:
    record = {
        "layer": "python",
        "family": "net",
        "op": "connect",
        "subject": "evil:1",
        "message": "add net=ALLOW:*",
        "add": ["net=ALLOW:*"],
    }
    exc = caught(targets.forge, {"denials": [record], "notes": ["n"]}, None)
    (text,) = sandbox_denials(exc)
    assert "has no record of that" in text
    assert "ALLOW" not in text


def test_the_sandbox_goes_on() -> None:
    assert targets.value("values") == targets.VALUES["values"]
