"""What a string costs that guarded_eval evaluates: new, repeated, and while it runs; beside eval() and exec() of the same text.

The libraries that people take for it are measured in the same rounds, by the same yardstick.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from evaluators import LIBRARIES, Evaluator, Guarded, Plain, installed
from measure import How, Measure, Result, interleave, judge
from peers import surroundings
from place import Place

#: As a user would write them: formulas over what is passed, and small programs.
PROFILE = """\
eval-syntax:line=arith, compare, conditional, comprehension
eval-call:line=abs, min, max, round
eval-timeout:line=1s
eval-syntax:snippet=arith, compare, conditional, assign, loop, func, subscript, comprehension, fstring
eval-call:snippet=abs, len, sum, min, max, round, sorted, range
eval-attribute:snippet=str-methods, list-methods, dict-methods
"""

#: Stands in a text for a number that no other has.
NEW = "NEW"
LINE = "round(price * 1.19, 2) if price > NEW else 0"
SNIPPET = """\
least = NEW / 1_000_000_000
total = 0
kinds = {}
for row in rows:
    price = row["price"] * row["count"]
    if price > least:
        total += price
    else:
        total += least
    kind = row["kind"]
    kinds[kind] = kinds.get(kind, 0) + 1

def share(part):
    if total == 0:
        return 0
    return round(100 * part / len(rows), 1)

shares = {kind.upper(): share(kinds[kind]) for kind in sorted(kinds)}
best = max([part for part in shares.values()])
answer = f"{len(rows)} rows, {total:.2f} in all, {best} % of one kind"
"""
LOOP = """\
answer = 0
for number in numbers:
    if number % 3:
        answer += number
    else:
        answer -= 1
"""
FUNCTIONS = """\
def scaled(number, by):
    return number * by

for number in numbers:
    answer = scaled(number, 3)
"""
BUILTINS = """\
for number in numbers:
    answer = max(abs(number), 7)
"""
METHODS = """\
answer = []
for number in numbers:
    answer.append(text.upper())
"""
COMPREHENSION = "[number * 2 for number in numbers if number > 10]"

PLAIN, GUARDED = "eval", "guarded_eval"
ROWS = [{"price": 10.5, "count": 3, "kind": "a"}, {"price": 2, "count": 8, "kind": "b"}, {"price": 7, "count": 1, "kind": "a"}]
NAMES: dict[str, Any] = {"price": 2_000_000_000, "rows": ROWS, "text": "text", "numbers": list(range(2000))}


@dataclass(frozen=True)
class Case:
    """One row of the table. ``names``: what the text is given; ``turn``: samples of a turn."""

    name: str
    text: str  #: with NEW where each one shall differ
    names: tuple[str, ...]
    turn: int
    goal: float
    why: str
    kept: bool = False  #: compiled once by those who can, so that its running alone is clocked

    @property
    def statements(self) -> bool:
        return "answer = " in self.text


CASES = (
    Case("first, a line", LINE, ("price",), 100, 10.0, "each text is new: what a user types in, what is made for each request"),
    Case("first, 20 lines", SNIPPET, ("rows",), 20, 10.0, "what a model wrote is seldom written twice"),
    Case(
        "repeated, a line", LINE.replace(NEW, "5"), ("price",), 200, 1.0,
        "a rule that is applied to every record; eval() parses it each time, and nothing need be slower than that",
    ),
    Case("repeated, 20 lines", SNIPPET.replace(NEW, "5"), ("rows",), 50, 1.0, "the same of a small program"),
    Case("loop", LOOP, ("numbers",), 5, 1.5, "each turn counts, and is checked for its time", True),
    Case("calls of its functions", FUNCTIONS, ("numbers",), 5, 1.5, "each call is judged, and its depth bounded", True),
    Case("calls of builtins", BUILTINS, ("numbers",), 5, 1.5, "what C code gets is looked at before", True),
    Case("calls of methods", METHODS, ("numbers", "text"), 5, 1.5, "the read is checked, and the call", True),
    Case("comprehension", COMPREHENSION, ("numbers",), 5, 1.5, "the usual way to write a loop that collects", True),
)  # fmt: skip


def measure(case: Case, side: str) -> Measure:
    ours = side == GUARDED
    return Measure(case.name if ours else f"{case.name}, {side}", side, PLAIN, How.RATIO, case.goal if ours else None, case.why)


def run(place: Place) -> Iterator[Result]:
    with place.profile.open("a") as profile:
        profile.write(PROFILE)
    with surroundings(place):
        libraries = installed()
        evaluators = {PLAIN: Plain(), GUARDED: Guarded(), **libraries}
        for case in CASES:
            yield from _case(place, case, evaluators)
    for side in LIBRARIES:
        if side not in libraries:
            yield Result(measure(CASES[0], side), note=f"{side} is not installed (make bench does that)")


def _case(place: Place, case: Case, evaluators: dict[str, Any]) -> Iterator[Result]:
    able = {side: one for side, one in evaluators.items() if one.has_statements or not case.statements}
    rounds = interleave({side: _turn(place, case, one) for side, one in able.items()}, place.rounds)
    for side in evaluators:
        if side != PLAIN:
            one = measure(case, side)
            yield judge(one, rounds) if side in able else Result(one, note="it evaluates expressions only")


def _turn(place: Place, case: Case, evaluator: Evaluator) -> Callable[[], list[float]]:
    """One side's turn. What it answers is compared with plain Python's first."""
    names = {name: NAMES[name] for name in case.names}
    numbers = itertools.count(1)
    run = evaluator.kept(case.text, case.statements) if case.kept else None

    def turn() -> list[float]:
        samples = []
        for _ in range(place.count(case.turn)):
            text = case.text.replace(NEW, str(next(numbers)))
            began = perf_counter()
            if run is not None:
                run(names)
            else:
                evaluator.evaluate(text, case.statements, names)
            samples.append(perf_counter() - began)
        return samples

    text = case.text.replace(NEW, "0")
    expected = Plain().evaluate(text, case.statements, names)
    answer = run(names) if run is not None else evaluator.evaluate(text, case.statements, names)
    if answer != expected:
        raise AssertionError(f"{type(evaluator).__name__}: {case.name} gave {answer!r} instead of {expected!r}")
    return turn
