"""What a guarded string may not do: every payload gets out, or floods, as a plain string, and does not under a profile."""

from __future__ import annotations

import functools
import os
import resource
import signal
import sys
import time
from types import BuiltinFunctionType, CodeType, FrameType, ModuleType, TracebackType

import pytest
from eval_payloads import ESCAPES, FLOODS, REFUSED_FLOODS

from pysandboxes import (
    EvalInterrupted,
    EvalSyntaxRejected,
    RuleEvalPermissionError,
    _eval_check,
    _eval_look,
    _evaluated,
    guarded_eval,
)

pytestmark = pytest.mark.smoke

SECRET = "s3cret"
REFUSED = (EvalSyntaxRejected, RuleEvalPermissionError, EvalInterrupted)
#: What is not there is as good as refused.
ABSENT = (NameError, AttributeError)
BUILTINS = (
    "abs, all, any, bool, bytes, callable, dict, enumerate, filter, float, format, frozenset, getattr, hasattr, hash, int, isinstance, iter, "
    "len, list, map, max, min, next, ord, chr, pow, print, range, repr, reversed, round, set, slice, sorted, str, sum, tuple, type, zip, *Error, "
    "BaseException, Exception, StopIteration, GeneratorExit, call, call_each, reduce, staticmethod, classmethod, property, super"
)
#: Of these a class may define what it likes, and what C code calls by them has to be the class's own.
MAGIC = (
    "__init__, __new__, __call__, __enter__, __exit__, __aenter__, __aexit__, __iter__, __next__, __aiter__, __anext__, __await__, __len__, "
    "__getitem__, __setitem__, __contains__, __add__, __mul__, __eq__, __lt__, __hash__, __repr__, __bool__, __slots__, __match_args__, __set_name__, "
    "__init_subclass__, __mro_entries__, __getattr__, __getattribute__, __get__"
)
WIDE = f"""
eval-syntax=arith, compare, conditional, loop, comprehension, assign, func, async, class, exception, context, import, subscript, fstring, yield, match
eval-syntax=Assert, Delete, Global, Nonlocal, Pass
eval-call={BUILTINS}
eval-attribute=*
eval-import=json, functools, string, collections, itertools, statistics
eval-magic={MAGIC}
eval-timeout=1s
eval-max-depth=60
eval-syntax:calculator=arith, compare, conditional
eval-call:calculator=abs, min, max, round, sum
eval-timeout:calculator=1s
"""

pairs = [(kind, name) for kind, rows in ESCAPES.items() for name in rows]


class Host:
    """What the context of a payload has of the host."""

    value = "v"

    def __init__(self) -> None:
        self.more = 1

    def work(self) -> int:
        return self.more

    def fail(self) -> None:
        raise ValueError("failed")

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def func(*_: object) -> str:
    return SECRET


def func2(a: object, b: object) -> str:
    return SECRET


def call(f):
    """A function that is granted."""
    return f()


def call_each(fs):
    """One that looks for functions in what it is given."""
    return [call_each(f) if isinstance(f, (list, tuple)) else f() for f in fs]


class Frame:
    """An index that is a function is called, as pandas does."""

    def __getitem__(self, key: object) -> object:
        return [k(self) if callable(k) else k for k in (key if isinstance(key, tuple) else (key,))]

    def __setitem__(self, key: object, value: object) -> None:
        self.last = self[key]


class Fails(Exception):
    def __init__(self) -> None:
        super().__init__(SECRET)


def context() -> dict[str, object]:
    partial = functools.partial(func, 1)
    granted = {"call": call, "call_each": call_each, "reduce": functools.reduce}
    return {"obj": Host(), "func": func, "func2": func2, "partial": partial, "frame": Frame(), "Fails": Fails, **granted}


def reached(got: object) -> bool:
    """Is this something that a guarded string may never hold?"""
    if isinstance(got, str):
        return SECRET in got or "<class" in got or "<built-in" in got or "<frame" in got or "Host" in got or "'__name__'" in got
    if isinstance(got, (FrameType, CodeType, ModuleType, TracebackType)) or got in (object, func, Host):
        return True
    if isinstance(got, dict):
        return "__builtins__" in got or "SECRET" in got or "eval" in got
    if isinstance(got, BuiltinFunctionType):
        return got.__name__ in ("open", "eval", "exec", "__import__")
    if isinstance(got, (list, tuple)):
        return any(reached(part) for part in got[:1000])
    if callable(got):
        return type(got).__name__ in ("function", "ModuleSpec")
    return type(got).__name__ in ("ModuleSpec", "SourceFileLoader", "AssertionRewritingHook")


@pytest.fixture
def profiles(tmp_path, monkeypatch):
    (tmp_path / ".py-sandboxes").write_text(WIDE)
    monkeypatch.chdir(tmp_path)


def bare(source: str) -> object:
    space = {**globals(), **context()}
    exec(compile(source, "bare", "exec", dont_inherit=True), space)
    return space["got"]


@pytest.mark.parametrize(("kind", "name"), pairs, ids=[f"{k}: {n}" for k, n in pairs])
def test_escape(profiles, kind, name):
    source = ESCAPES[kind][name]
    assert reached(bare(source)), "the payload does nothing bare"
    for profile in (None, "calculator"):
        names = context()
        try:
            guarded_eval(source, profile=profile, names=names)
        except (*REFUSED, *ABSENT):
            assert not reached(names.get("got"))
        else:
            assert not reached(names.get("got")), names["got"]
            pytest.fail("it was not refused")
        assert names["obj"].value == "v"


def flooded(source: str) -> bool:
    """Does it end by itself within small bounds, bare? In a process of its own, which it may take with it."""
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
            resource.setrlimit(resource.RLIMIT_CPU, (1, 1))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            sys.set_int_max_str_digits(0)
            signal.signal(signal.SIGXCPU, signal.SIG_DFL)
            exec(source, {})
        except (MemoryError, OverflowError):
            os._exit(2)
        except BaseException:
            os._exit(1)  # a mistake of the payload proves nothing
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (2, -signal.SIGXCPU, -signal.SIGKILL, -signal.SIGSEGV)


@pytest.mark.parametrize("name", FLOODS)
def test_flood(profiles, name):
    assert flooded(FLOODS[name]), "the payload floods nothing bare"
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.thread_time()
    with pytest.raises(EvalInterrupted):
        guarded_eval(FLOODS[name], names={})
    assert time.thread_time() - start < 1.2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10, "KiB"
    with pytest.raises(REFUSED):
        guarded_eval(FLOODS[name], profile="calculator")


@pytest.mark.parametrize("profile", ["", "calculator"])
def test_the_quick_look_passes_no_payload_that_the_check_refuses(profiles, profile):
    rules = _evaluated._rules(profile, None)
    payloads = [*FLOODS.values(), *REFUSED_FLOODS.values(), *(source for rows in ESCAPES.values() for source in rows.values())]
    refused = 0
    for source in payloads:
        try:
            tree = _eval_check.parse(source, rules, "<guarded>")
            _eval_check.check(tree, rules, source, "<guarded>", frozenset())
        except SyntaxError as error:
            refused += 1
            assert not isinstance(error, EvalSyntaxRejected) or _eval_look.accepted(tree, rules) is None
    assert refused


@pytest.mark.parametrize("name", REFUSED_FLOODS)
def test_refused_flood(profiles, name):
    assert flooded(REFUSED_FLOODS[name]), "the payload floods nothing bare"
    for profile in (None, "calculator"):
        with pytest.raises((RuleEvalPermissionError, EvalSyntaxRejected)):
            guarded_eval(REFUSED_FLOODS[name], profile=profile, names={})


def test_what_another_string_has_left(profiles):
    """A class of one evaluation is as little the host's in the next one."""
    space = context()
    guarded_eval("class A:\n    work = func\na = A()\na.more = func\ne = ValueError()", names=space)
    for source in ("a.work()", "a.more()", "A.work()", "A().work()"):
        with pytest.raises((RuleEvalPermissionError, EvalSyntaxRejected)):
            guarded_eval(source, names=space)


@pytest.mark.parametrize("n", [64, 65, 100, 300, 3000])
def test_many_keywords(profiles, n):
    """What C code of ours keeps on its stack is no more than fits, whatever a call has."""
    for source in (
        "','.join(['a'], **k)",
        "'a'.replace('b', 'c', **k)",
        "'{}'.format(1, **k)",
        "[].sort(**k)",
        "set().union([1], **k)",
    ):
        code = f"k = {{'a' + str(i): 1 for i in range({n})}}\n"
        try:
            plain: object = eval(source, {"k": {f"a{i}": 1 for i in range(n)}})
        except TypeError:
            plain = TypeError
        names: dict[str, object] = {}
        try:
            guarded_eval(f"{code}got = {source}", names=names)
        except (TypeError, RuleEvalPermissionError):
            assert plain is TypeError, source
        else:
            assert names["got"] == plain, source
    names = {}
    guarded_eval(f"d = {{}}\nd.update({{}}, **{{'a' + str(i): 1 for i in range({n})}})\ngot = len(d)", names=names)
    assert names["got"] == n
