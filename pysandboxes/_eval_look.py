"""The quick look at a source before the check of it: most sources are plainly allowed, and need no more than that.

``bindings/guard/eval_look.c`` walks the tree by the table that is made here. Whatever takes more than a table (classes,
imports, dunder names, slices that are assigned to) is left to ``_eval_check``, and so is all that might be refused.
"""

from __future__ import annotations

import ast

from ._eval_check import FREE, IDENTIFIERS, KNOWN, NEVER
from ._eval_rules import matches
from ._guard import eval_look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._eval_rules import Rules

    Row = tuple[int, str | None, tuple[str, ...]]

#: As ``bindings/guard/eval_look.c`` numbers them.
DEEP, CHAIN, NAME, BINDS, CALL, ATTRIBUTE, ITEM, LOADS, STORES, LOAD_ONLY, SIMPLE = (1 << bit for bit in range(11))
FLAGS: dict[str, int] = {
    "BinOp": CHAIN,
    "Name": NAME | SIMPLE,
    "Call": CALL | SIMPLE,
    "Attribute": ATTRIBUTE | SIMPLE,
    "Subscript": ITEM | SIMPLE,
    "Constant": SIMPLE,
    "Load": LOADS,
    "Store": STORES,
    "Starred": LOAD_ONLY,
    **dict.fromkeys(("FunctionDef", "AsyncFunctionDef", "arg", "ExceptHandler", "MatchAs", "MatchStar", "MatchMapping"), BINDS),
}
#: Told by the check alone.
ASKED = frozenset({"ClassDef", "Import", "ImportFrom", "alias", "MatchClass"})
#: Fields that hold no nodes, besides those of identifiers.
PLAIN = frozenset({"kind", "conversion", "is_async", "simple", "type_comment", "type_ignores"})
#: Nodes whose `value` is a constant.
CONSTANTS = frozenset({"Constant", "MatchSingleton"})


def _row(kind: type[ast.AST]) -> Row:
    name = kind.__name__
    identifiers = [field for field in kind._fields if field in IDENTIFIERS]
    nodes = [field for field in kind._fields if field not in IDENTIFIERS and field not in PLAIN]
    deep = DEEP if issubclass(kind, (ast.expr, ast.stmt, ast.comprehension)) else 0
    return deep | FLAGS.get(name, 0), identifiers[0] if identifiers else None, () if name in CONSTANTS else tuple(nodes)


ROWS: dict[str, tuple[type[ast.AST], Row]] = {
    name: (kind, _row(kind)) for name in KNOWN - ASKED if (kind := getattr(ast, name, None)) is not None
}


def _kinds(rules: Rules) -> dict[type, Row]:
    if rules.kinds is None:
        rules.kinds = dict(row for name, row in ROWS.items() if name in FREE or name in rules.syntax)
    return rules.kinds


def _reads(rules: Rules, name: str) -> bool:
    known = rules.reads.get(name)
    if known is None:
        known = name in rules.attribute and not any(matches(pattern, name) for pattern in NEVER)
        if len(rules.reads) < 4096:
            rules.reads[name] = known
    return known


def accepted(tree: ast.AST, rules: Rules) -> set[str] | None:
    """The names that a source reads, where it is plainly allowed; None where the check has to be asked."""
    seen = eval_look(tree, _kinds(rules), rules.max_depth)
    if seen is None:
        return None
    nodes, read, bound, called, attributes = seen
    if nodes > rules.max_nodes or not all(map(rules.calls, called - bound)):
        return None
    return read if all(_reads(rules, name) for name in attributes) else None
