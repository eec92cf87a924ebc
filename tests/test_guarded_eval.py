"""guarded_eval: what a profile grants gives what plain Python gives; what it does not is refused, all of it at once."""

# The sources are data, a row each.
# ruff: noqa: E501

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import threading
import types

import pytest

from pysandboxes import (
    ConfigSyntaxError,
    EvalInterrupted,
    EvalSyntaxRejected,
    RuleEvalPermissionError,
    SandboxContextWarning,
    SandBoxError,
    guarded_eval,
)

pytestmark = pytest.mark.smoke

WIDE = """
eval-syntax=arith, compare, conditional, loop, comprehension, assign, func, exception, subscript, fstring
eval-syntax=Assert, Delete, Global, Nonlocal, Pass
eval-call=abs, all, any, bool, bytes, dict, enumerate, filter, float, format, frozenset, getattr, hasattr, int, isinstance, iter, len, list
eval-call=map, max, min, next, pow, range, repr, reversed, round, set, sorted, str, sum, tuple, type, zip, *Error, given_*
eval-attribute=str-methods, list-methods, dict-methods, set-methods, tuple-methods, num-methods, bytes-methods, date-methods, format, real, value
"""

EXPRESSIONS = [
    "1 + 2 * 3 - 4 / 5 // 6 % 7 ** 2", "-1, +2, ~3, not 4", "1 << 5 | 6 & 3 ^ 2 >> 1", "'a' * 3 + 'b'", "[1] * 3 + [2]", "3 * (1, 2)",
    "1 < 2 <= 2 != 3 > 1", "1 in [1, 2] and 3 not in {4}", "1 < 2 in [2, 3]", "None is None is not 1", "5 in range(10), 'a' in range(3)",
    "'yes' if 1 else 'no'", "0 or [] or 'x'", "[x * y for x in range(3) for y in range(3) if x != y]", "{x: y for x, y in zip('ab', [1, 2])}",
    "{x % 3 for x in range(9)}", "list(x + 1 for x in range(3))", "[[i for i in range(n)] for n in range(3)]", "(lambda a, *b, c=3, **d: (a, b, c, d))(1, 2, 3, e=4)",
    "[f(2) for f in [lambda x: x + 1, lambda x: x * x]]", "'%s-%05.1f-%r' % ('a', 3.14159, 'b')", "'%(a)s' % {'a': 1}", "b'%d' % 5",
    "'{0} {a!r:>5} {1[0]}'.format(1, [2], a='x')", "'{0.real}'.format(5)",
    "f'{1 + 1:>5}|{\"x\"!r:<5}|{3.14159:.{2}f}|{{}}|{1 + 1 = }'", "f'{1}' 'b' f'{2}'", "'a,b,c'.split(',')[::-1]", "'a,b,c'.split(sep=',', maxsplit=1)",
    "'abc'[1], 'abc'[-1:], 'abcdef'[1:5:2], [1, 2, 3][:2]", "','.join(str(x) for x in range(3))", "','.join(['a'])", "'a'.replace('a', 'bb')",
    "'a\\tb'.expandtabs(4)", "'abc'.translate({97: 'x', 98: None})", "'x'.ljust(3, '.') + 'x'.center(5) + '7'.zfill(3)", "str.upper('a')",
    "list(map(str.upper, ['a', 'b']))", "sorted(['b', 'A'], key=str.lower, reverse=True)", "max([3, 1, 2], key=lambda x: -x)", "min(3, 1), max([], default=0)",
    "sum([1, 2], 10), sum([[1], [2]], [])", "any([0, 1]), all([]), abs(-1), round(2.567, 2)", "list(zip([1, 2], 'ab', (3.0, 4.0)))",
    "dict([('a', 1)], b=2) | {'c': 3}", "{**{'a': 1}, 'b': 2}", "[*range(3), *'ab'], (*[1], 2), {*[1], 1}", "max(*[1, 2], **{})", "list(enumerate('ab', 1))",
    "list(filter(None, [0, 1])), list(reversed([1, 2]))", "next(iter([5])), next(iter([]), 'none')", "isinstance(1, int), isinstance('a', (int, str))",
    "getattr('a', 'upper')(), getattr('a', 'value', 5), hasattr(1, 'real')", "type(1) is type(2), repr('a'), format(3.14159, '.2f')",
    "pow(2, 10), pow(3, 4, 5), 2 ** -1, 2 ** 0.5, (-8) ** 2", "1_000.5 + 2j", "(1).to_bytes(2, 'big'), int.from_bytes(b'\\x01', 'big')",
    "{'a': 1}.get('b', 2), sorted({'b': 1, 'a': 2}.items())", "{1, 2}.union([3]) - {1}, {1}.issubset([1])", "dict.fromkeys('ab', 0)", "'é' + '\\u20ac' * 2",
    "1 / 0", "[][1]", "{}['a']", "int('x')", "'a' + 1", "undefined_name", "'a'.value", "len(5)", "[x for x in 5]", "(lambda: 1)(2)", "round(1, 2, 3)",
    "given_function(2, b=3)", "given_object.value", "given_list[0]['a']", " 1", "(1 if 0 else 2, [3 for _ in 'a'])", "...",
]  # fmt: skip
STATEMENTS = [
    "x = 1\ny: int = x + 1\nx += 5\nz = x, y", "a, *b = 1, 2, 3\n(c, d), e = (4, 5), 6", "a = b = [1]\na += (2, 3)\nb *= 2",
    "d = {'a': 1}\nd['a'] += 1\nd['b'] = d['a'] * 2\ndel d['a']", "l = [1, 2, 3]\nl[0] -= 5\nl[1], l[2] = l[2], l[1]\ndel l[0]",
    "try:\n    d = {}\n    d['a'] += given_function(1)\nexcept KeyError as e:\n    r = repr(e)",
    "r = []\nfor i in range(5):\n    if i == 1: continue\n    if i == 4: break\n    r.append(i)\nelse:\n    r.append('else')",
    "n = 0\nwhile n < 5:\n    n += 1\nelse:\n    n = -n", "def f(n):\n    'doc'\n    return 1 if n < 2 else n * f(n - 1)\nr = f(10)",
    "def f(a, b=2, *c, d, e=5, **g):\n    return a, b, c, d, e, g\nr = f(1, d=4), f(1, 2, 3, d=4, h=6)",
    "def counter():\n    n = 0\n    def more():\n        nonlocal n\n        n += 1\n        return n\n    return more\nc = counter()\nr = c(), c(), c()\ndel c, counter",
    "n = 0\ndef f():\n    global n, made\n    n += 1\n    made = n\nf()\nf()", "r = []\ntry:\n    r.append(1)\n    1 / 0\nexcept (ValueError, ZeroDivisionError) as e:\n    r.append(str(e))\nelse:\n    r.append('else')\nfinally:\n    r.append('finally')",
    "def f():\n    try:\n        return 'try'\n    finally:\n        pass\nr = f()", "try:\n    raise ValueError('a') from KeyError('b')\nexcept ValueError as e:\n    r = repr(e)",
    "try:\n    assert 0, 'no'\nexcept AssertionError as e:\n    r = str(e)", "[y := 1, y ** 2]", "r = [(z := x) for x in range(3)]", "x = [i for i in range(3)]\ni = 'kept'",
    "funcs = [lambda i=i: i for i in range(3)]\nr = [f() for f in funcs]", "r = [f() for f in [lambda: i for i in range(3)]]", "g = (x * 2 for x in range(3))\nr = next(g), list(g)",
    "def even(n):\n    return True if n == 0 else odd(n - 1)\ndef odd(n):\n    return False if n == 0 else even(n - 1)\nr = even(6)",
    "undefined", "x = 1\nx.value.value", "def f():\n    return 1 / 0\nf()", "raise ValueError('own')", "given_list[0]['a'] = 5\ngiven_list.append(6)", "pass",
    "del given_object", "l = [3, 1, 2]\nl.sort(key=lambda x: -x)\nl.extend(x for x in range(2))\nl.insert(0, 'a')", "s = {1}\ns.update([2], (3,))\ns.add(4)\ns |= {5}",
    "if 0:\n    r = 1\nelif 1:\n    r = 2\nelse:\n    r = 3",
]  # fmt: skip


def names() -> dict[str, object]:
    def given_function(a, b=1):
        return a + b

    return {"given_function": given_function, "given_object": types.SimpleNamespace(value=7), "given_list": [{"a": 1}]}


@pytest.fixture
def profile(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> None:
        (tmp_path / ".py-sandboxes").write_text(textwrap.dedent(text))

    write(WIDE)
    return write


def told(run, space) -> tuple[object, ...]:
    """What a run gives: its value or error, and what it leaves in the namespace."""
    try:
        outcome = ("value", run())
    except Exception as exc:
        traceback, lines = exc.__traceback__, []
        while traceback:
            if traceback.tb_frame.f_code.co_filename in ("<guarded>", "<plain>"):
                position = list(traceback.tb_frame.f_code.co_positions())[traceback.tb_lasti // 2]
                lines.append((traceback.tb_frame.f_code.co_name, *position))
            traceback = traceback.tb_next
        outcome = (type(exc).__name__, str(exc), lines)
    space.pop("__builtins__", None)
    plain = {
        k: v for k, v in space.items() if not callable(v) and not isinstance(v, (types.GeneratorType, types.SimpleNamespace))
    }
    return (*outcome, re.sub(" at 0x[0-9a-f]+", "", repr(plain)), sorted(map(str, space)))


@pytest.mark.parametrize("source", EXPRESSIONS + STATEMENTS)
def test_as_plain_python(profile, source):
    try:
        plain = compile(source.lstrip(), "<plain>", "eval", dont_inherit=True)
    except SyntaxError:
        plain = compile(source, "<plain>", "exec", dont_inherit=True)
    bare, guarded = names(), names()
    assert told(lambda: guarded_eval(source, names=guarded), guarded) == told(lambda: eval(plain, bare), bare)


def test_every_violation_at_once(profile):
    profile("eval-syntax=arith\neval-call=len")
    with pytest.raises(EvalSyntaxRejected) as caught:
        guarded_eval("len([1]) + foo(2) + (\n  x.y if open('é') else [].__class__)")
    error = caught.value
    assert isinstance(error, SyntaxError)
    assert isinstance(error, SandBoxError)
    assert (error.filename, error.lineno, error.offset, error.text) == ("<guarded>", 1, 12, "len([1]) + foo(2) + (")
    assert set(error.add) == {"eval-call=foo", "eval-attribute=y", "eval-syntax=conditional", "eval-magic=__class__"}
    text = str(error)
    assert "5 violations" in text
    assert (
        "<guarded>:1:12: foo may not be called\n    len([1]) + foo(2) + (\n               ^\n  to allow it: eval-call=foo"
        in text
    )
    assert "narrower: eval-syntax=IfExp" in text
    assert "open cannot be granted" in text
    assert "beware: it opens the whole hierarchy of types" in text
    assert [v.line for v in error.violations] == [1, 2, 2, 2, 2]


@pytest.mark.parametrize("add", ["eval-syntax=comprehension", "eval-call=len", "eval-attribute=upper"])
def test_the_line_to_add_is_enough(profile, add):
    source = {"eval-s": "[x for x in (1,)]", "eval-c": "len('a')", "eval-a": "'a'.upper()"}[add[:6]]
    profile("eval-syntax=Pass")
    with pytest.raises(EvalSyntaxRejected) as caught:
        guarded_eval(source)
    assert caught.value.add == [add]
    profile(f"eval-syntax=Pass\n{add}")
    guarded_eval(source)


def test_named_profiles(profile):
    profile("eval-syntax=arith\neval-syntax:rows=compare\neval-call:rows=len")
    assert guarded_eval("1 + 1") == 2
    assert guarded_eval("len('a') < 2", profile="rows") is True
    with pytest.raises(EvalSyntaxRejected, match=r"eval-syntax:rows=arith"):
        guarded_eval("1 + 1", profile="rows")
    with pytest.raises(RuleEvalPermissionError, match=r"no guarded profile other.*\n.*eval-syntax:other=arith"):
        guarded_eval("1", profile="other")
    profile("python-import=json")
    with pytest.raises(RuleEvalPermissionError, match="no eval-\\* line"):
        guarded_eval("1")
    profile("eval-syntax=arit")
    with pytest.raises(ConfigSyntaxError, match="Did you mean arith"):
        guarded_eval("1")


def test_no_profile(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuleEvalPermissionError, match="there is no profile"):
        guarded_eval("1")


def test_denials_win(profile):
    profile("eval-syntax=arith, DENY:UnaryOp\neval-call=*, DENY:len\neval-attribute=*, DENY:upper")
    assert guarded_eval("1 + max(2, 3) + int('a'.isalpha())") == 5
    for source in ("-(1)", "len('a')", "'a'.upper()"):
        with pytest.raises(EvalSyntaxRejected):
            guarded_eval(source)


def test_closed_namespace_reads_nothing_of_the_caller(profile):
    profile("eval-syntax=assign, arith\neval-namespace=closed")
    space = {"x": 1}
    guarded_eval("y = 2", names=space)
    assert space == {"x": 1, "y": 2}
    with pytest.raises(NameError):
        guarded_eval("x", names=space)


def test_names_are_left_alone(profile):
    space = {"__builtins__": {"len": 5}, "x": 1}
    guarded_eval("x = 2\ny = 3\ndel y", names=space)
    assert space == {"__builtins__": {"len": 5}, "x": 2}


def test_what_outlives_its_evaluation_keeps_its_budget(profile):
    profile("eval-syntax=func, loop, comprehension\neval-call=range\neval-max-iterations=1000")
    loop = guarded_eval("lambda n: [x for x in range(n)]")
    assert len(loop(900)) == 900
    with pytest.raises(EvalInterrupted, match="eval-max-iterations"):
        loop(200)
    with pytest.raises(EvalInterrupted):
        loop(1)


def test_threads_have_budgets_of_their_own(profile):
    results = []
    work = [threading.Thread(target=lambda: results.append(guarded_eval("sum(x for x in range(1000))"))) for _ in range(8)]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert results == [499500] * 8


def test_the_timeout_ends_it(profile):
    profile("eval-syntax=loop, Pass\neval-timeout=100ms\neval-max-iterations=1_000_000_000")
    with pytest.raises(EvalInterrupted, match="eval-timeout"):
        guarded_eval("while True: pass")


def test_a_risky_context_is_warned_of_once(profile):
    import os

    with pytest.warns(SandboxContextWarning, match="sees os"):
        for _ in range(2):
            guarded_eval("1", names={"os": os})


@pytest.mark.parametrize(
    ("source", "error"),
    [("1 +", SyntaxError), ("a b", SyntaxError), (b"1", TypeError), ("'\\ud800' + '\ud800'", UnicodeEncodeError)],
)
def test_what_is_no_source(profile, source, error):
    with pytest.raises(error):
        guarded_eval(source)


@pytest.mark.parametrize(
    "source", ["(" * 5000, "-" * 5000 + "1", "[" * 150 + "]" * 150, "1" + "+1" * 4000, "f(" * 60 + ")" * 60, "x" * 2_000_000]
)
def test_deep_and_long_sources(profile, source):
    with pytest.raises(EvalSyntaxRejected):
        guarded_eval(source)


def test_inside_of_a_sandbox_it_is_refused(place):
    (place.folder / ".py-sandboxes").write_text("python-import=*\neval-syntax=arith\n")
    code = "import pysandboxes as p\ntry: p.guarded_eval('1')\nexcept p.RuleEvalPermissionError as e: print(e)"
    assert "inside of a sandbox" in place.run("-c", code).stdout


def test_no_warning_of_ours(profile):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import pysandboxes; print(pysandboxes.guarded_eval(\"f'{1+1}' + 'a'.upper()\"))"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("2A\n", "")


@pytest.mark.parametrize(
    "source", ["b'xn--'.decode('idna')", "str(b'a', 'punycode')", "bytes('a', encoding='punycode')", "'a'.encode('rot13')"]
)
def test_codecs_written_in_python_are_refused(profile, source):
    with pytest.raises(RuleEvalPermissionError, match="may encode and decode"):
        guarded_eval(source)
    assert guarded_eval("'é'.encode(), b'a'.decode('ascii', 'replace'), str(b'a', 'utf-8')") == (b"\xc3\xa9", "a", "a")


def test_what_fits_is_not_charged_for_more(profile):
    profile("eval-syntax=arith\neval-call=len\neval-max-alloc=1MB")
    assert guarded_eval("len('ab' * 10 ** 5 + 'c'), len([1, 2] * 10 ** 4)") == (200_001, 20_000)
    with pytest.raises(EvalInterrupted, match="eval-max-alloc"):
        guarded_eval("'ab' * 10 ** 6")


def test_a_changed_profile_is_read_again(profile):
    profile("eval-syntax=arith")
    assert guarded_eval("1 + 1") == 2
    profile("eval-syntax=compare")
    with pytest.raises(EvalSyntaxRejected):
        guarded_eval("1 + 1")


def test_functions_of_the_context_get_functions_that_are_judged(profile):
    import functools

    profile("eval-syntax=func, arith\neval-call=reduce, add")
    names = {"reduce": functools.reduce, "add": lambda a, b: a + b, "other": lambda a, b: a - b}
    assert guarded_eval("reduce(add, [1, 2, 3])", names=names) == 6
    assert guarded_eval("reduce(lambda a, b: a * b, [2, 3])", names=names) == 6
    with pytest.raises(RuleEvalPermissionError, match="may not call"):
        guarded_eval("reduce(other, [1, 2])", names=names)


def test_deep_containers_do_not_reach_the_application(profile):
    tree = "a = [1]\nfor i in range(60):\n    a = [a, a]\n"
    with pytest.raises(EvalInterrupted, match="a million parts"):
        guarded_eval(tree + "raise ValueError(a)", names={})
