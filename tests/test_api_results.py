"""Results end to end, in each mode: what passes, what is refused and where, and what runs nothing in the application."""

from __future__ import annotations

import asyncio
import datetime
import os
import pickle
import re
import sys
import zoneinfo
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import result_targets as targets

from pysandboxes import RestrictedUnpicklingError, sandboxes

MODES = ("primitives", "data-only", "objects", "objects unguarded")
GUARD_OFF = "remote-result-guard=false"


@pytest.fixture(scope="module")
def mode(request: pytest.FixtureRequest, profile: Path) -> Iterator[str]:
    """A sandbox of that mode."""
    name, _, unguarded = request.param.partition(" ")
    with sandboxes(sandboxes_config=profile, remote_result_mode=name, remote_result_guard=not unguarded):
        yield request.param


def in_modes(*modes: str) -> Any:
    return pytest.mark.parametrize("mode", modes, indirect=True)


def text(value: str) -> bytes:
    return b"\x8c" + bytes([len(value.encode())]) + value.encode()


def named(module: str, name: str) -> bytes:
    return text(module) + text(name) + b"\x93"


def called(module: str, name: str, *arguments: str) -> bytes:
    return named(module, name) + b"(" + b"".join(map(text, arguments)) + b"tR"


def stream(body: bytes) -> Any:
    """What comes of ``body`` as the pickle of a result."""
    return targets.stream(b"\x80\x05" + body + b".")


def same(value: Any, other: Any) -> bool:
    """Whether two values are equal down to their types; the classes of this test compare by their dump."""
    return type(value) is type(other) and pickle.dumps(value, 5) == pickle.dumps(other, 5)


@pytest.mark.smoke
@in_modes("objects")
@pytest.mark.parametrize("name", targets.VALUES)
def test_objects_come_back_as_they_went(mode: str, name: str) -> None:
    value = targets.value(name)
    assert same(value, targets.VALUES[name]), value


@in_modes("objects")
def test_objects_come_from_coroutines_and_generators(mode: str) -> None:
    assert same(asyncio.run(targets.value_async("user")), targets.VALUES["user"])
    assert list(targets.values(["named tuple", "enum"])) == [targets.VALUES["named tuple"], targets.VALUES["enum"]]
    assert stream(pickle.dumps(targets.VALUES["enum"], 5)[2:-1])[0] is targets.Colour.RED


def test_a_class_of_the_main_file(program: Any) -> None:
    source = """
        import os
        from pysandboxes import sandbox, sandboxes

        class Thing:
            def __init__(self, value):
                self.value = value

        @sandbox
        def make():
            return [Thing(5)]

        if __name__ == "__main__":
            with sandboxes(sandboxes_config=os.environ["PROFILE"], remote_result_mode="objects"):
                (thing,) = make()
                print(type(thing) is Thing, thing.value)
    """
    done = program(source)
    assert done.communicate(timeout=60)[0] == "True 5\n"


@pytest.mark.parametrize("state", ["changed", "changed, and refused for something else"])
@in_modes("objects")
def test_members_of_enumerations_are_the_application_s(mode: str, state: str) -> None:
    red = named("result_targets", "Colour") + b"K\x01\x85R"
    body = red + b"}" + text("_value_") + b"K\x02sb"
    if state != "changed":
        body = b"]" + body + b"a" + named("result_targets", "Nothing") + b"\x86"
    with pytest.raises(RestrictedUnpicklingError, match=r"changes Colour\.RED"):
        stream(body)
    assert targets.Colour.RED.value == 1
    assert targets.Colour(1) is targets.Colour.RED


@in_modes("objects")
def test_an_object_may_refer_to_itself(mode: str) -> None:
    node = targets.cycle()
    assert type(node) is targets.Node
    assert node.me is node


@in_modes("data-only", "primitives")
@pytest.mark.parametrize("name", ["user", "enum", "slots", "class", "namespace"])
def test_no_other_mode_lets_an_object_through(mode: str, name: str) -> None:
    with pytest.raises(RestrictedUnpicklingError, match=r"is refused: result") as caught:
        targets.value(name)
    assert str(caught.value).endswith("remote-result-mode=objects" if mode == "data-only" else "remote-result-mode=data-only")


@in_modes("primitives", "data-only", "objects")
def test_data_in_each_mode(mode: str) -> None:
    plain = {"a": [1, 2.5, "x", b"y", (True, None), {1}, frozenset({2}), 1j]}
    assert stream(pickle.dumps(plain, 5)[2:-1]) == plain
    values = [datetime.date(2024, 1, 2), zoneinfo.ZoneInfo("UTC"), targets.VALUES["values"]]
    body = pickle.dumps(values, 5)[2:-1]
    if mode == "primitives":
        with pytest.raises(RestrictedUnpicklingError, match=r"result\[0\] is datetime\.date[\s\S]*result-mode=data-only$"):
            stream(body)
    else:
        assert same(stream(body), values)


# Where the stream finds what others define: an alias is refused as what it stands for.
GADGETS = {
    "posix.system": named("posix", "system"),
    "os.system": named("os", "system"),
    "an alias of a function": named("result_targets", "run"),
    "an alias of a class": named("result_targets", "Starter"),
    "a class that derives from one": named("result_targets", "Starts"),
    "a metaclass": named("result_targets", "Meta"),
    "a function of the application": named("result_targets", "touch"),
    "a method": named("result_targets", "Outer.method"),
    "a class that opens files": named("logging", "FileHandler"),
    "eval": named("builtins", "eval"),
    "a call of getattr": named("builtins", "getattr") + named("result_targets", "User") + text("name") + b"\x86R",
    "bytes of any length": named("builtins", "bytes") + b"J\xff\xff\xff\x7f\x85R",
    "a Fraction of a text": called("fractions", "Fraction", "1e99999999"),
}


@in_modes("objects")
@pytest.mark.parametrize("gadget", GADGETS)
def test_gadgets_are_refused_by_where_they_are_defined(mode: str, gadget: str) -> None:
    import logging

    assert logging.FileHandler
    # {"rows": [None, User(owner=gadget)]}
    user = named("result_targets", "User") + b")\x81}" + text("owner") + GADGETS[gadget] + b"sb"
    with pytest.raises(RestrictedUnpicklingError, match=re.escape("result['rows'][1].owner is ")) as caught:
        stream(b"}" + text("rows") + b"](N" + user + b"es")
    assert str(caught.value).endswith(GUARD_OFF)
    assert targets.MADE == []


@in_modes("objects")
def test_an_alias_is_named_with_what_it_stands_for(mode: str) -> None:
    with pytest.raises(RestrictedUnpicklingError, match=r"result_targets\.run \(posix\.system\), which runs programs"):
        stream(called("result_targets", "run", "id"))


@in_modes("objects unguarded")
def test_without_the_guard_a_gadget_runs(mode: str, tmp_path: Path) -> None:
    """The negative control: these streams do what they look like."""
    made = tmp_path / "made"
    assert stream(called("result_targets", "run", f"touch {made}")) == 0
    assert made.exists()
    assert stream(called("result_targets", "touch", "x")) == "x"
    assert targets.MADE == ["x"]
    targets.MADE.clear()


UNFOUND = {
    "a module that is not loaded": ("this", "s"),
    "a dotted name through a module": ("result_targets", "codes.JSONDecodeError"),
    "no such name": ("result_targets", "Nothing"),
    "a name of a name": ("result_targets", "VALUES.keys"),
    "an empty part": ("result_targets", "Outer..Inner"),
    "hostile text": ("result_targets\x1b[31m", "x\n"),
}


@in_modes("objects", "objects unguarded")
@pytest.mark.parametrize("where", UNFOUND)
def test_nothing_is_imported_and_no_module_walked_through(mode: str, where: str) -> None:
    module, name = UNFOUND[where]
    with pytest.raises(RestrictedUnpicklingError, match=r"result\[0\] is the class or function .*not loaded") as caught:
        stream(b"]" + named(module, name) + b"a")
    assert "this" not in sys.modules
    assert "\x1b" not in str(caught.value)


@in_modes("objects unguarded")
def test_the_guard_is_all_that_its_switch_switches_off(mode: str) -> None:
    for body in (b"cos\nsystem\n", b"(ios\nsystem\n", b"Pid\n", b"\x82\x01", b"N2\x86"):
        with pytest.raises(RestrictedUnpicklingError, match="not a valid pickle"):
            stream(body)


@in_modes("objects")
def test_a_module_s_own_look_up_is_not_asked(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(targets, "__getattr__", asked.append, raising=False)
    with pytest.raises(RestrictedUnpicklingError, match="not loaded"):
        stream(named("result_targets", "Lazy"))
    assert asked == []


@in_modes("objects")
def test_a_class_that_cannot_be_rebuilt(mode: str) -> None:
    with pytest.raises(RestrictedUnpicklingError, match=r"cannot be rebuilt: KeyError: 'state'"):
        stream(named("result_targets", "Fails") + b")\x81}" + text("a") + b"Nsb")
    with pytest.raises(RestrictedUnpicklingError, match=r"cannot be rebuilt: TypeError"):
        stream(called("result_targets", "Point", "1", "2", "3"))


@in_modes("data-only")
def test_a_time_zone_that_this_machine_does_not_have(mode: str) -> None:
    zone = named("builtins", "getattr") + named("zoneinfo", "ZoneInfo") + text("_unpickle") + b"\x86R"
    with pytest.raises(RestrictedUnpicklingError, match=r"cannot be rebuilt: ZoneInfoNotFoundError"):
        stream(zone + text("Nowhere/At_All") + b"K\x01\x86R")


@in_modes("objects")
def test_a_refusal_leaves_the_sandbox_usable(mode: str) -> None:
    with pytest.raises(RestrictedUnpicklingError):
        stream(named("posix", "system"))
    assert targets.value("named tuple") == targets.Point(1, 2)


NAMES = [
    *(("builtins", name) for name in ("eval", "getattr", "__import__", "object")),
    *(
        ("result_targets", name)
        for name in ("run", "User", "Outer.Inner", "touch", "Meta", "Starts", "Bag", "Colour", "User.__init__")
    ),
    ("result_targets", "codes.JSONDecodeError"),
    ("collections", "deque"),
    ("logging", "FileHandler"),
    ("os", "system"),
    ("posix", "system"),
    ("subprocess", "Popen"),
    ("this", "s"),
    ("types", "SimpleNamespace"),
]
PIECES = [bytes([code]) for code in b"().Rbsuaet01]}NcioPQ\x81\x85\x86\x87\x8f\x90\x91\x92\x93\x94\x97\x98"]
PIECES += [b"K\x01", b"h\x00", b"h\x01", b"q\x00", b"\x82\x01"]
#: Events of the audit hook that would mean that a result ran something here.
ACTIVE = (
    "os.",
    "subprocess.",
    "socket.",
    "import",
    "exec",
    "compile",
    "open",
    "shutil.",
    "ctypes.",
    "pty.",
    "sqlite3.",
    "code.",
)


def mutated(random: Random, body: bytes) -> bytes:
    out = bytearray(body)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(out) + 1)
        match random.randrange(5):
            case 0:
                out[at:at] = named(*random.choice(NAMES))
            case 1:
                out[at:at] = random.choice(PIECES)
            case 2:
                del out[at : at + 1]
            case 3:
                for module, name in random.sample(NAMES, 2):
                    out[:] = out.replace(text(module), text(random.choice(NAMES)[0])).replace(
                        text(name), text(random.choice(NAMES)[1])
                    )
            case _:
                out[at : at + 1] = bytes([random.randrange(256)])
    return bytes(out)


@in_modes("objects")
def test_mutated_streams_run_nothing_here(mode: str) -> None:
    """Neither a gadget nor an import, whatever the stream; PSB_FUZZ_ROUNDS makes it a fuzzer."""
    seen: list[tuple[str, Any]] = []
    watching = False

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if watching and event.startswith(ACTIVE):
            seen.append((event, arguments))

    sys.addaudithook(hook)
    random = Random(5)
    bodies = [pickle.dumps(value, 5)[2:-1] for value in targets.VALUES.values()]
    bodies = [body[9:] if body[:1] == b"\x95" else body for body in bodies] + list(GADGETS.values())
    with pytest.raises(RestrictedUnpicklingError):
        stream(named("result_targets", "Nothing"))  # what a refusal imports
    accepted = 0
    for _ in range(int(os.environ.get("PSB_FUZZ_ROUNDS", "3000"))):
        body = mutated(random, random.choice(bodies))
        watching = True
        try:
            stream(body)
            accepted += 1
        except RestrictedUnpicklingError:
            pass
        finally:
            watching = False
        assert not seen, (body, seen)
    assert accepted > 50
    assert targets.MADE == []
    assert targets.Colour(1) is targets.Colour.RED
