"""The rewriting of a source that passed the check: what could reach too far or take too much becomes a call of a C function.

Names, positions and structure stay those of the user's text. The C functions stand in the constants of the code, where no
name of the source leads: the tree has a string with an unguessable token in their place until it is compiled. What is put
there, and that no instruction is left which does by itself what they guard, ``bindings/guard/eval_code.c`` sees to.
"""

from __future__ import annotations

import ast
import os
import sys
from types import CodeType

from . import _guard
from ._eval_match import Pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Node = TypeVar("Node", bound=ast.AST)

#: The letters of their helpers.
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "f",
    ast.Mod: "%",
    ast.MatMult: "@",
    ast.LShift: "l",
    ast.RShift: "r",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.Pow: "p",
}
#: As the C API numbers them.
COMPARISONS: dict[type[ast.cmpop], int] = {ast.Lt: 0, ast.LtE: 1, ast.Eq: 2, ast.NotEq: 3, ast.Gt: 4, ast.GtE: 5}
#: Until 3.13 an object that cannot be iterated is blamed on the whole comprehension.
WHOLE = sys.version_info < (3, 13)


def compiled(tree: ast.Module | ast.Expression, filename: str) -> CodeType:
    """The code of a checked source, ready to run under a meter."""
    token = f"@{os.urandom(16).hex()}:"
    tree = _Rewriter(token).visit(tree)
    code = compile(tree, filename, "eval" if isinstance(tree, ast.Expression) else "exec", dont_inherit=True)
    return _guard.eval_code(code, token)


def _slices(node: ast.AST) -> bool:
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Tuple) and any(map(_slices, node.elts)))


def _flat(node: ast.AST) -> bool:
    """Is its value no container for sure?"""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) or _flat(node.operand)
    return isinstance(node, (ast.Constant, ast.JoinedStr))


def mangled(name: str, cls: str | None) -> str:
    """A private name as the compiler writes it within a class."""
    bare = cls.lstrip("_") if cls else ""
    return f"_{bare}{name}" if bare and name.startswith("__") and not name.endswith("__") else name


def placed(node: Node, at: Any) -> Node:
    """The node, where ``at`` stands in the user's text."""
    # by their dicts: half of the time of the attributes
    to, of = node.__dict__, at.__dict__
    to["lineno"], to["col_offset"] = of["lineno"], of["col_offset"]
    to["end_lineno"], to["end_col_offset"] = of["end_lineno"], of["end_col_offset"]
    return node


#: Fields that hold nothing to be rewritten.
_KEPT = frozenset(
    {
        *(
            "ctx",
            "op",
            "ops",
            "id",
            "attr",
            "arg",
            "name",
            "names",
            "rest",
            "asname",
            "kind",
            "conversion",
            "is_async",
            "simple",
        ),
        *("level", "module", "type_comment", "type_ignores", "type_params", "cases", "kwd_attrs"),
    }
)
_LEAVES = (
    ast.Constant,
    ast.Name,
    ast.Import,
    ast.ImportFrom,
    ast.expr_context,
    ast.operator,
    ast.boolop,
    ast.unaryop,
    ast.cmpop,
)
#: The fields of each class of nodes that may hold something to be rewritten.
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: () if issubclass(kind, _LEAVES) else tuple(field for field in kind._fields if field not in _KEPT)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}


class _Rewriter:
    def __init__(self, token: str) -> None:
        self.token = token
        self.classes: list[str] = []
        self.functions: dict[tuple[str, int], ast.expr] = {}
        self.temporaries = 0

    def call(self, at: Any, name: str, *args: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.expr:
        function = self.functions.get((name, at.lineno)) or self.function(at, name)
        return placed(ast.Call(function, [*args], keywords or []), at)

    def function(self, at: Any, name: str) -> ast.expr:
        # `f if True else 0` compiles to f alone; a plain constant in the place of a function would be warned of
        parts = [ast.Constant(value) for value in (True, self.token + name, 0)]
        function = placed(ast.IfExp(*(placed(part, at) for part in parts)), at)
        self.functions[name, at.lineno] = function
        return function

    def visit(self, node: Any) -> Any:
        """What stands in the place of a node: often itself, for `match` a list of statements."""
        return _REWRITES[type(node)](self, node)

    def inside(self, node: Node) -> Node:
        """The node, with what is in it rewritten."""
        for field in _FIELDS[type(node)]:
            value = getattr(node, field)
            if isinstance(value, list):
                if value:
                    setattr(node, field, self.block(value))
            elif value is not None and (made := self.visit(value)) is not value:
                setattr(node, field, made)
        return node

    def leave(self, node: Node) -> Node:
        return node

    def block(self, nodes: list[Any]) -> list[Any]:
        done: list[Any] = []
        for node in nodes:
            made = node if node is None else self.visit(node)
            if isinstance(made, list):
                done += made
            else:
                done.append(made)
        return done

    def constant(self, at: ast.AST, value: Any) -> ast.expr:
        return placed(ast.Constant(value), at)

    def statement(self, at: ast.stmt, name: str) -> ast.stmt:
        return placed(ast.Expr(self.call(at, name)), at)

    # ---- expressions ----

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        of, name = self.visit(node.value), self.constant(node, self.mangled(node.attr))
        if isinstance(node.ctx, ast.Load):
            return self.call(node, "read", of, name)
        # an assignment to an item works wherever one to an attribute does
        return placed(ast.Subscript(self.call(node, "target", of), name, node.ctx), node)

    def mangled(self, name: str) -> str:
        return mangled(name, self.classes[-1] if self.classes else None)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        args = [self.visit(arg) for arg in node.args]
        keywords = [
            placed(ast.keyword(k.arg, self.visit(k.value) if k.arg else self.call(k.value, "mapping", self.visit(k.value))), k)
            for k in node.keywords
        ]
        if isinstance(node.func, ast.Attribute):
            of = self.visit(node.func.value)
            # what is read, is read before the arguments are evaluated
            method = self.call(node.func, "lookup", of, self.constant(node.func, self.mangled(node.func.attr)))
            return self.call(node, "method", method, *args, keywords=keywords)
        return self.call(node, "call", self.visit(node.func), *args, keywords=keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return self.call(node, OPERATORS[type(node.op)], self.visit(node.left), self.visit(node.right))

    def whole(self, node: ast.expr) -> ast.expr:
        """What C code will compare or hash, as deep as it goes."""
        return node if _flat(node) else self.call(node, "whole", node)

    def key(self, node: ast.expr) -> ast.expr:
        """What an object is asked for by an index: some call a function that they get (pandas)."""
        return node if _flat(node) else self.call(node, "key", node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        sides = [node.left, *node.comparators]
        # a comparison with a constant never goes deep; nor does one of identities
        flat = len(sides) == 2 and (any(map(_flat, sides)) or isinstance(node.ops[0], (ast.Is, ast.IsNot)))
        self.inside(node)
        walks = [isinstance(op, (ast.In, ast.NotIn)) for op in node.ops]
        if walks == [True]:
            found = self.call(node, "in", node.left, node.comparators[0])
            return found if isinstance(node.ops[0], ast.In) else placed(ast.UnaryOp(ast.Not(), found), node)
        node.comparators = [self.call(c, "member", c) if w else c for c, w in zip(node.comparators, walks, strict=True)]
        if flat:
            return node
        if len(sides) == 2:
            code = self.constant(node, COMPARISONS[type(node.ops[0])])
            return self.call(node, "compare", code, node.left, node.comparators[0])
        node.left, node.comparators = self.whole(node.left), [*map(self.whole, node.comparators)]
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.inside(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self.call(node.value, "star", node.value)
        return node

    def _made(self, node: ast.List | ast.Tuple | ast.Set) -> ast.AST:
        self.inside(node)
        if isinstance(node, ast.Set):
            node.elts = [e if isinstance(e, ast.Starred) else self.whole(e) for e in node.elts]
        plain = isinstance(node, ast.Tuple) and all(isinstance(e, ast.Constant) for e in node.elts)
        return node if plain or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) else self.call(node, "made", node)

    visit_List = visit_Tuple = visit_Set = _made

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.inside(node)
        node.values = [self.call(v, "mapping", v) if k is None else v for k, v in zip(node.keys, node.values, strict=True)]
        node.keys = [k and self.whole(k) for k in node.keys]
        return self.call(node, "made", node)

    def visit_Slice(self, node: ast.Slice) -> ast.AST:
        parts = [self.visit(p) if p else self.constant(node, None) for p in (node.lower, node.upper, node.step)]
        return self.call(node, "bounds", *parts)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        sliced = _slices(node.slice)
        self.inside(node)
        node.slice = node.slice if sliced else self.key(node.slice)
        if isinstance(node.ctx, ast.Load):
            return self.call(node, "slice", node.value, node.slice) if sliced else node
        if isinstance(node.ctx, ast.Store):
            node.value = self.call(node.value, "grow", node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return self.call(node, "text", *map(self.visit, node.values))

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        conversion = self.constant(node, chr(node.conversion) if node.conversion > 0 else "")
        spec = self.visit(node.format_spec) if node.format_spec else self.constant(node, "")
        return self.call(node, "format", self.visit(node.value), conversion, spec)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> ast.AST:
        self.inside(node)
        step = "loop" if isinstance(node, ast.GeneratorExp) else "collect"
        if isinstance(node, ast.SetComp):
            node.elt = self.whole(node.elt)
        elif isinstance(node, ast.DictComp):
            node.key = self.whole(node.key)
        for part in node.generators:
            if part.is_async:
                part.iter = self.call(part.iter, "async_loop", part.iter)
                part.ifs.insert(0, self.call(part.iter, "tick" if step == "loop" else "keep"))
            else:
                part.iter = self.call(node if WHOLE else part.iter, step, part.iter)
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.args, body = self.visit(node.args), self.visit(node.body)
        # C code may call it again and again (functools.reduce), with nothing else in it that counts
        node.body = placed(ast.BoolOp(ast.And(), [self.call(body, "tick"), body]), body)
        return node

    def visit_Await(self, node: ast.Await) -> ast.AST:
        node.value = self.call(node, "awaited", self.visit(node.value))
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        node.value = self.call(node, "delegate", self.visit(node.value))
        return node

    # ---- statements ----

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.inside(node)
        target = node.targets[0]
        if isinstance(target, (ast.Tuple, ast.List)) and any(isinstance(e, ast.Starred) for e in target.elts):
            node.value = self.call(node.value, "unpack", node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        letter = OPERATORS[type(node.op)]
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            old = placed(ast.Name(node.target.id, ast.Load()), node.target)
            return placed(ast.Assign([node.target], self.call(node, f"{letter}=", old, value)), node)
        code = self.constant(node, letter)
        if isinstance(node.target, ast.Attribute):
            name = self.constant(node.target, self.mangled(node.target.attr))
            of = self.call(node.target, "attribute", self.visit(node.target.value), name)
            return placed(
                ast.Expr(self.call(node, "in_place_attribute", code, placed(ast.Starred(of, ast.Load()), of), value)), node
            )
        if not isinstance(node.target, ast.Subscript):
            raise SystemError("pysandboxes: such an assignment is not rewritten")
        of, at = self.visit(node.target.value), self.key(self.visit(node.target.slice))
        item = placed(ast.Starred(self.call(node.target, "item", of, at), ast.Load()), node.target)
        return placed(ast.Expr(self.call(node, "in_place_item", code, item, value)), node)

    def visit_For(self, node: ast.For) -> ast.AST:
        self.inside(node)
        node.iter = self.call(node.iter, "loop", node.iter)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.inside(node)
        node.body.insert(0, self.statement(node.body[0], "tick"))
        return node

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        self.inside(node)
        node.iter = self.call(node.iter, "async_loop", node.iter)
        node.body.insert(0, self.statement(node.body[0], "tick"))
        return node

    def _decorated(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        node.decorator_list = [self.call(d, "judge", self.visit(d)) for d in node.decorator_list]

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._decorated(node)
        described = ast.get_docstring(node, clean=False) is not None
        first = node.body[0]
        body = node.body[described:]
        node.args = self.visit(node.args)
        node.returns = self.visit(node.returns) if node.returns else None
        visited = self.block(body)
        node.body = [*([first] if described else []), self.statement(first, "step"), *visited]
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._decorated(node)
        node.bases = [self.visit(base) for base in node.bases]
        for k in node.keywords:
            k.value = self.visit(k.value) if k.arg else self.call(k.value, "mapping", self.visit(k.value))
        self.classes.append(node.name)
        node.body = self.block(node.body)
        self.classes.pop()
        return node

    def _with(self, node: ast.With | ast.AsyncWith) -> ast.AST:
        self.inside(node)
        for item in node.items:
            helper = "enter" if isinstance(node, ast.With) else "async_enter"
            item.context_expr = self.call(item.context_expr, helper, item.context_expr)
        return node

    visit_With = visit_AsyncWith = _with

    def temporary(self, at: ast.AST, store: bool = False, of: str = "") -> ast.Name:
        if not of:
            self.temporaries += 1
        name = of or f"@{self.temporaries}"  # no name of the source is like it
        return placed(ast.Name(name, ast.Store() if store else ast.Load()), at)

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        subject = self.temporary(node.subject, store=True)
        given = placed(ast.Assign([subject], self.visit(node.subject)), node.subject)
        found = self.temporary(node, store=True).id
        tests: list[ast.If] = []
        for case in node.cases:
            at = case.pattern
            pattern = Pattern(at, self.visit)
            asked = [self.temporary(at, of=subject.id), self.constant(at, pattern.spec), self.constant(at, len(pattern.names))]
            answer = self.temporary(at, store=True, of=found)
            terms: list[ast.expr] = [placed(ast.NamedExpr(answer, self.call(at, "match", *asked, *pattern.values)), at)]
            for i, name in enumerate(pattern.names):
                place = pattern.places[name]
                item = ast.Subscript(self.temporary(place, of=found), self.constant(place, i + 1), ast.Load())
                bound = ast.NamedExpr(placed(ast.Name(name, ast.Store()), place), placed(item, place))
                terms.append(placed(ast.Tuple([placed(bound, place)], ast.Load()), place))
            terms += [self.visit(case.guard)] if case.guard else []
            test = terms[0] if len(terms) == 1 else placed(ast.BoolOp(ast.And(), terms), at)
            branch = placed(ast.If(test, self.block(case.body), []), at)
            if tests:
                tests[-1].orelse = [branch]
            tests.append(branch)
        gone = ast.Delete([placed(ast.Name(name, ast.Del()), node) for name in (subject.id, found)])
        return [given, tests[0], placed(gone, node)]

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        self.inside(node)
        node.exc, node.cause = (part and self.call(part, "raised", part) for part in (node.exc, node.cause))
        return node

    def visit_Try(self, node: ast.Try | ast.TryStar) -> ast.AST:
        self.inside(node)
        for handler in node.handlers:  # what caught the end of the budget meets it again
            handler.body.insert(0, self.statement(handler.body[0], "step"))
        if node.finalbody:
            node.finalbody.insert(0, self.statement(node.finalbody[0], "step"))
        return node

    visit_TryStar = visit_Try


_REWRITES: dict[type[ast.AST], Callable[[_Rewriter, Any], Any]] = {
    kind: getattr(_Rewriter, f"visit_{kind.__name__}", _Rewriter.inside if fields else _Rewriter.leave)
    for kind, fields in _FIELDS.items()
}
