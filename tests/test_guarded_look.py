"""The quick look at a source passes nothing that the check refuses, and it does pass what is common."""

# The sources are data.
# ruff: noqa: E501

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_guarded_eval import EXPRESSIONS, STATEMENTS, WIDE

from pysandboxes import EvalSyntaxRejected, _eval_check, _eval_look, _evaluated, _guard
from pysandboxes._eval_rules import Rules

pytestmark = pytest.mark.smoke

#: What a source must not do, each by a way of its own.
REFUSED = [
    "x.__class__", "x.gi_frame", "__import__('os')", "__builtins__", "def __x(): pass", "f(__a=1)", "lambda __a: 1", "global __x", "x.__y = 1",
    "l[1:2] = []", "del l[1:2]", "l[1:2, 3] = 1", "l[1:2] += [1]", "a, (b, *c) = x", "[*a], b = x", "for *a, b in x: pass", "import os", "import math as __x",
    "from math import *", "from . import x", "class C(metaclass=x): pass", "class C: __del__ = 1", "match x:\n    case int(__class__=y): pass",
    "match x:\n    case {**__r}: pass", "match x:\n    case __x: pass", "match x:\n    case [*__x]: pass", "try:\n    pass\nexcept x as __e:\n    pass",
    "open('x')", "f = 1\nopen('x')", "x.undefined_attribute", "-" * 60 + "1", "[[[[[[[[[[[1]]]]]]]]]]]", "(" * 9 + "x" + ",)" * 9, "1" + "+1" * 300, "1" + "*(1" * 30 + ")" * 30,
    "[" + "1," * 310 + "]",  "async def f():\n    async with __x: pass", "f'{x.__class__}'", "x[__y]", "{**__x}",
    "print(*__x)", "def f(a: __x): pass", "def f(a=__x): pass", "@__x\ndef f(): pass", "with x as __y: pass", "(__x := 1)", "del __x", "assert __x, 1", "x if __y else z",
]  # fmt: skip
if sys.version_info >= (3, 12):
    REFUSED += ["def f[T](): pass", "class C[T]: pass", "type X = int", "async def f[*T](): pass"]


def loaded(folder: Path, text: str) -> Rules:
    (folder / ".py-sandboxes").write_text(text)
    return _evaluated._load(str(folder / ".py-sandboxes"))[""]


def some_of(text: str, seed: int) -> str:
    """A profile with some of another's lists, and with narrow bounds."""
    r, kept = random.Random(seed), ["eval-syntax=Pass"]
    share = r.choice([0.5, 0.8, 0.95, 1])
    for line in text.split():
        key, equals, rest = line.partition("=")
        if equals:
            head = key
        name = (rest if equals else line).rstrip(",")
        if r.random() < share:
            kept.append(f"{head}={r.choice(['', '', '', '', 'DENY:'])}{name}")
    bounds = [f"eval-max-depth={r.choice([2, 4, 8, 20])}", f"eval-max-nodes={r.choice([10, 30, 5000])}"]
    return "\n".join(kept + (bounds if seed % 2 else []))


@pytest.mark.parametrize("seed", range(16))
def test_the_look_passes_nothing_that_the_check_refuses(tmp_path: Path, seed: int) -> None:
    rules = loaded(tmp_path, some_of(WIDE, seed))
    passed = 0
    for source in EXPRESSIONS + STATEMENTS + REFUSED:
        try:
            tree = _eval_check.parse(source.strip(), rules, "<guarded>")
        except (SyntaxError, EvalSyntaxRejected):
            continue
        read = _eval_look.accepted(tree, rules)
        if read is not None:
            passed += 1
            _eval_check.check(tree, rules, source, "<guarded>", frozenset())
            assert read == _eval_check.read_names(tree)
    assert passed


def test_the_look_passes_what_is_common(tmp_path: Path) -> None:
    """Else all would be as slow as what it is there for. Left out: classes, imports, dunder names, starred targets."""
    rules = loaded(tmp_path, WIDE)
    trees = [_eval_check.parse(source.strip(), rules, "<guarded>") for source in EXPRESSIONS + STATEMENTS]
    passed = sum(_eval_look.accepted(tree, rules) is not None for tree in trees)
    assert passed > len(trees) * 0.6


@pytest.mark.parametrize("source", REFUSED)
def test_it_says_nothing_of_what_is_refused(tmp_path: Path, source: str) -> None:
    rules = loaded(tmp_path, WIDE + "\neval-max-depth=9\neval-max-nodes=300")
    assert _eval_look.accepted(ast.parse(source), rules) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda node: setattr(node, "id", 5),
        lambda node: delattr(node, "id"),
        lambda node: setattr(node, "id", type("S", (str,), {})("x")),
    ],
)
def test_odd_trees_are_left_to_the_check(tmp_path: Path, spoil: Callable[[ast.expr], None]) -> None:
    rules = loaded(tmp_path, WIDE)
    tree = ast.parse("x + 1", mode="eval")
    assert isinstance(tree.body, ast.BinOp)
    assert _eval_look.accepted(tree, rules) == {"x"}
    spoil(tree.body.left)
    assert _eval_look.accepted(tree, rules) is None


@pytest.mark.parametrize(
    "source",
    [*EXPRESSIONS, *STATEMENTS, "1;", "*a, b", "*a,", "*a", "(*a, b)", "yield", "(yield)", "yield 1", "lambda: (yield)", "await x", "1\n", "\n1", "\n 1", "1\n  ", "1\n  \n", "1\r\n", "1 ", "1\n# c ", "1\n\t\n\n", "1\n \f", "x; y",
     "f(';')", "1 # ;", "'doc'", "", "# c", "x := 1", "(x := 1)", "\\\n1", "(1\n)", "1 +", "f(", "\f1", "match", "print 1", "x = 1", "1\n2", "1\n\n\n# c", "not", "\ufeff1"],
)  # fmt: skip
def test_what_is_an_expression(tmp_path: Path, source: str) -> None:
    """One parse gives the tree that an attempt at each would give."""

    def either() -> str:
        try:
            return ast.dump(ast.parse(source, "<guarded>", "eval"), include_attributes=True)
        except SyntaxError:
            return ast.dump(ast.parse(source, "<guarded>", "exec"), include_attributes=True)

    rules = loaded(tmp_path, WIDE)
    try:
        expected = either()
    except SyntaxError as error:
        with pytest.raises(SyntaxError) as caught:
            _eval_check.parse(source, rules, "<guarded>")
        assert str(caught.value) == str(error)
    else:
        assert ast.dump(_eval_check.parse(source, rules, "<guarded>"), include_attributes=True) == expected


def test_rows_that_are_none(tmp_path: Path) -> None:
    tree = ast.parse("1")
    for kinds in (
        {},
        {ast.Module: None},
        {ast.Module: ("x", None, ())},
        {ast.Module: (0, None, ["body"])},
        {ast.Module: (0, None, ("no",))},
    ):
        assert _guard.eval_look(tree, kinds, 20) is None
