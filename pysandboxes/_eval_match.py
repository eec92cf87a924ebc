"""match statements, written as the tests that ``bindings/guard/eval_match.c`` does: the interpreter's own instructions read
attributes that a class names, with nobody who checks them."""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: The kinds of a pattern, as the C function knows them.
ANY, CAPTURE, VALUE, SINGLE, OR, SEQUENCE, MAPPING, CLASS = range(8)
SINGLES = {False: 0, True: 1, None: 2}


class Pattern:
    """One pattern as nested tuples of constants, the expressions that it names, and the names that it binds."""

    def __init__(self, pattern: ast.pattern, visit: Callable[[ast.AST], Any]) -> None:
        self.visit = visit
        self.values: list[ast.expr] = []
        self.names: list[str] = []
        self.places: dict[str, ast.AST] = {}
        self.spec = self.written(pattern)

    def value(self, node: ast.expr) -> int:
        self.values.append(self.visit(node))
        return len(self.values) - 1

    def name(self, name: str | None, at: ast.AST) -> int:
        if name is None:
            return -1
        if name not in self.names:
            self.names.append(name)
            self.places[name] = at
        return self.names.index(name)

    def written(self, node: ast.pattern) -> tuple[Any, ...]:
        if isinstance(node, ast.MatchValue):
            return (VALUE, self.value(node.value))
        if isinstance(node, ast.MatchSingleton):
            return (SINGLE, SINGLES[node.value])
        if isinstance(node, ast.MatchAs):
            inner = self.written(node.pattern) if node.pattern else None
            return (ANY,) if node.name is None else (CAPTURE, self.name(node.name, node), inner)
        if isinstance(node, ast.MatchOr):
            return (OR, tuple(self.written(p) for p in node.patterns))
        if isinstance(node, ast.MatchSequence):
            star, name, parts = -1, -1, []
            for i, part in enumerate(node.patterns):
                if isinstance(part, ast.MatchStar):
                    star, name = i, self.name(part.name, part)
                else:
                    parts.append(self.written(part))
            return (SEQUENCE, tuple(parts), star, name)
        if isinstance(node, ast.MatchMapping):
            keys = tuple(self.value(key) for key in node.keys)
            return (MAPPING, keys, tuple(self.written(p) for p in node.patterns), self.name(node.rest, node))
        if isinstance(node, ast.MatchClass):
            cls = self.value(node.cls)
            by_place = tuple(self.written(p) for p in node.patterns)
            return (CLASS, cls, by_place, tuple(node.kwd_attrs), tuple(self.written(p) for p in node.kwd_patterns))
        raise SystemError("pysandboxes: such a pattern is not rewritten")
