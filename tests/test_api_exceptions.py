"""The exception classes, and the denials that stand behind an exception."""

from __future__ import annotations

import pickle
import subprocess
import sys
import urllib.error
from typing import Any

import pytest

import pysandboxes
from pysandboxes import Denial, SandBoxError, denials, sandbox_denials

# Class, the builtin it also is (api.md).
CLASSES: list[tuple[str, type[BaseException]]] = [
    ("RuleFileNotFoundError", FileNotFoundError),
    ("RulePermissionError", PermissionError),
    ("RuleSocketConnectionRefusedError", ConnectionRefusedError),
    ("RuleModuleNotFoundError", ModuleNotFoundError),
    ("RuleApiPermissionError", PermissionError),
    ("RuleEvalPermissionError", PermissionError),
    ("EvalSyntaxRejected", SyntaxError),
    ("RestrictedUnpicklingError", pickle.UnpicklingError),
    ("ConfigSyntaxError", ValueError),
    ("SandBoxProtocolError", ConnectionError),
    ("SandBoxBaseExceptionError", RuntimeError),
    ("SandBoxTimeoutError", TimeoutError),
]


@pytest.mark.parametrize(("name", "builtin"), CLASSES)
def test_each_class_is_the_builtin_and_a_sandbox_error(name: str, builtin: type[BaseException]) -> None:
    cls = getattr(pysandboxes, name)
    assert issubclass(cls, builtin)
    assert issubclass(cls, SandBoxError)
    assert issubclass(cls, RuntimeError)
    assert (cls.__module__, cls.__qualname__) == ("pysandboxes", name)
    assert getattr(pysandboxes, name) is cls
    made = cls(2, "why", "what") if issubclass(cls, OSError) else cls("why")
    assert "why" in str(made)
    if issubclass(cls, OSError):
        assert (made.errno, made.filename) == (2, "what")


def test_eval_interrupted_is_a_base_exception_only() -> None:
    assert pysandboxes.EvalInterrupted.__bases__ == (BaseException,)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = pysandboxes.nothing  # type: ignore[attr-defined]
    assert set(pysandboxes.__all__) <= set(dir(pysandboxes))
    for name in pysandboxes.__all__:
        assert getattr(pysandboxes, name) is not None


def record(subject: str, **fields: Any) -> dict[str, Any]:
    return {"layer": "python", "family": "file", "subject": subject, "message": f"no {subject}", "add": ["x"], **fields}


def refusal(subject: str) -> SandBoxError:
    exc = SandBoxError(subject)
    exc.denials = [record(subject)]
    return exc


def test_no_denials_behind_an_ordinary_exception() -> None:
    assert denials(ValueError("x")) == []
    assert sandbox_denials(KeyError()) == []


def test_denials_are_found_wherever_they_hang() -> None:
    outer = ValueError("outer")
    outer.__cause__ = refusal("cause")
    outer.__context__ = ExceptionGroup("group", [refusal("first"), ExceptionGroup("inner", [refusal("second")])])
    outer.__cause__.__context__ = urllib.error.URLError(refusal("reason"))
    outer.args = ("text", refusal("argument"))
    assert set(sandbox_denials(outer)) == {"no cause", "no first", "no second", "no reason", "no argument"}


def test_a_denial_is_told_once_and_cycles_end() -> None:
    first, second = refusal("same"), refusal("same")
    first.__context__, second.__context__ = second, first
    first.args = (first,)
    assert sandbox_denials(first) == ["no same"]


def test_what_an_exception_claims_is_not_trusted() -> None:
    exc = SandBoxError("x")
    exc.denials = ["text", None, {"message": 1, "add": 5, "rule": []}]  # type: ignore[list-item]
    assert denials(exc) == [Denial(message="", add=())]
    exc.denials = 5  # type: ignore[assignment]
    assert denials(exc) == []


def test_a_denial_is_data() -> None:
    (denial,) = denials(refusal("s"))
    assert denial == Denial(family="file", subject="s", message="no s", add=("x",))
    assert hash(denial) == hash(Denial(family="file", subject="s", message="no s", add=("x",)))
    assert denial != Denial()
    assert eval(repr(denial), {"Denial": Denial}) == denial


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"family": "file", "message": "reading /x is refused: …"}, "reading S,"),
        ({"family": "file", "message": "writing /x is refused: …"}, "writing S,"),
        ({"family": "net", "op": "connect"}, "connecting to S,"),
        ({"family": "net", "op": "resolve"}, "looking up S,"),
        ({"family": "import"}, "importing S,"),
        ({"family": "call"}, "calling S,"),
        ({"family": "eval"}, "running program text by S,"),
        ({"family": "env"}, "reading the environment variable S,"),
        ({}, "using S,"),
    ],
)
def test_the_text_for_a_model_says_what_to_do(fields: dict[str, Any], what: str) -> None:
    line, profile = "expose-ro=/x", "/home/user/.py-sandboxes"
    text = Denial(
        **{"message": f"no rule in {profile}. Add:\n    {line}", "subject": "S", "add": (line,), **fields}
    ).text_for_model
    assert what in text
    assert "trying again will not change that" in text
    assert text.endswith("ask the person who runs this program to allow it.")
    assert line not in text and profile not in text


def test_importing_the_package_loads_next_to_nothing() -> None:
    script = "import sys; before = set(sys.modules); import pysandboxes; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["pysandboxes"]


def test_using_its_names_loads_no_heavy_module() -> None:
    script = (
        "import sys; from pysandboxes import sandbox, sandboxes, run, SandBoxError\n"
        "@sandbox\ndef f(): pass\n"
        "heavy = {'inspect', 'asyncio', 'logging', 'json', 'pickle', 'typing', 'traceback', 're', 'enum'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", "import sys; sys.path[:0] = " + repr(sys.path) + "\n" + script],
        capture_output=True,
        text=True,
        check=True,
    )
    bare = subprocess.run(
        [sys.executable, "-I", "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) <= set(bare.stdout.split())
