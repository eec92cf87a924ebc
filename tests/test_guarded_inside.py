"""eval(), exec(), compile() and guarded_eval() in a sandbox: refused, guarded or free, as the profile says."""

# Grammars and sources are data, a row each.
# ruff: noqa: E501

from __future__ import annotations

import pytest

pytestmark = pytest.mark.smoke

RULES = "python-import=*\neval-syntax=arith, compare, assign, func, loop, Pass, subscript\neval-call=len, max, shown\neval-attribute=upper\neval-timeout=1s\n"


def tried(place, rules: str, *sources: str) -> list[str]:
    """What each statement does in a program: what it leaves in `r`, or the error."""
    (place.folder / ".py-sandboxes").write_text(rules)
    # the statements are the program's own: each in a function of its file
    body = "".join(
        f"def f{i}():\n    r = None\n" + "".join(f"    {line}\n" for line in s.split("\n")) + "    return r\n"
        for i, s in enumerate(sources)
    )
    code = f"import ast\n{body}for f in [{', '.join(f'f{i}' for i in range(len(sources)))}]:\n    try: print(repr(f()))\n    except BaseException as e: print(type(e).__name__ + ': ' + str(e).split(chr(10))[0])\n"
    (place.folder / "program.py").write_text(code)
    done = place.run("program.py")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


GUARDED = {
    "r = eval('1 + 2')": "3",
    "r = eval('a * len(b)', {'a': 2, 'b': 'xyz'})": "6",
    "r = eval('a + b', {'a': 1}, {'b': 2})": "3",
    "r = eval(b'1 + 1')": "2",
    "a = 5\nr = eval('a')": "NameError: name 'a' is not defined",
    "n = {}\nexec('x = 1\\ndef f(n): return n + x', n)\nr = n['x'], n['f'](2)": "(1, 3)",
    "n = {'x': 1}\nexec('x = x + 1', n)\nr = n['x'], '__builtins__' in n": "(2, False)",
    "l = {}\nexec('y = x', {'x': 3}, l)\nr = l": "{'y': 3}",
    "r = eval(compile('6 * 7', 'name', 'eval'))": "42",
    "n = {}\nexec(compile('z = 1', 'name', 'exec'), n)\nr = n['z']": "1",
    "r = eval(compile(ast.parse('2 + 2', mode='eval'), 'name', 'eval'))": "4",
    "r = ast.literal_eval('[1, 2]')": "[1, 2]",
    "r = eval(\"'a'.upper()\")": "'A'",
    "r = eval('__import__(\"os\")')": "EvalSyntaxRejected: ",
    "r = eval('().__class__')": "EvalSyntaxRejected: ",
    "exec('import os')": "EvalSyntaxRejected: ",
    "exec(compile(ast.parse('import os'), 'a', 'exec'))": "EvalSyntaxRejected: ",
    "exec('while 1: pass')": "EvalInterrupted: ",
    "from pysandboxes import guarded_eval\nr = guarded_eval('1 + x', names={'x': 1})": "2",
    "import collections, dataclasses\nr = collections.namedtuple('N', 'a b')(1, 2)": "N(a=1, b=2)",
    "import dataclasses\nr = dataclasses.make_dataclass('D', ['a'])(1)": "D(a=1)",
    "import timeit\ntimeit.timeit('import os', number=1)": "EvalSyntaxRejected: ",
    "r = eval((lambda: 1).__code__)": "RuleEvalPermissionError: ",
    "import types\ntypes.FunctionType(compile('1', 'a', 'eval'), {})": "RuleApiPermissionError: ",
    "import typing\nr = eval(typing.ForwardRef('print').__forward_code__)": "RuleEvalPermissionError: ",
    "import pysandboxes._guard as g, typing\nr = g.evaluate(typing.ForwardRef('print.__self__').__forward_code__, {}, {}, (), ((), (), (), (), (), (), (), (), {}), 9, 9, 9, 9.0)": "SystemError: ",
}  # fmt: skip


def test_guarded(place):
    told = tried(place, RULES, *GUARDED)
    for got, (source, wanted) in zip(told, GUARDED.items(), strict=True):
        assert got == wanted or (wanted.endswith(": ") and got.startswith(wanted)), (source, got)


def test_refused_without_rules_and_free_with_a_grant(place):
    assert tried(place, "python-import=*", "r = eval('1')")[0].startswith("RuleEvalPermissionError")
    granted = RULES + "python-api=ALLOW:dynamic-code"
    assert tried(place, granted, "r = eval('().__class__.__name__')", "exec('import os')\nr = 1") == ["'tuple'", "1"]
    assert tried(place, RULES + "python-api=DENY:builtins.eval", "r = eval('1')")[0].startswith("RuleEvalPermissionError")


def test_a_replaced_rewriting_frees_nothing(place):
    source = (
        "import pysandboxes._evaluated, pysandboxes._eval_check as c, pysandboxes._eval_rewrite as w\n"
        "c.check = lambda *a: None\n"
        "w._Rewriter.visit = lambda self, tree: tree\n"
        "r = eval('().__class__.__base__')"
    )
    assert tried(place, RULES, source)[0].startswith("SystemError")
