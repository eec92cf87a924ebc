"""The rewriting of a source that passed the check: what could reach too far or take too much becomes a call of a C function.

Names, positions and structure stay those of the user's text. The C functions stand in the constants of the code, where no
name of the source leads: the tree has a string with an unguessable token in their place until it is compiled.
"""

from __future__ import annotations

import ast
import dis
import os
import sys
from types import CodeType

from . import _guard

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
#: Expressions whose value is no container.
FLAT = (ast.Constant, ast.UnaryOp, ast.JoinedStr, ast.Compare)
#: Until 3.13 an object that cannot be iterated is blamed on the whole comprehension.
WHOLE = sys.version_info < (3, 13)
#: Instructions that the rewriting leaves none of. Code that has one was rewritten wrongly, and does not run.
NEVER = frozenset(
    {
        *("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "STORE_ATTR", "DELETE_ATTR", "LOAD_BUILD_CLASS", "MATCH_CLASS"),
        *("IMPORT_NAME", "IMPORT_FROM", "IMPORT_STAR", "LOAD_LOCALS", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_FROM_DICT_OR_DEREF"),
        *("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "BUILD_STRING", "BEFORE_WITH", "BEFORE_ASYNC_WITH"),
        *("GET_AITER", "GET_AWAITABLE", "BINARY_SLICE", "STORE_SLICE", "BINARY_OP"),
    }
)


def compiled(tree: ast.Module | ast.Expression, filename: str) -> CodeType:
    """The code of a checked source, ready to run under a meter."""
    token = f"@{os.urandom(16).hex()}:"
    tree = ast.fix_missing_locations(_Rewriter(token).visit(tree))
    code = compile(tree, filename, "eval" if isinstance(tree, ast.Expression) else "exec", dont_inherit=True)
    return _with_functions(code, token, _guard.eval_helpers())


def _with_functions(code: CodeType, token: str, functions: dict[str, object]) -> CodeType:
    for instruction in dis.get_instructions(code):
        if instruction.opname in NEVER:
            raise SystemError(f"pysandboxes: {instruction.opname} is left in evaluated code")

    def constant(value: object) -> object:
        if isinstance(value, str) and value.startswith(token):
            return functions[value.removeprefix(token)]
        return _with_functions(value, token, functions) if isinstance(value, CodeType) else value

    return code.replace(co_consts=tuple(map(constant, code.co_consts)))


def _slices(node: ast.AST) -> bool:
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Tuple) and any(map(_slices, node.elts)))


class _Rewriter(ast.NodeTransformer):
    def __init__(self, token: str) -> None:
        self.token = token

    def call(self, at: ast.AST, name: str, *args: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.expr:
        # `f if True else 0` compiles to f alone; a plain constant in the place of a function would be warned of
        function = ast.IfExp(ast.Constant(True), ast.Constant(self.token + name), ast.Constant(0))
        made = ast.copy_location(ast.Call(function, list(args), keywords or []), at)
        for part in (function, function.test, function.body, function.orelse):
            ast.copy_location(part, at)
        return made

    def constant(self, at: ast.AST, value: object) -> ast.expr:
        return ast.copy_location(ast.Constant(value), at)  # type: ignore[arg-type]

    def statement(self, at: ast.stmt, name: str) -> ast.stmt:
        return ast.copy_location(ast.Expr(self.call(at, name)), at)

    # ---- expressions ----

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self.call(node, "read", self.visit(node.value), self.constant(node, node.attr))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        args = [self.visit(arg) for arg in node.args]
        keywords = [
            ast.copy_location(
                ast.keyword(k.arg, self.visit(k.value) if k.arg else self.call(k.value, "mapping", self.visit(k.value))), k
            )
            for k in node.keywords
        ]
        if isinstance(node.func, ast.Attribute):
            of = self.visit(node.func.value)
            return self.call(node, "method", of, self.constant(node.func, node.func.attr), *args, keywords=keywords)
        return self.call(node, "call", self.visit(node.func), *args, keywords=keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        code = self.constant(node, OPERATORS[type(node.op)])
        return self.call(node, "operator", code, self.visit(node.left), self.visit(node.right))

    def whole(self, node: ast.expr) -> ast.expr:
        """What C code will compare or hash, as deep as it goes."""
        return node if isinstance(node, FLAT) else self.call(node, "whole", node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        sides = [node.left, *node.comparators]
        # a comparison with a constant never goes deep; nor does one of identities
        flat = len(sides) == 2 and (any(isinstance(s, FLAT) for s in sides) or isinstance(node.ops[0], (ast.Is, ast.IsNot)))
        self.generic_visit(node)
        walks = [isinstance(op, (ast.In, ast.NotIn)) for op in node.ops]
        if walks == [True]:
            found = self.call(node, "in", node.left, node.comparators[0])
            return found if isinstance(node.ops[0], ast.In) else ast.copy_location(ast.UnaryOp(ast.Not(), found), node)
        node.comparators = [self.call(c, "member", c) if w else c for c, w in zip(node.comparators, walks, strict=True)]
        if not flat:
            node.left, node.comparators = self.whole(node.left), [*map(self.whole, node.comparators)]
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            node.value = self.call(node.value, "star", node.value)
        return node

    def _made(self, node: ast.List | ast.Tuple | ast.Set) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node, ast.Set):
            node.elts = [e if isinstance(e, ast.Starred) else self.whole(e) for e in node.elts]
        plain = isinstance(node, ast.Tuple) and all(isinstance(e, ast.Constant) for e in node.elts)
        return node if plain or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) else self.call(node, "made", node)

    visit_List = visit_Tuple = visit_Set = _made

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        node.values = [self.call(v, "mapping", v) if k is None else v for k, v in zip(node.keys, node.values, strict=True)]
        node.keys = [k and self.whole(k) for k in node.keys]
        return self.call(node, "made", node)

    def visit_Slice(self, node: ast.Slice) -> ast.AST:
        parts = [self.visit(p) if p else self.constant(node, None) for p in (node.lower, node.upper, node.step)]
        return self.call(node, "bounds", *parts)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        sliced = _slices(node.slice)
        self.generic_visit(node)
        node.slice = node.slice if sliced else self.whole(node.slice)
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
        self.generic_visit(node)
        step = "loop" if isinstance(node, ast.GeneratorExp) else "collect"
        if isinstance(node, ast.SetComp):
            node.elt = self.whole(node.elt)
        elif isinstance(node, ast.DictComp):
            node.key = self.whole(node.key)
        for part in node.generators:
            part.iter = self.call(node if WHOLE else part.iter, step, part.iter)
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    # ---- statements ----

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        target = node.targets[0]
        if isinstance(target, (ast.Tuple, ast.List)) and any(isinstance(e, ast.Starred) for e in target.elts):
            node.value = self.call(node.value, "star", node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        code = self.constant(node, OPERATORS[type(node.op)])
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            old = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            return ast.copy_location(ast.Assign([node.target], self.call(node, "in_place", code, old, value)), node)
        if not isinstance(node.target, ast.Subscript):
            raise SystemError("pysandboxes: such an assignment is not rewritten")
        of, at = self.visit(node.target.value), self.whole(self.visit(node.target.slice))
        item = ast.copy_location(ast.Starred(self.call(node.target, "item", of, at), ast.Load()), node.target)
        return ast.copy_location(ast.Expr(self.call(node, "in_place_item", code, item, value)), node)

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = self.call(node.iter, "loop", node.iter)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.body.insert(0, self.statement(node.body[0], "tick"))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        described = ast.get_docstring(node, clean=False) is not None
        first = node.body[0]
        body = node.body[described:]
        node.body = [] if not described else [first]
        documented = node.body
        node.body = [self.visit(stmt) for stmt in body]
        node.args = self.visit(node.args)
        node.returns = self.visit(node.returns) if node.returns else None
        node.body = [*documented, self.statement(first, "step"), *node.body]
        return node

    def visit_Try(self, node: ast.Try) -> ast.AST:
        self.generic_visit(node)
        for handler in node.handlers:  # what caught the end of the budget meets it again
            handler.body.insert(0, self.statement(handler.body[0], "step"))
        if node.finalbody:
            node.finalbody.insert(0, self.statement(node.finalbody[0], "step"))
        return node
