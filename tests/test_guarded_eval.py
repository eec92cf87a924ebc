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
eval-syntax=class, context, match, import, yield, async
eval-call=staticmethod, classmethod, property, super, Exception, BaseException, StopIteration, ExceptionGroup, sqrt, GivenBase
eval-import=math, collections.abc, os.path, json
eval-magic=__init__, __new__, __enter__, __exit__, __aenter__, __aexit__, __iter__, __next__, __aiter__, __anext__, __await__, __add__, __eq__, __hash__
eval-magic=__repr__, __len__, __getitem__, __contains__, __call__, __match_args__, __init_subclass__, __set_name__, __slots__, __lt__, __iadd__
eval-attribute=x, y, add, twice, made, name, items_, _C__hidden, pi, floor, send, close, throw, setter, getter, given, inf, asend, exceptions, args, path, join
eval-syntax=Assert, Delete, Global, Nonlocal, Pass
eval-call=issubclass
eval-attribute=sqrt
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
    "[].append()", "[].append(1, 2)", "'a'.upper(1)", "{}.get()", "{}.get(1, 2, 3)", "{1}.union(*[[n] for n in range(12)]) == {*range(12)}", "'a'.split(None, 1, 2)", "{1}.add([])",
    "'a b'.split(maxsplit=1), 'a b'.split(no=1)", "{'a': 1}.update(a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8, i=9)", "'a'.append", "[].real()", "{}.fromkeys('ab')", "[3, 1].sort(key=lambda x: -x)",
    "{1: 2}.pop(1), [1].pop(0), {1}.pop()", "[1, 2].index(3)", "{}.pop(1)", "''.join([1])", "frozenset([1]).union([2])", "1.5 % 0", "2 // 0", "True + True, True - 1.5", "7 % -3, -7 // 2, 2 ** 70 + 1, 2 ** 70 % 7",
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
    # classes
    "class C:\n    'doc'\n    x: int = 1\n    def add(self, n):\n        self.x += n\n        return self\nc = C()\nr = c.add(2).add(3).x, C.x\ndel c, C",
    "class C:\n    def __init__(self, x, *, y=2):\n        self.x, self.y = x, y\n    def __repr__(self):\n        return f'C({self.x}, {self.y})'\n    def __eq__(self, o):\n        return self.x == o.x\n    def __add__(self, o):\n        return C(self.x + o.x)\nr = repr(C(1) + C(2)), C(1) == C(1), C(1) != C(2), [C(3)] == [C(3)]\ndel C",
    "class A:\n    def __init__(self):\n        self.name = 'a'\n    def made(self):\n        return 'A'\nclass B(A):\n    def __init__(self):\n        super().__init__()\n        self.name += 'b'\n    def made(self):\n        return super().made() + 'B'\nr = B().made(), B().name, isinstance(B(), A), issubclass(B, A)\ndel A, B",
    "class C:\n    @property\n    def x(self):\n        return self.y\n    @x.setter\n    def x(self, v):\n        self.y = v * 2\n    @staticmethod\n    def made(a):\n        return a\n    @classmethod\n    def twice(cls, n):\n        c = cls()\n        c.x = n\n        return c\nr = C.twice(4).x, C.made(1), C().made(2)\ndel C",
    "class E(ValueError):\n    def __init__(self, x):\n        super().__init__('bad', x)\n        self.x = x\ntry:\n    raise E(5)\nexcept E as e:\n    r = e.x, e.args, str(e)\ndel E",
    "class E(Exception): pass\nraise E('own')", "class C:\n    def add(self):\n        return self.value\nC().add()", "class C:\n    1 / 0",
    "class C:\n    def __len__(self): return 3\n    def __getitem__(self, i): return i * 2\n    def __contains__(self, o): return o == 1\n    def __call__(self, a, b=2): return a + b\nc = C()\nr = len(c), c[4], c[1:2], 1 in c, 2 in c, c(1), c(1, b=5)\ndel c, C",
    "class C:\n    def __iter__(self):\n        yield 1\n        yield 2\nr = list(C()), [x for x in C()], [*C()], sum(C())\na, b = C()\ndel C",
    "class C:\n    n = 0\n    def __iter__(self): return self\n    def __next__(self):\n        self.x = self.x + 1 if hasattr(self, 'x') else 1\n        if self.x > 3: raise StopIteration\n        return self.x\nr = [*C()]\ndel C",
    "class C:\n    __hidden = 1\n    def add(self):\n        self.__hidden += 1\n        return self.__hidden\nr = C().add(), C._C__hidden\ndel C",
    "class A:\n    def __init_subclass__(cls, x=0, **kw):\n        super().__init_subclass__(**kw)\n        cls.made = x\nclass B(A, x=5): pass\nr = B.made\ndel A, B",
    "class C:\n    __slots__ = ('x',)\n    def __init__(self): self.x = 1\nc = C()\nr = c.x\nc.y = 2", "class C:\n    x = [i for i in range(3)]\n    y = [lambda: 1]\nr = C.x\ndel C",
    "x = 'g'\nclass C:\n    x = x + 'c'\n    y = [x for _ in range(1)]\n    def add(self): return x\nr = C.x, C.y, C().add()\ndel C", "def f():\n    x = 1\n    class C:\n        y = x\n        def add(self): return x\n    return C.y, C().add()\nr = f()",
    "class C:\n    def add(self): return __class__\nr = C().add() is C\ndel C" if 0 else "pass", "class C:\n    x = 1\nC.x = 2\nC.y = 3\nr = C().x, C().y\ndel C.x\nr += (hasattr(C, 'x'),)\ndel C",
    "class C:\n    def add(self): pass\nm = C().add\nr = m()\ndel C, m", "class C(GivenBase):\n    def add(self): return self.given(1)\nc = C()\nr = c.add(), c.given(3)\ndel c, C",
    "class C:\n    pass\nfor C.x in range(3): pass\n(C.y, C.name), z = (1, 2), 3\nr = C.x, C.y, C.name\ndel C", "class C:\n    def __call__(self): return 1\nr = list(map(lambda c: c(), [C()])), sorted([3, 1], key=lambda x: x)\ndel C",
    # decorators
    "def twice(f):\n    def made(*a):\n        return f(*a) * 2\n    return made\n@twice\n@twice\ndef g(x): return x\nr = g(3)", "@undefined\ndef f(): pass", "@5\ndef f(): pass", "def d(n):\n    return lambda f: (n, f())\n@d(2)\ndef r(): return 7",
    # with
    "class C:\n    def __init__(self, x): self.x = x\n    def __enter__(self):\n        r.append(('in', self.x))\n        return self.x\n    def __exit__(self, *e):\n        r.append(('out', self.x, [type(x) is type(None) for x in e]))\n        return self.x == 'swallow'\nr = []\nwith C(1) as a, C(2):\n    r.append(a)\nwith C('swallow'):\n    1 / 0\ntry:\n    with C(3): raise KeyError\nexcept KeyError:\n    r.append('key')\ndel C",
    "with 5: pass", "with given_manager as (a, b): r = a + b",
    # generators
    "def g():\n    x = yield 1\n    y = yield x\n    return y\ni = g()\nr = [next(i), i.send(2)]\ntry:\n    i.send(3)\nexcept StopIteration as e:\n    r.append(e.value)\ndel i", "def g(n):\n    if n:\n        yield n\n        yield from g(n - 1)\nr = list(g(4))",
    "def g():\n    r.append((yield from h()))\ndef h():\n    r.append((yield 1))\n    return 'h'\nr = []\ni = g()\nnext(i)\ntry:\n    i.send('sent')\nexcept StopIteration: pass\ndel i", "def g():\n    yield from [1, 2]\n    yield from range(2)\n    yield from 'ab'\nr = [*g()]",
    "def g():\n    try:\n        yield 1\n    except ValueError:\n        yield 'caught'\n    finally:\n        r.append('end')\nr = []\ni = g()\nnext(i)\nr.append(i.throw(ValueError('x')))\ni.close()\ndel i", "def g():\n    yield from 5\nlist(g())", "def g():\n    yield 1 / 0\nlist(g())",
    # async
    "async def f(x):\n    return x + 1\nasync def g():\n    return await f(1) + await f(2)\ndef run(c):\n    try:\n        c.send(None)\n    except StopIteration as e:\n        return e.value\nr = run(g())",
    "async def agen(n):\n    for i in range(n):\n        yield i\nasync def g():\n    a = []\n    async for x in agen(3):\n        a.append(x)\n    else:\n        a.append('else')\n    return a, [x * 2 async for x in agen(3) if x], {x async for x in agen(2)}, {x: x async for x in agen(2)}\ndef run(c):\n    try:\n        c.send(None)\n    except StopIteration as e:\n        return e.value\nr = run(g())",
    "class C:\n    async def __aenter__(self): return 5\n    async def __aexit__(self, *e): return True\nasync def g():\n    async with C() as c:\n        r.append(c)\n        1 / 0\n    return 1\nr = []\ndef run(c):\n    try:\n        c.send(None)\n    except StopIteration as e:\n        return e.value\nr.append(run(g()))\ndel C",
    "async def g():\n    await 5\ng().send(None)", "async def g():\n    async for x in 5: pass\ng().send(None)",
    # import
    "import math\nr = math.floor(math.pi), math.inf\ndel math", "from math import sqrt, pi as p\nr = sqrt(16), p\ndel sqrt", "import os.path as p\nr = p.join('a', 'b')\ndel p", "from os import path\nr = path.join('a')\ndel path", "from math import given", "import collections.abc\ndel collections",
    # match
    "def f(x):\n    match x:\n        case 0: return 'zero'\n        case 1 | 2: return 'few'\n        case -1.5 | 'text' | b'b' | 1+2j: return 'const'\n        case None | True: return 'single'\n        case [a, b]: return 'two', a, b\n        case [1, *rest]: return 'rest', rest\n        case [*_, 9]: return 'nine'\n        case {'k': v, 'l': [w]}: return v, w\n        case {'k': v, **more}: return v, more\n        case int(n) | float(n) if n > 5: return 'big', n\n        case str() as s: return 's', s\n        case {}: return 'dict'\n        case (): return 'empty'\n        case _: return 'other'\nr = [f(x) for x in (0, 1, 2, -1.5, 'text', b'b', 1+2j, None, True, [1, 2], (3, 4), [1, 2, 3], [4, 5, 9], {'k': 1, 'l': [2]}, {'k': 1, 'z': 2}, 7, 6.5, 4, 'a', {}, [], (), {1}, 'ab', range(2), [1])]",
    "class P:\n    __match_args__ = ('x', 'y')\n    def __init__(self, x, y): self.x, self.y = x, y\nr = []\nfor p in (P(0, 0), P(0, 5), P(5, 0), P(1, P(2, 3)), 5):\n    match p:\n        case P(0, 0): r.append('origin')\n        case P(x=0, y=n): r.append(('y', n))\n        case P(n, 0): r.append(('x', n))\n        case P(a, P(b, c)): r.append((a, b, c))\n        case _: r.append('none')\ndel P, p",
    "class K:\n    x = 5\nmatch 5:\n    case K.y if 0: r = 1\n    case K.x: r = 2\ndel K" if 0 else "class K:\n    x = 5\nmatch 5:\n    case K.x: r = 2\ndel K", "match 5:\n    case 1: r = 1", "match [1, 2]:\n    case [a, b] if a > b: r = 1\n    case [a, 2 as c]: r = a, c", "match 1 / 0:\n    case _: pass", "match 5:\n    case given_function(): pass", "match 5:\n    case int(a, b): pass",
    "def f(x):\n    match x:\n        case {'a': [1, {'b': c}]}:\n            match c:\n                case [d]: return 'inner', d\n            return 'outer', c\nr = f({'a': [1, {'b': 2}]}), f({'a': [1, {'b': [3]}]}), f(1)", "def f():\n    global r\n    match [1, 2]:\n        case [_, r]: pass\nf()", "match (1, 2):\n    case x, y: pass",
    # except*, positions, annotations
    "r = []\ntry:\n    raise ExceptionGroup('g', [ValueError(1), KeyError(2)])\nexcept* ValueError as e:\n    r.append(len(e.exceptions))\nexcept* KeyError:\n    r.append('k')", "def f(a: int, b: 'str' = 1, *c: 2) -> float: return a\nx: int\ny: 'later' = 1\nr = f(1)", "class C:\n    x: int\n    y: 'a' = 2\nr = C.y\ndel C",
    "def f():\n    n = 1\n    def g():\n        nonlocal n\n        class C:\n            nonlocal n\n            n = 5\n        return n\n    return g(), n\nr = f()", "l = [1, 2, 3, 4]\nl[1:3] = [9]\nl[:0] = (7, 8)\ndel l[-1:]\nl[::2] = 'ab'" if 0 else "pass",
]  # fmt: skip


def names() -> dict[str, object]:
    def given_function(a, b=1):
        return a + b

    class GivenBase:
        def given(self, n):
            return n + 1

    class GivenManager:
        def __enter__(self):
            return 1, 2

        def __exit__(self, *_):
            return None

    return {
        "given_function": given_function,
        "given_object": types.SimpleNamespace(value=7),
        "given_list": [{"a": 1}],
        "GivenBase": GivenBase,
        "given_manager": GivenManager(),
    }


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
        k: v
        for k, v in space.items()
        if not callable(v) and not isinstance(v, (types.GeneratorType, types.SimpleNamespace)) and not k.startswith("given_m")
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


def test_an_evaluation_within_one_has_a_budget_of_its_own(profile):
    profile("eval-syntax=comprehension, arith, assign\neval-call=range, sum, inner\neval-max-iterations=1000")

    def inner() -> int:
        return guarded_eval("sum([x + 0 for x in range(400)])")

    def careless() -> int:
        with pytest.raises(EvalInterrupted):
            guarded_eval("[x + 0 for x in range(2000)]")
        return 1

    source = "a = sum([x + 1 for x in range(400)])\nb = inner() + inner()\nc = sum([x + 1 for x in range(n)])"
    for function, given in ((inner, 2 * 79800), (careless, 2)):
        space = {"inner": function, "n": 50}
        guarded_eval(source, names=space)
        assert (space["a"], space["b"], space["c"]) == (80200, given, 1275)
        with pytest.raises(EvalInterrupted, match="eval-max-iterations"):
            guarded_eval(source, names={"inner": function, "n": 700})


def test_what_outlived_its_evaluation_spends_its_own_budget_within_another(profile):
    profile("eval-syntax=comprehension, func, arith, subscript\neval-call=range, kept, next\neval-max-iterations=1000")
    kept = guarded_eval("lambda n: [x + 0 for x in range(n)]")
    assert guarded_eval("[kept(300), [x + 0 for x in range(700)], kept(300)][1]", names={"kept": kept}) == [*range(700)]
    with pytest.raises(EvalInterrupted):
        guarded_eval("kept(500)", names={"kept": kept})
    assert guarded_eval("[x + 0 for x in range(900)]") == [*range(900)]


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
    with pytest.raises(EvalInterrupted, match="million parts"):
        guarded_eval(tree + "raise ValueError(a)", names={})
