"""Programs made at random, as guarded strings and as plain Python: `python tests/fuzz/evaluated.py [--seed N] [--cases N] [--time S]`.

What is not refused has to give what plain Python gives: value, exception, and names that are left. Whatever happens, no attribute is
read that no rule names, nothing of the host is called or reached, and the bounds hold.
"""

# Grammars and sources are data, a row each.
# ruff: noqa: E501

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import time
import types
import warnings
from pathlib import Path

from pysandboxes import (
    EvalInterrupted,
    EvalSyntaxRejected,
    RuleEvalPermissionError,
    _eval_check,
    _eval_look,
    _evaluated,
    guarded_eval,
)

GRANTED = ("x", "y", "upper", "append", "get", "keys", "index", "count", "send", "close", "value", "args", "format")
MAGIC = (
    "__init__", "__eq__", "__len__", "__iter__", "__add__", "__enter__", "__exit__", "__call__", "__repr__", "__match_args__", "__getitem__",
    "__lt__", "__hash__",
)  # fmt: skip
PROFILE = f"""
eval-syntax=arith, compare, conditional, loop, comprehension, assign, func, class, exception, context, subscript, fstring, yield, match, import, async
eval-syntax=Assert, Delete, Global, Nonlocal, Pass
eval-call=abs, all, any, bool, dict, divmod, enumerate, filter, getattr, hasattr, hash, int, isinstance, iter, len, list, map, max, min, next, ord
eval-call=property, range, repr, reversed, round, set, slice, sorted, staticmethod, str, sum, super, tuple, zip, Exception, StopIteration, *Error
eval-attribute={", ".join(GRANTED)}
eval-magic={", ".join(MAGIC)}
eval-import=math
eval-max-iterations=20_000
eval-max-alloc=2MB
eval-timeout=500ms
eval-max-call-depth=30
eval-max-depth=60
"""
REFUSED = (EvalSyntaxRejected, RuleEvalPermissionError, EvalInterrupted)
NAMES = ("a", "b", "c", "d", "e")
ATTRIBUTES = (
    *GRANTED,
    "__class__",
    "__globals__",
    "__dict__",
    "gi_frame",
    "real",
    "pop",
    "__init__",
    "__call__",
    "secret",
    "obj",
    "stop",
)


class Canary:
    """An object of the host that notes what is read of it."""

    def __init__(self) -> None:
        self.x, self.y, self.secret = 1, "y", "s3cret"

    def __getattribute__(self, name: str) -> object:
        SEEN.add(name)
        return object.__getattribute__(self, name)


SEEN: set[str] = set()
CALLED: list[object] = []


def host(*args: object, **kwargs: object) -> str:
    CALLED.append(args)
    return "s3cret"


class Programs:
    """Makes one program."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.left = 60
        self.inside: list[str] = []

    def expr(self, deep: int = 0) -> str:
        self.left -= 1
        r = self.r
        if self.left < 0 or deep > 4:
            return self.atom()
        e = lambda: self.expr(deep + 1)  # noqa: E731
        kinds = [
            self.atom, self.atom, self.atom,
            lambda: f"({e()} {r.choice(['+', '-', '*', '/', '//', '%', '**', '<<', '>>', '&', '|', '^'])} {e()})",
            lambda: f"({r.choice(['-', '+', '~', 'not '])}{e()})",
            lambda: f"({e()} {r.choice(['<', '<=', '==', '!=', '>', '>=', 'in', 'not in', 'is', 'is not'])} {e()})",
            lambda: f"({e()} < {e()} {r.choice(['==', 'in', '<'])} {e()})",
            lambda: f"({e()} {r.choice(['and', 'or'])} {e()})",
            lambda: f"({e()} if {e()} else {e()})",
            lambda: f"[{e()}, {e()}]", lambda: f"({e()}, *{e()})", lambda: f"{{{e()}: {e()}, **{e()}}}", lambda: f"{{{e()}, {e()}}}",
            lambda: f"{e()}[{e()}]", lambda: f"{e()}[{e()}:{e()}]", lambda: f"{e()}.{r.choice(ATTRIBUTES)}",
            lambda: f"{e()}.{r.choice(ATTRIBUTES)}({e()})", lambda: f"{e()}({e()})", lambda: f"{e()}(*{e()}, **{e()})",
            lambda: f"{r.choice(['len', 'str', 'repr', 'list', 'sum', 'min', 'sorted', 'tuple', 'iter', 'next', 'abs', 'int', 'set', 'bool'])}({e()})",
            lambda: f"{r.choice(['map', 'filter', 'max', 'zip', 'isinstance', 'round', 'divmod'])}({e()}, {e()})",
            lambda: f"getattr({e()}, {r.choice(ATTRIBUTES)!r})", lambda: f"getattr({e()}, '__cl' + 'ass__', {e()})",
            lambda: f"sorted({e()}, key={e()})", lambda: f"(lambda {self.name()}, *d, **e: {e()})", lambda: f"({self.name()} := {e()})",
            lambda: f"[{e()} for {self.name()} in {e()} if {e()}]", lambda: f"{{{e()} for {self.name()} in {e()}}}",
            lambda: f"{{{e()}: {e()} for {self.name()}, b in {e()}}}", lambda: f"list({e()} for {self.name()} in {e()} for b in {e()})",
            lambda: f"f'{{{self.name()}!r:>{r.choice([3, 9])}}} {{{self.name()}}}'", lambda: f"'%s %r' % {e()}",
            lambda: f"'{{0.{r.choice(ATTRIBUTES)}}} {{0[x]}}'.format({e()})", lambda: f"{r.choice(['StopIteration', 'ValueError', 'slice'])}({e()})",
        ]  # fmt: skip
        return r.choice(kinds)()

    def atom(self) -> str:
        numbers = ["0", "1", "2", "7", "-3", "2.5", "10 ** 20", "1j"]
        others = ["'ab'", "''", "b'a'", "[1, 2, 3]", "()", "{}", "{'x': 1}", "range(5)", "None", "True", "..."]
        return self.r.choice([*numbers, *others, *NAMES * 2, "obj", "host", "K", "K()", "g()"])

    def name(self) -> str:
        return self.r.choice(NAMES)

    def block(self, deep: int) -> str:
        lines = "\n".join(self.statement(deep + 1) for _ in range(self.r.randint(1, 2)))
        return "\n".join("    " + line for line in lines.split("\n"))

    def target(self) -> str:
        n = self.name
        return self.r.choice(
            [
                n(),
                n(),
                n(),
                f"{n()}, {n()}",
                f"{n()}[{self.expr(3)}]",
                f"{n()}.x",
                f"obj.{self.r.choice(ATTRIBUTES)}",
                f"K.{n()}",
                f"a, *{n()}",
            ]
        )

    def pattern(self, deep: int = 0) -> str:
        p = lambda: self.pattern(deep + 1)  # noqa: E731
        if deep > 2:
            return self.r.choice(["1", "None", "_"])
        choices = [
            "1",
            "'ab'",
            "None",
            "_",
            "[a, b]",
            "[1, *c]",
            "{'x': d}",
            "{'x': _, **e}",
            "int(a)",
            "str()",
            "K(x=a)",
            "K(a)",
            "K(__class__=a)",
            "-1 | 2 | 'x'",
        ]
        return self.r.choice([*choices, f"[{p()}, _]" if deep else "K.x"])

    def statement(self, deep: int = 0) -> str:
        r, e = self.r, self.expr
        b = lambda: self.block(deep)  # noqa: E731
        simple = [
            lambda: f"{self.target()} = {e()}", lambda: f"{self.target()} = {e()}", lambda: f"{self.name()} {r.choice('+-*|')}= {e()}",
            lambda: f"{self.name()}.x += {e()}", lambda: f"{self.name()}[{e()}] += {e()}", lambda: f"del {self.name()}", e,
            lambda: f"raise {r.choice(['ValueError', 'KeyError', 'Exception'])}({e()})", lambda: f"assert {e()}, {e()}", lambda: "from math import x", lambda: f"{self.name()}: {e()} = {e()}",
        ]  # fmt: skip
        if deep > 2 or self.left < 0:
            return r.choice(simple)()
        nested = [
            lambda: f"if {e()}:\n{b()}\nelse:\n{b()}", lambda: f"for {self.target()} in {e()}:\n{b()}", lambda: f"while {e()}:\n{b()}\n    break",
            lambda: f"try:\n{b()}\nexcept {r.choice(['ValueError', '(TypeError, KeyError)', 'Exception', 'BaseException'])} as {self.name()}:\n{b()}\nfinally:\n{b()}",
            lambda: f"def {self.name()}(a=1, *b, c={e()}):\n{b()}\n    return {e()}", lambda: f"def g(a=2):\n{b()}\n    b = yield a\n    yield from {e()}\n    return b",
            lambda: f"class K:\n    x = {e()}\n    {r.choice(['__match_args__ = (1,)', '__match_args__ = (chr,)', 'pass', '__call__ = host', '__eq__ = host', 'y = host', 'y = staticmethod(host)'])}\n    def __init__(self, x=1):\n        self.x = x\n    def {r.choice(['__eq__', '__add__', '__lt__', 'y', '__getitem__'])}(self, o=None):\n        return {e()}",
            lambda: f"with {e()} as {self.target()}:\n{b()}", lambda: f"match {e()}:\n    case {self.pattern()}:\n{self.indented(b())}\n    case {self.pattern()} if {e()}:\n{self.indented(b())}\n    case _: pass",
            lambda: f"@{r.choice(['host', '(lambda f: f)', 'staticmethod', 'e'])}\ndef {self.name()}(*a): return a",
        ]  # fmt: skip
        return r.choice(simple + nested)()

    def indented(self, text: str) -> str:
        return "\n".join("    " + line for line in text.split("\n"))

    def program(self) -> str:
        head = "a, b, c, d, e = 1, 'ab', [1, 2], {'x': 1}, lambda a=0, *b: a\nclass K:\n    x = 1\n    def y(self): return 1\ndef g():\n    yield 1\n"
        return head + "\n".join(self.statement() for _ in range(self.r.randint(1, 5)))


def outcome(run, space) -> tuple[object, ...]:
    try:
        run()
        how: tuple[object, ...] = ("done",)
    except Exception as exc:
        how = (type(exc).__name__, shown(str(exc)))
    return (*how, {k: shown(repr(v)) for k, v in sorted(space.items()) if k != "__builtins__"})


def shown(text: str) -> str:
    text = re.sub(r"^\S+ argument after \*", "Value after *", text)  # a call through a helper has no other name to tell
    return re.sub(r" at 0x[0-9a-f]+|<pysandboxes\.[^>]*>", "", text)


def addressed(value: object, depth: int = 0) -> bool:
    """Has it a text with an address in it, or the characters of one? Two runs differ in it, and in the order of a set of such."""
    if isinstance(value, str):
        return " at 0x" in value or value in ("0", "x")
    if isinstance(value, dict):
        return depth < 4 and any(addressed(part, depth + 1) for item in list(value.items()) for part in item)
    return depth < 4 and isinstance(value, (list, tuple, set)) and any(addressed(part, depth + 1) for part in list(value))


def outside(value: object, depth: int = 0) -> bool:
    """Is this something that a guarded string may never hold?"""
    if (
        isinstance(value, (types.FrameType, types.CodeType, types.ModuleType, types.TracebackType))
        or value is object
        or value is type
    ):
        return True
    if isinstance(value, str) and "s3cret" in value:
        return True
    if isinstance(value, (list, tuple, set, frozenset)) and depth < 4:
        return any(outside(part, depth + 1) for part in list(value)[:50])
    if isinstance(value, dict) and depth < 4:
        return any(outside(part, depth + 1) for item in list(value.items())[:50] for part in item)
    return False


def bounded(source: str) -> bool:
    """Can plain Python be asked? Not what may take the machine with it."""
    return not re.search(r"\*\*|<<|\* *\(|while", source.split("def g():\n    yield 1\n", 1)[1])


def agreed(source: str) -> bool:
    """Does the quick look at a source pass nothing that the check refuses?"""
    rules = _evaluated._rules("", None)
    try:
        tree = _eval_check.parse(source, rules, "<guarded>")
    except EvalSyntaxRejected:
        return True
    try:
        _eval_check.check(tree, rules, source, "<guarded>", frozenset())
    except EvalSyntaxRejected:
        return _eval_look.accepted(tree, rules) is None
    return True


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    options.add_argument("--cases", type=int, default=10**9)
    options.add_argument("--time", type=float, default=10, help="seconds")
    given = options.parse_args()
    warnings.simplefilter("ignore")
    sys.set_int_max_str_digits(0)
    end, done, same, refused, errors = time.monotonic() + given.time, 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, ".py-sandboxes").write_text(PROFILE)
        os.chdir(folder)
        for seed in range(given.seed, given.seed + given.cases):
            if time.monotonic() > end:
                break
            source = Programs(seed).program()
            try:
                compile(source, "a", "exec")
            except (SyntaxError, ValueError):
                continue
            done += 1
            if not agreed(source):
                print(f"seed {seed}: the quick look passes what the check refuses\n{source}\n", flush=True)
                return 1
            SEEN.clear()
            CALLED.clear()
            space: dict[str, object] = {"obj": Canary(), "host": host}
            began = time.thread_time()
            try:
                told = outcome(lambda: guarded_eval(source, names=space), space)  # noqa: B023
            except REFUSED:
                told = ()
            except BaseException as exc:
                told = ("escaped", repr(exc))
            else:
                told = () if told[0] in ("EvalSyntaxRejected", "RuleEvalPermissionError") else told
            took = time.thread_time() - began
            wrong = ""
            if read := SEEN - {*GRANTED, *MAGIC, "__class__", "__bases__"}:
                wrong = f"read {read}"
            elif CALLED:
                wrong = "called what nobody granted"
            elif any(outside(v) for v in space.values()):
                wrong = "reached what it may not hold"
            elif took > 1.5:
                wrong = f"took {took:.1f} s"
            elif told[:1] == ("escaped",) or told[:1] == ("SystemError",):
                wrong = f"ended by {told[1]}"
            elif told and bounded(source) and not any(word in source for word in ("host", "__class__", "type", "chr")):
                plain: dict[str, object] = {"obj": Canary(), "host": host}
                bare = outcome(lambda: exec(compile(source, "<plain>", "exec", dont_inherit=True), plain), plain)  # noqa: B023
                if told != bare and not any(map(addressed, plain.values())):
                    wrong = f"gave {told}\nplain {bare}"
                same += 1
            refused += not told
            if wrong:
                errors += 1
                print(f"seed {seed}: {wrong}\n{source}\n", flush=True)
                if errors >= 5:
                    break
    print(f"{done} programs, {same} compared, {refused} refused, {errors} wrong; from seed {given.seed}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
