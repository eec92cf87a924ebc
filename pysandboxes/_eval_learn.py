"""Learning what guarded strings need: a learning run lets them do what rules could allow, and tells which rules.

What no rule can allow is refused as ever, and so is what a rule denies. Bounds are far, not absent: some sources never end.
"""

from __future__ import annotations

import builtins
import os

from . import _eval_check, _guard
from ._eval_rules import Rules, grantable
from ._evaluated import FILENAME, KEPT, evaluate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from types import CodeType
    from typing import Any

    Source = str | tuple[CodeType, dict[str, object]]

#: How far the bounds of a learning run are, as multiples of the profile's.
ITERATIONS, MEMORY, DEPTH, TIME = 1000, 100, 8, 100
#: What a learned bound leaves above what was needed.
ROOM = 2
LISTS = ("syntax", "call", "attribute", "import", "magic")

_wide: dict[tuple[int, str, frozenset[str], str, str], tuple[Rules, Rules]] = {}


def run(source: Source, kind: str, rules: Rules, names: MutableMapping[str, Any] | None, given: dict[str, Any]) -> Any:
    """As ``_evaluated.evaluate``, for a learning run."""
    wide = widened(source, rules, frozenset(given), kind) if isinstance(source, str) else _widened(rules, {})
    learned: dict[tuple[str, str], object] = {}
    began = os.times().elapsed
    try:
        return evaluate(source, kind, wide, names, given, learned)
    finally:
        _tell(rules, learned, given, os.times().elapsed - began)


def widened(source: str, rules: Rules, names: frozenset[str], kind: str = "", filename: str = FILENAME) -> Rules:
    """The rules with all that the check of a source finds missing, which is told. Raises what the check raises for the rest."""
    key = (id(rules), source, names, kind, filename)
    known = _wide.get(key)
    if known is not None and known[0] is rules:
        return known[1]
    missing: dict[str, dict[str, bool]] = {}
    wide = _widened(rules, missing)
    while True:
        try:
            tree = _eval_check.parse(source, wide, filename, kind)
            _eval_check.check(tree, wide, source, filename, names)
            break
        except _guard.EvalSyntaxRejected as refused:
            if not _take(refused.violations, missing, names):
                raise
            wide = _widened(rules, missing)
    bound = _eval_check.bound_names(tree)
    for name in sorted(_eval_check.read_names(tree) - bound - names):
        if (
            name in vars(builtins)
            and not name.startswith("_")
            and name not in wide.call
            and grantable(name, vars(builtins)[name])
        ):
            missing.setdefault("eval-call", {})[name] = False
    wide = _widened(rules, missing)
    for full, items in missing.items():
        for item, is_given in items.items():
            _guard.eval_learn(rules.key(full), item, is_given)
    while len(_wide) >= KEPT:
        del _wide[next(iter(_wide))]
    _wide[key] = (rules, wide)
    return wide


def _take(violations: tuple[Any, ...], missing: dict[str, dict[str, bool]], names: frozenset[str]) -> bool:
    """Adds what would allow the violations; False where one of them cannot be allowed, or was not by the rule it names."""
    before = {key: set(items) for key, items in missing.items()}
    for violation in violations:
        full, _, item = (violation.narrower or violation.add).partition("=")
        key = full.partition(":")[0]
        if not item or item == "…" or item in before.get(key, ()):
            return False
        if key.startswith("eval-max-"):
            missing[key] = {str(ROOM * int(item)) if key == "eval-max-nodes" else item: False}
        else:
            missing.setdefault(key, {})[item] = key == "eval-call" and item in names
    return True


def _widened(rules: Rules, missing: dict[str, dict[str, bool]]) -> Rules:
    """A copy of the rules with more items, and with bounds that are far."""
    table = dict(rules.table)
    for part in LISTS:
        table[part] = {**table[part], "allow": [*table[part]["allow"], *missing.get(f"eval-{part}", ())]}
    # the class `comprehension` has the name of a group
    if "comprehension" in table["syntax"]["allow"]:
        table["syntax"]["allow"] += ["ListComp", "SetComp", "DictComp", "GeneratorExp"]
    for bound in ("max_depth", "max_nodes"):
        for value in missing.get(f"eval-{bound.replace('_', '-')}", ()):
            table[bound] = int(value)
    table["max_iterations"] *= ITERATIONS
    table["max_alloc"] *= MEMORY
    table["max_call_depth"] *= DEPTH
    table["timeout"] *= TIME
    return Rules(rules.name, table)


def _tell(rules: Rules, learned: dict[tuple[str, str], object], given: dict[str, Any], took: float) -> None:
    for (key, item), value in learned.items():
        if item:
            called = [name for name, one in given.items() if one is value] if key == "eval-call" else []
            for name in called or [item]:
                _guard.eval_learn(rules.key(key), name, bool(called))
            continue
        needed = value if isinstance(value, int) else 0
        most = {
            "eval-max-iterations": rules.max_iterations,
            "eval-max-alloc": rules.max_alloc,
            "eval-max-call-depth": rules.max_call_depth,
        }[key]
        if needed > most:
            text = f"{-(-ROOM * needed // 2**20)}MB" if key == "eval-max-alloc" else str(_round(ROOM * needed))
            _guard.eval_learn(rules.key(key), text, False)
    if took > rules.timeout / ROOM:
        _guard.eval_learn(rules.key("eval-timeout"), f"{int(2 * ROOM * took) + 1}s", False)


def _round(number: int) -> int:
    """Up, to one digit that counts."""
    unit = int(10 ** (len(str(number)) - 1))
    return -(-number // unit) * unit
