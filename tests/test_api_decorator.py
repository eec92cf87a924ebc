"""@sandbox: what it can be put on, and what it says where it cannot."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from typing import Any

import api_targets
import pytest

import pysandboxes
from pysandboxes import SandBoxError, sandbox


def test_the_function_keeps_its_face() -> None:
    add = api_targets.add
    assert (add.__name__, add.__qualname__, add.__module__) == ("add", "add", "api_targets")
    assert add.__doc__ == "The sum, times over."
    assert str(inspect.signature(add)) == "(left: 'int', right: 'int' = 1, *, times: 'int' = 1) -> 'int'"
    assert add.__wrapped__(2, times=3) == 9  # type: ignore[attr-defined]


def test_each_kind_of_function_stays_its_kind() -> None:
    assert inspect.iscoroutinefunction(api_targets.aadd)
    assert not inspect.iscoroutinefunction(api_targets.add)
    assert isinstance(api_targets.Tools.__dict__["double"], staticmethod)
    assert isinstance(api_targets.Tools.__dict__["triple"], staticmethod)
    assert isinstance(api_targets.Tools.__dict__["named"], classmethod)
    assert isinstance(api_targets.Tools.__dict__["anamed"], classmethod)
    assert inspect.isgenerator(api_targets.count(1))
    with pytest.raises(SandBoxError, match="no sandbox is running"):
        api_targets.acount(1)


def test_without_a_sandbox_the_error_says_how_to_start_one() -> None:
    for call in (lambda: api_targets.add(1), lambda: list(api_targets.count(1)), lambda: asyncio.run(api_targets.aadd(1, 2))):
        with pytest.raises(SandBoxError, match=r"with sandboxes\(\):.*pysandboxes\.run.*python-sb"):
            call()


def test_a_lambda_is_refused() -> None:
    with pytest.raises(SandBoxError, match=r"lambda.*top level of a module"):
        sandbox(lambda: 1)


def test_a_function_inside_a_function_is_refused() -> None:
    def local() -> None: ...

    with pytest.raises(SandBoxError, match=r"local, a function inside a function.*top level"):
        sandbox(local)


@pytest.mark.parametrize(
    "thing", [print, functools.partial(print), object(), int], ids=["builtin", "partial", "object", "class"]
)
def test_what_is_no_python_function_is_refused(thing: Callable[..., Any]) -> None:
    with pytest.raises(SandBoxError, match=r"module-level function of its own"):
        sandbox(thing)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_is_above_zero(timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        sandbox(timeout=timeout)


@pytest.mark.parametrize("timeout", ["x", "5", True, [], b""], ids=repr)
def test_a_timeout_is_a_number(timeout: Any) -> None:
    with pytest.raises(TypeError, match=r"@sandbox\(timeout=.*\): a timeout is a number of seconds above zero"):
        sandbox(timeout=timeout)


class Tool:
    """What a framework's decorator makes of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function


@Tool
@sandbox
def hidden() -> None: ...


@functools.lru_cache
@sandbox
def cached() -> None: ...


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


@logged
@sandbox
def wrapped() -> None: ...


@sandbox
def renamed() -> None: ...


original_renamed = renamed
renamed = None  # type: ignore[assignment]


@sandbox
def deleted() -> None: ...


original_deleted = deleted
del deleted


class Fake:
    """A sandbox that is open and answers every call with its name."""

    open = True
    direct = False
    fileless = False

    def call(self, target: Any, args: Any, kwargs: Any) -> str:
        return str(target.name)


@pytest.fixture
def fake_sandbox(monkeypatch: pytest.MonkeyPatch) -> Fake:
    from pysandboxes import _context

    fake = Fake()
    monkeypatch.setattr(_context, "opened", [fake])
    return fake


@pytest.mark.usefixtures("fake_sandbox")
def test_a_decorator_that_hides_the_function_is_found() -> None:
    with pytest.raises(SandBoxError, match=r"hidden does not mean.*Tool.*say _hidden\).*wrapper that calls it"):
        hidden.function()


@pytest.mark.usefixtures("fake_sandbox")
def test_decorators_that_say_what_they_wrap_are_no_hindrance() -> None:
    assert wrapped() == f"{__name__}.wrapped"
    assert cached() == f"{__name__}.cached"
    assert api_targets.Tools.double(1) == "api_targets.Tools.double"
    assert api_targets.Tools.triple(1) == "api_targets.Tools.triple"


@pytest.mark.usefixtures("fake_sandbox")
def test_a_name_that_means_something_else_by_now_is_found() -> None:
    with pytest.raises(SandBoxError, match="has no 'renamed'"):
        original_renamed()
    with pytest.raises(SandBoxError, match="has no 'deleted'"):
        original_deleted()


@pytest.mark.usefixtures("fake_sandbox")
def test_a_module_that_cannot_be_imported_is_found() -> None:
    space: dict[str, Any] = {"__name__": "made_up", "sandbox": sandbox}
    exec("@sandbox\ndef f(): pass", space)
    with pytest.raises(SandBoxError, match=r"made_up\.f cannot be imported.*no module made_up"):
        space["f"]()


def test_in_a_sandboxed_interpreter_it_is_the_function_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from pysandboxes import _context, _registry

    monkeypatch.setattr(_context, "inside", lambda: True)
    monkeypatch.setattr(_registry, "_functions", {})

    def local(value: int) -> int:
        return value

    assert sandbox(local) is local
    assert sandbox(timeout=1)(local) is local
    assert _registry.registered(__name__, local.__qualname__) is local
    assert _registry.registered(__name__, "other") is None


def test_os_sandbox_none_calls_directly(fake_sandbox: Fake) -> None:
    fake_sandbox.direct = True
    assert api_targets.where()[0] is True
    assert pysandboxes.is_in_sandbox() is False
    assert list(api_targets.count(2)) == [0, 1]
    assert asyncio.run(api_targets.aadd(1, 2)) == 3

    generator = api_targets.count(9)
    assert (next(generator), generator.send("got"), generator.throw(KeyError())) == (0, 1, -1)
    for inside in api_targets.where_generated():
        assert inside
        assert not pysandboxes.is_in_sandbox()

    async def collect() -> list[int]:
        async for inside in api_targets.where_generated_async():
            assert inside
            assert not pysandboxes.is_in_sandbox()
        return [number async for number in api_targets.acount(2)]

    assert asyncio.run(collect()) == [0, 1]
