"""Exceptions of the sandbox, made again in the application: what an honest child says, and what a hostile one may."""

from __future__ import annotations

import builtins
import datetime
import decimal
import io
import linecache
import pickle
import sys
import traceback
import uuid
import zoneinfo
from pathlib import Path
from typing import Any

import api_targets
import pytest

import pysandboxes
from pysandboxes import SandBoxBaseExceptionError, SandBoxProtocolError
from pysandboxes._describe import Describer, SourceReader, is_data, rich_form
from pysandboxes._rebuild import MAX_FILES, rebuild


def raised(exc: BaseException) -> BaseException:
    try:
        raise exc
    except BaseException as caught:
        return caught


def across(exc: BaseException) -> BaseException:
    return rebuild(Describer(SourceReader()).describe(exc), rich_form(exc))


def described(**fields: Any) -> dict[str, Any]:
    return {"module": "builtins", "qualname": "ValueError", "message": "m", "base": False, "frames": [], **fields}


@pytest.mark.parametrize(
    "exc",
    [
        ValueError("plain"),
        ValueError(),
        ValueError(1, [2, {"three": (4.0, b"5")}]),
        KeyError("key"),
        OSError(2, "No such file", "/a", None, "/b"),
        FileNotFoundError(2, "No such file or directory", "/nowhere"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        SyntaxError("bad", ("f.py", 1, 2, "x y", 1, 3)),
        ImportError("no", name="n", path="p"),
        StopIteration(5),
        ValueError(datetime.date(2024, 1, 2), [decimal.Decimal("1.5"), uuid.UUID(int=3), Path("/a")]),
        FileNotFoundError(2, "No such file or directory", Path("/nowhere")),
        api_targets.OwnOSError(13, "denied", "/x"),
        pysandboxes.RuleFileNotFoundError(2, "No such file or directory", "/etc/passwd"),
        pysandboxes.ConfigSyntaxError("file:1: bad"),
    ],
    ids=repr,
)
def test_an_exception_is_the_same_on_the_other_side(exc: BaseException) -> None:
    made = across(raised(exc))
    assert type(made) is type(exc)
    assert made.args == exc.args
    assert str(made) == str(exc)
    for name in ("errno", "filename", "filename2", "name", "path", "value", "lineno", "object"):
        assert getattr(made, name, None) == getattr(exc, name, None), name


FAR = 1 << 62


@pytest.mark.parametrize("attributes", [{}, {"start": -FAR, "end": 1 - FAR}, {"object": None}, {"object": "x", "encoding": 5}])
@pytest.mark.parametrize(
    ("kind", "args"),
    [
        (UnicodeDecodeError, ("utf-8", b"x", -FAR, 1 - FAR, "bad")),
        (UnicodeDecodeError, ("utf-8", b"x", FAR - 1, FAR, "bad")),
        (UnicodeDecodeError, ("utf-8", b"", 0, 0, "bad")),
        (UnicodeDecodeError, ("utf-8", b"xyz", 2, 1, "bad")),
        (UnicodeEncodeError, ("utf-8", "x", -FAR, 1 - FAR, "bad")),
        (UnicodeEncodeError, ("utf-8", "", FAR - 1, FAR, "bad")),
        (UnicodeTranslateError, ("x", -FAR, 1 - FAR, "bad")),
    ],
)
def test_a_position_outside_of_the_text_reads_no_foreign_memory(kind: Any, args: Any, attributes: dict[str, Any]) -> None:
    rich = pickle.dumps(Exception(args, attributes), 5)
    made: Any = rebuild(described(qualname=kind.__name__), rich)
    assert type(made) is kind
    assert 0 <= made.start <= len(made.object)
    assert made.start < made.end <= max(len(made.object), 1)
    assert str(made)  # which ended the process


def test_the_constructor_of_a_program_s_class_does_not_run() -> None:
    exc = raised(api_targets.CustomError("why", 7))
    api_targets.CONSTRUCTED.clear()
    made = across(exc)
    assert type(made) is api_targets.CustomError
    assert (str(made), made.code) == ("why (code 7)", 7)
    assert api_targets.CONSTRUCTED == []


def test_a_class_that_cannot_word_itself_gives_its_text_by_the_builtin_one() -> None:
    made = rebuild(described(module="api_targets", qualname="CustomError", message="why (code 7)"), None)
    assert type(made) is Exception
    assert str(made) == "CustomError: why (code 7)"


@pytest.mark.parametrize("exc", [api_targets.UnspeakableError("x"), api_targets.UnreducibleError("y")], ids=repr)
def test_an_exception_that_misbehaves_is_described_all_the_same(exc: Exception) -> None:
    made = across(raised(exc))
    assert isinstance(made, (type(exc), Exception))
    assert type(exc).__qualname__ in repr(made) + str(made)


def test_causes_contexts_notes_and_groups() -> None:
    try:
        try:
            int("x")
        except ValueError as first:
            first.add_note("a note")
            raise KeyError("k") from first
    except KeyError as exc:
        made = across(exc)
    assert isinstance(made.__cause__, ValueError)
    assert made.__cause__.__notes__ == ["a note"]
    assert made.__suppress_context__
    group = across(raised(ExceptionGroup("g", [ValueError(1), ExceptionGroup("h", [OSError(5, "io")])])))
    assert isinstance(group, ExceptionGroup)
    assert group.message == "g"
    assert [type(part) for part in group.exceptions] == [ValueError, ExceptionGroup]
    assert str(group) == "g (2 sub-exceptions)"


def test_a_cycle_of_causes_ends() -> None:
    first, second = ValueError("1"), ValueError("2")
    first.__cause__, second.__cause__ = second, first
    made = across(first)
    assert isinstance(made.__cause__, ValueError)
    assert made.__cause__.__cause__ is None


def test_a_long_traceback_is_shortened() -> None:
    with pytest.raises(RecursionError) as caught:
        api_targets.fail_deep()
    assert len(Describer(SourceReader()).describe(caught.value)["frames"]) == 100


def test_frames_show_the_line_and_where_it_is() -> None:
    def inner() -> None:
        raise ValueError("here")  # the line that is shown

    with pytest.raises(ValueError, match="here") as caught:
        inner()
    text = "".join(traceback.format_exception(across(caught.value)))
    assert f'File "<sandbox:{__file__}>"' in text
    assert 'raise ValueError("here")  # the line that is shown' in text
    assert "in inner" in text
    assert "^^^" not in text


def test_no_file_that_a_frame_names_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [["/etc/passwd", 1, "f", ""], ["relative.py", 2, "g", "code()"], ["/etc/passwd", 3, "f\n\x1b[2J", "x\x1b[2Jy"]]
    made = rebuild(described(frames=frames), None)

    def refuse(path: Any, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError(f"opened {path}")

    monkeypatch.setattr(builtins, "open", refuse)
    monkeypatch.setattr(io, "open", refuse)
    monkeypatch.setattr("tokenize.open", refuse)
    text = "".join(traceback.format_exception(made))
    assert '"<sandbox:/etc/passwd>", line 1' in text
    assert "code()" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "frames",
    [
        "no list",
        [None, 1, "x", {}, []],
        [["f", "1", "g", ""]],
        [["f", 1, "g"]],
        [["f", -5, "g", "x"]],
        [["f", 1 << 70, "g", "x"]],
        [["f", 10**9, "g", "far down"]],
        [["f", 1, "", ""]],
        [["f" * 100_000, 1, "g", "x" * 100_000]],
        [["f", 1, "g", ""]] * 100_000,
    ],
    ids=lambda frames: repr(frames)[:40] if "0x" not in repr(frames)[:40] else type(frames).__name__,
)
def test_frames_that_are_none_do_no_harm(frames: Any) -> None:
    made = rebuild(described(frames=frames), None)
    assert type(made) is ValueError
    "".join(traceback.format_exception(made))


def test_remembered_lines_are_bounded() -> None:
    for number in range(3 * MAX_FILES):
        rebuild(described(frames=[[f"/many/{number}.py", 1, "f", "x"]]), None)
    assert sum(name.startswith("<sandbox:/many/") for name in linecache.cache) <= MAX_FILES


def test_a_rich_form_that_does_not_load_leaves_the_descriptor() -> None:
    rich = pickle.dumps(Exception(("other", zoneinfo.ZoneInfo("UTC")), {}), 5).replace(b"\x8c\x03UTC", b"\x8c\x03UTX")
    made = rebuild(described(message="text"), rich)
    assert (type(made), made.args) == (ValueError, ("text",))


@pytest.mark.parametrize("name", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "BaseException"])
def test_what_is_no_exception_is_named_and_never_raised_as_such(name: str) -> None:
    made = rebuild(described(qualname=name, message="3", base=True), None)
    assert type(made) is SandBoxBaseExceptionError
    assert name in str(made)
    # The child says that it is an ordinary one.
    lied = rebuild(described(qualname=name), None)
    assert isinstance(lied, SandBoxProtocolError)
    assert name in str(lied)


@pytest.mark.parametrize(
    ("module", "qualname"),
    [
        ("not_loaded_here", "Error"),
        ("builtins", "int"),
        ("builtins", "print"),
        ("builtins", "ValueError.__init__"),
        ("os", "system"),
        ("os", "environ"),
        ("sys", "modules"),
        ("", ""),
        ("builtins", ""),
        ("antigravity", "Error"),
    ],
)
def test_a_class_that_is_unknown_or_none_is_a_protocol_error(module: str, qualname: str) -> None:
    made = rebuild(described(module=module, qualname=qualname, message="text"), None)
    assert type(made) is SandBoxProtocolError
    assert made.original == (qualname if module == "builtins" else f"{module}.{qualname}")
    assert "text" in str(made)
    assert "antigravity" not in sys.modules


def test_a_module_s_own_look_up_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(api_targets, "__getattr__", asked.append, raising=False)
    assert isinstance(rebuild(described(module="api_targets", qualname="Missing"), None), SandBoxProtocolError)
    assert asked == []


@pytest.mark.parametrize("wrong", [None, 1, [], {}, b"x"], ids=repr)
@pytest.mark.parametrize("field", ["module", "qualname", "message", "base", "denials", "notes", "cause", "exceptions"])
def test_fields_of_a_wrong_type_do_no_harm(field: str, wrong: Any) -> None:
    assert isinstance(rebuild(described(**{field: wrong}), None), Exception)


def test_causes_without_end_are_cut() -> None:
    deep = described()
    for _ in range(1000):
        deep = described(cause=deep)
    made: BaseException | None = rebuild(deep, None)
    depth = 0
    while made is not None:
        made, depth = made.__cause__, depth + 1
    assert depth < 20


@pytest.mark.parametrize("name", ["__class__", "__dict__", "__traceback__", "__cause__", "denials", "with_traceback"])
def test_attributes_that_python_owns_are_not_set(name: str) -> None:
    made = rebuild(described(), pickle.dumps(Exception(("m",), {name: "evil"})))
    assert made.args == ("m",)
    assert type(made) is ValueError
    if name.startswith("__"):
        assert getattr(made, name) != "evil"


class Guarded(Exception):
    touched: list[object]

    @property
    def state(self) -> object:
        return None

    @state.setter
    def state(self, value: object) -> None:
        type(self).touched.append(value)


def test_no_property_of_a_program_s_class_runs() -> None:
    Guarded.touched = []
    made = rebuild(described(module=__name__, qualname="Guarded"), pickle.dumps(Exception(("m",), {"state": 1, "free": 2})))
    assert type(made) is Guarded
    assert Guarded.touched == []
    assert made.__dict__["free"] == 2


def test_denials_travel_on_any_class() -> None:
    record = {"layer": "python", "family": "net", "subject": "x:1", "message": "DENIED x", "add": ["net=..."]}
    for module, qualname in (("builtins", "ConnectionError"), ("pysandboxes", "RuleSocketConnectionRefusedError")):
        made = rebuild(described(module=module, qualname=qualname, denials=[record, "junk", None]), None)
        assert pysandboxes.sandbox_denials(made) == ["DENIED x"]
        (denial,) = pysandboxes.denials(made)
        assert (denial.family, denial.add) == ("net", ("net=...",))


def test_what_is_plain_data() -> None:
    assert is_data([1, "a", {"k": (None, 2.5, b"x", {3})}])
    cycle: list[Any] = []
    cycle.append(cycle)
    for value in (cycle, object(), [object()], {1: len}, type("Int", (int,), {})(1), list(range(20_000))):
        assert not is_data(value)
