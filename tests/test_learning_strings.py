"""Rules for guarded strings are learned where the strings run, hold them afterwards, and say no more than what was needed."""

# Sources are data, a row each.
# ruff: noqa: E501

from __future__ import annotations

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

#: Programs, and the rules that they need; each line prints something.
PROGRAMS = {
    "an expression": (
        "print(guarded_eval('round(price * 1.19, 2) if price > 10 else 0', profile='calc', names={'price': 20}))",
        "call:calc=round syntax:calc=BinOp syntax:calc=Compare syntax:calc=IfExp",
    ),
    "a whole group": ("print(guarded_eval('-1 + 2'))", "syntax=arith"),
    "a comprehension": (
        "print(guarded_eval('[x for x in range(3)]', profile='a'))",
        "call:a=range syntax:a=comprehension",
    ),
    "methods": ("print(guarded_eval('t.upper()', profile='a', names={'t': 'x'}))", "attribute:a=upper"),
    "what is handed on": (
        "print(guarded_eval('sorted(t, key=len)', profile='a', names={'t': ['xy', 'z']}))",
        "call:a=len call:a=sorted",
    ),
    "an attribute that shows when it is read": (
        "print(guarded_eval('getattr(t, n)', profile='a', names={'t': 2j, 'n': 'imag'}))",
        "attribute:a=imag call:a=getattr",
    ),
    "a format that reads": (
        "print(guarded_eval(\"'{0.imag}'.format(t)\", profile='a', names={'t': 2j}))",
        "attribute:a=format attribute:a=imag",
    ),
    "an import": (
        "n = {}; guarded_eval('from math import sqrt\\nx = sqrt(4)', profile='a', names=n); print(n['x'])",
        "attribute:a=sqrt call:a=sqrt import:a=math syntax:a=Assign syntax:a=ImportFrom syntax:a=alias",
    ),
    "exceptions": (
        "n = {}; guarded_eval('try:\\n  x = 1 / 0\\nexcept ZeroDivisionError:\\n  x = 5', profile='a', names=n); print(n['x'])",
        "call:a=ZeroDivisionError syntax:a=Assign syntax:a=BinOp syntax:a=ExceptHandler syntax:a=Try",
    ),
    "functions and classes": (
        "n = {}; guarded_eval('class A:\\n  def __len__(self):\\n    return 3\\nx = len(A())', profile='a', names=n); print(n['x'])",
        "call:a=len magic:a=__len__ syntax:a=Assign syntax:a=FunctionDef syntax:a=Return syntax:a=arg syntax:a=arguments syntax:a=class",
    ),
    "more turns than are allowed": (
        "print(guarded_eval('sum(range(1_500_000))', profile='a'))",
        "call:a=range call:a=sum max-iterations:a=4000000",
    ),
    "more turns, twice": (
        "print([guarded_eval(f'sum(range({n}))', profile='a') for n in (1_500_000, 2_500_000)])",
        "call:a=range call:a=sum max-iterations:a=6000000",
    ),
    "more memory than is allowed": (
        "print(len(guarded_eval(\"'x' * 12_000_000\", profile='a')))",
        "max-alloc:a=23MB syntax:a=BinOp",
    ),
    "a source that is deep": ("print(guarded_eval('-' * 30 + '1', profile='a'))", "max-depth:a=40 syntax:a=UnaryOp"),
    "plain eval, without any rule for strings": ("print(eval('1 + 1'))", "builtins"),
}


def rules(place: Place) -> list[str]:
    text = (place.folder / ".py-sandboxes").read_text()
    return sorted(line.split("  #")[0].removeprefix("eval-") for line in text.splitlines() if line.startswith("eval-"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_learned_then_enforced(place: Place, name: str) -> None:
    code, wanted = PROGRAMS[name]
    place.file("program.py", "from pysandboxes import guarded_eval\n" + code + "\n")
    learned = place.run("--learn", "program.py")
    assert learned.returncode == 0, learned.stderr
    profile = place.folder / ".py-sandboxes"
    if wanted == "builtins":
        assert "python-api=ALLOW:builtins.eval" in profile.read_text()
    else:
        assert rules(place) == wanted.split(" ")
    enforced = place.run("program.py")
    assert (enforced.returncode, enforced.stdout) == (0, learned.stdout), enforced.stderr
    before = profile.read_bytes()
    again = place.run("--learn", "program.py")
    assert again.returncode == 0, again.stderr
    assert profile.read_bytes() == before


def test_plain_strings_where_the_profile_guards_them(place: Place) -> None:
    """A first line opts for the guard; a rule for the function itself is what it was."""
    place.file("program.py", "print(eval('abs(x - 3)', {'x': 1}))\nexec(compile('y = 1', 'name', 'exec'), {})\n")
    place.profile("eval-syntax=compare")
    learned = place.run("--learn", "program.py")
    assert (learned.returncode, learned.stdout) == (0, "2\n"), learned.stderr
    assert rules(place) == ["call=abs", "syntax=Assign", "syntax=BinOp", "syntax=compare"]
    assert place.run("program.py").stdout == "2\n"
    for grants in ("ALLOW:builtins.eval, ALLOW:builtins.exec, ALLOW:builtins.compile", "ALLOW:dynamic-code"):
        place.profile(f"eval-syntax=compare\npython-api={grants}")
        assert place.run("program.py").stdout == "2\n"
        place.run("--learn", "program.py")
        assert rules(place) == ["syntax=compare"]


def test_a_function_of_the_call_site_is_left_to_a_person(place: Place) -> None:
    place.file(
        "program.py",
        "from pysandboxes import guarded_eval\nprint(guarded_eval('tax(2)', profile='a', names={'tax': lambda x: x * 2}))\n",
    )
    learned = place.run("--learn", "program.py")
    assert (learned.returncode, learned.stdout) == (0, "4\n"), learned.stderr
    assert rules(place) == []
    assert (
        "tax, which its call site hands in among its names; to let it: eval-call:a=tax"
        in (place.folder / ".py-sandboxes").read_text()
    )


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("eval-syntax:a=arith", "(x for x in []).gi_frame"),
        ("eval-syntax:a=arith", "open('x')"),
        ("eval-attribute:a=DENY:upper", "'x'.upper()"),
        ("eval-attribute:a=DENY:upper", "getattr('x', 'up' + 'per')"),
        ("eval-call:a=DENY:len", "len('x')"),
        ("eval-import:a=DENY:os", "import os"),
        ("eval-magic:a=DENY:__class__", "getattr('x', '__cl' + 'ass__')"),
    ],
)
def test_what_no_rule_allows_is_refused_while_learning(place: Place, line: str, source: str) -> None:
    place.file(
        "program.py",
        f"from pysandboxes import guarded_eval\ntry: guarded_eval({source!r}, profile='a')\nexcept Exception as e: print(type(e).__name__)\n",
    )
    place.profile(line)
    done = place.run("--learn", "program.py")
    assert done.stdout in ("EvalSyntaxRejected\n", "RuleEvalPermissionError\n"), done.stdout + done.stderr
    again = place.run("program.py")
    assert again.stdout in ("EvalSyntaxRejected\n", "RuleEvalPermissionError\n"), again.stdout + again.stderr


def test_a_bound_that_a_person_wrote_stays(place: Place) -> None:
    place.file("program.py", "from pysandboxes import guarded_eval\nprint(guarded_eval('sum(range(2000))', profile='a'))\n")
    place.profile("eval-max-iterations:a=1000")
    assert place.run("--learn", "program.py").stdout == "1999000\n"
    text = (place.folder / ".py-sandboxes").read_text()
    assert text.count("\neval-max-iterations") == 0 and text.startswith("eval-max-iterations:a=1000")
    assert "went past eval-max-iterations:a=1000; to let it, change that to 5000" in text


def test_what_was_not_seen_is_refused(place: Place) -> None:
    """Of a language of 40 parts, the learned rules allow those of the source and no other."""
    seen = "max(len(t), 1) + 2"
    others = """1 < 2|not 1 and 2|1 if 2 else 3|[x for x in t]|{x for x in t}|{x: x for x in t}|sum(x for x in t)|lambda: 1|(y := 1)
t[0]|t[1:2]|f'{t}'|min(1, 2)|abs(1)|sorted(t)|list(t)|str(t)|int(1)|range(3)|print(t)|getattr(t, 'x')|type(t)|repr(t)|t.upper()|t.format(1)
t.__class__|t.__len__()|'{0.x}'.format(t)|[*t]|(*t, 1)""".replace("\n", "|").split("|")
    statements = [
        "x = 1",
        "for x in t: pass",
        "while 0: pass",
        "if 1: pass",
        "import math",
        "from math import pi",
        "def f(): pass",
        "class A: pass",
        "del t",
        "assert t",
        "with t: pass",
        "try: 1\nfinally: 2",
        "raise 1",
        "match t:\n case 1: 2",
        "x += 1",
        "x: int = 1",
    ]
    body = f"for s in {[seen]!r} if LEARN else {[*others, *statements]!r}:\n"
    code = (
        "from pysandboxes import guarded_eval, EvalSyntaxRejected\nimport sys\nLEARN = len(sys.argv) > 1\n"
        + body
        + "    try: print(guarded_eval(s, profile='a', names={'t': 'abc'}), s)\n    except EvalSyntaxRejected: print('refused')\n"
    )
    place.file("program.py", code)
    learned = place.run("--learn", "program.py", "learn")
    assert learned.stdout == f"5 {seen}\n", learned.stderr
    assert place.run("program.py", "learn").stdout == learned.stdout
    assert place.run("program.py").stdout.splitlines() == ["refused"] * (len(others) + len(statements))
