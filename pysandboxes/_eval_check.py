"""The check of a source before it runs: every violation at once, each with its place and the line that would allow it.

It is a courtesy to whoever wrote the source. What holds is behind the rewritten source: the namespace and the C functions of
``bindings/guard/eval_*.c``. Only what this version can rewrite passes; everything else is refused here.

Most sources never come here: `_eval_look` passes what is plainly allowed. What is refused here by more than the class of a
node, a name or an attribute has to be left to this check there, too.
"""

from __future__ import annotations

import ast
import builtins

from ._eval_rewrite import mangled
from ._eval_rules import grantable, matches
from ._guard import EvalSyntaxRejected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._eval_rules import Rules

#: Needs no rule of its own.
FREE = frozenset(
    {
        *("Module", "Expression", "Constant", "Name", "Load", "Store", "Del", "Tuple", "List", "Dict", "Set", "Expr"),
        *("Call", "keyword", "Attribute"),  # their own keys decide
        *(kind.__name__ for base in (ast.operator, ast.unaryop, ast.cmpop, ast.boolop) for kind in base.__subclasses__()),
    }
)
#: What the rewriting knows. Another class is refused even where a rule names it.
KNOWN = FREE | frozenset(
    {
        *("BinOp", "UnaryOp", "Compare", "BoolOp", "If", "IfExp", "For", "While", "Break", "Continue"),
        *("ListComp", "SetComp", "DictComp", "GeneratorExp", "comprehension"),
        *("Assign", "AugAssign", "AnnAssign", "NamedExpr"),
        *("FunctionDef", "Return", "arguments", "arg", "Lambda"),
        *("AsyncFunctionDef", "Await", "AsyncFor", "AsyncWith", "ClassDef", "Yield", "YieldFrom"),
        *("Try", "TryStar", "Raise", "ExceptHandler", "With", "withitem", "Import", "ImportFrom", "alias"),
        *(
            "Match",
            "match_case",
            "MatchValue",
            "MatchSingleton",
            "MatchSequence",
            "MatchMapping",
            "MatchClass",
            "MatchStar",
            "MatchAs",
        ),
        "MatchOr",
        *("Subscript", "Slice", "Starred", "JoinedStr", "FormattedValue"),
        *("Assert", "Delete", "Global", "Nonlocal", "Pass"),
    }
)
GROUPS = {
    **dict.fromkeys(("BinOp", "UnaryOp"), "arith"),
    **dict.fromkeys(("Compare", "BoolOp"), "compare"),
    **dict.fromkeys(("If", "IfExp"), "conditional"),
    **dict.fromkeys(("For", "While", "Break", "Continue"), "loop"),
    **dict.fromkeys(("ListComp", "SetComp", "DictComp", "GeneratorExp"), "comprehension"),
    **dict.fromkeys(("Assign", "AugAssign", "AnnAssign", "NamedExpr"), "assign"),
    **dict.fromkeys(("FunctionDef", "Return", "arguments", "arg", "Lambda"), "func"),
    **dict.fromkeys(("Try", "TryStar", "Raise", "ExceptHandler"), "exception"),
    **dict.fromkeys(("AsyncFunctionDef", "Await", "AsyncFor", "AsyncWith"), "async"),
    "ClassDef": "class",
    **dict.fromkeys(("With", "withitem"), "context"),
    **dict.fromkeys(("Import", "ImportFrom", "alias"), "import"),
    **dict.fromkeys(("Yield", "YieldFrom"), "yield"),
    **dict.fromkeys(("Match", "match_case", "MatchValue", "MatchSingleton", "MatchSequence", "MatchMapping"), "match"),
    **dict.fromkeys(("MatchClass", "MatchStar", "MatchAs", "MatchOr"), "match"),
    **dict.fromkeys(("Subscript", "Slice", "Starred"), "subscript"),
    **dict.fromkeys(("JoinedStr", "FormattedValue"), "fstring"),
}
WARNINGS = {
    "__class__": "it opens the whole hierarchy of types, and with it every class that is loaded",
    "__subclasses__": "it names every class that is loaded",
    "__globals__": "it holds everything that a module knows",
    "__dict__": "it shows all that an object holds, past every other rule",
    "os": "it exposes the environment and starts programs",
    "getattr": "it reads attributes by names that are made at run time; each is still checked",
}
#: Lead to frames and code, and so to every name of the host: the run refuses them whatever a rule says.
NEVER = (
    "gi_*",
    "cr_*",
    "ag_*",
    "f_globals",
    "f_locals",
    "f_builtins",
    "f_back",
    "f_code",
    "f_trace*",
    "tb_frame",
    "tb_next",
    "co_*",
)
#: Fields of nodes that hold identifiers.
IDENTIFIERS = ("id", "name", "arg", "attr", "names", "rest", "asname")
#: Nodes that are looked at besides.
SPECIAL = frozenset({"Attribute", "Call", "Subscript", "Starred", "ClassDef", "Import", "ImportFrom", "MatchClass"})
#: Parts of others: where those are refused, nothing is said of these.
PARTS = frozenset({"alias", "arguments", "withitem", "ExceptHandler", "comprehension", "match_case"})
PARAMETRIC = frozenset({"FunctionDef", "AsyncFunctionDef", "ClassDef"})
BRACKETS = {ord(c): step for c, step in zip("([{)]}", (1, 1, 1, -1, -1, -1), strict=True)}


_known: dict[type[ast.AST], tuple[str, ...]] = {}


def _identifiers(kind: type[ast.AST]) -> tuple[str, ...]:
    fields = _known.get(kind)
    if fields is None:
        fields = _known[kind] = tuple(field for field in kind._fields if field in IDENTIFIERS)
    return fields


class Violation:
    """One thing that a source may not do. ``line`` is 1-based, ``column`` 0-based in characters, ``add`` may be ""."""

    __slots__ = ("add", "column", "line", "narrower", "text", "warning")

    def __init__(self, text: str, line: int, column: int, add: str = "", narrower: str = "", warning: str = "") -> None:
        self.text, self.line, self.column = text, line, column
        self.add, self.narrower, self.warning = add, narrower, warning

    def shown(self, lines: list[str], filename: str) -> str:
        source = lines[self.line - 1] if 0 < self.line <= len(lines) else ""
        text = f"{filename}:{self.line}:{self.column + 1}: {self.text}"
        if source:
            text += f"\n    {source}\n    {' ' * self.column}^"
        if self.add:
            text += f"\n  to allow it: {self.add}"
        if self.narrower:
            text += f"\n  narrower: {self.narrower}"
        if self.warning:
            text += f"\n  beware: {self.warning}"
        return text


def rejection(violations: list[Violation], source: str, filename: str) -> EvalSyntaxRejected:
    """The exception that lists them all, with the attributes of a SyntaxError for the first."""
    lines = source.split("\n")
    violations.sort(key=lambda v: (v.line, v.column))
    first = violations[0]
    count = "1 violation" if len(violations) == 1 else f"{len(violations)} violations"
    text = "\n".join([f"the source was refused: {count}", *(v.shown(lines, filename) for v in violations)])
    shown = lines[first.line - 1] if 0 < first.line <= len(lines) else ""
    error = EvalSyntaxRejected(text, (filename, first.line, first.column + 1, shown))
    error.violations = tuple(violations)
    error.add = list(dict.fromkeys(v.add for v in violations if v.add))
    return error


def parse(source: str, rules: Rules, filename: str, kind: str = "") -> ast.Module | ast.Expression:
    """The tree: of an expression where the source is one. What is too large or too deep never reaches the parser."""
    if len(source) > 200 * rules.max_nodes:
        raise rejection(
            [Violation("the source is too long", 1, 0, rules.key("eval-max-nodes") + "=…")], source[:1000], filename
        )
    most = 4 * rules.max_depth + 20
    if sum(map(source.count, "([{")) > most and _deepest(source) > most:
        raise rejection(
            [Violation("the source is nested too deeply", 1, 0, rules.key("eval-max-depth") + "=…")], source, filename
        )
    try:
        if kind == "eval":
            return ast.parse(source, filename, "eval")
        tree = ast.parse(source, filename, "exec")
        return tree if kind else _expression(tree, source, filename) or tree
    except (RecursionError, MemoryError):
        raise rejection([Violation("the source is nested too deeply", 1, 0)], source, filename) from None


def _expression(tree: ast.Module, source: str, filename: str) -> ast.Expression | None:
    """The same as an expression, where it is one. Statements alone have `;`, bare stars and yields, and blanks at the end."""
    only = tree.body[0] if len(tree.body) == 1 else None
    if not isinstance(only, ast.Expr):
        return None
    value = only.value
    starred = isinstance(value, ast.Tuple) and any(isinstance(part, ast.Starred) for part in value.elts)
    bare = starred or isinstance(value, (ast.Starred, ast.Yield, ast.YieldFrom))
    if not bare and ";" not in source and not source.rstrip("\n")[-1:].isspace():
        return ast.Expression(value)
    try:
        return ast.parse(source, filename, "eval")
    except SyntaxError:
        return None


def _deepest(source: str) -> int:
    depth = deepest = 0
    for char in source:
        if step := BRACKETS.get(ord(char)):
            depth += step
            deepest = max(deepest, depth)
    return deepest


def _column(lines: list[bytes], node: ast.AST) -> tuple[int, int]:
    line, at = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    if 0 < line <= len(lines):
        at = len(lines[line - 1][:at].decode("utf-8", "replace"))
    return line, at


def check(tree: ast.Module | ast.Expression, rules: Rules, source: str, filename: str, names: frozenset[str]) -> None:
    """Raises :class:`EvalSyntaxRejected` with every violation. ``names`` are the context's."""
    found: list[Violation] = []
    lines: list[bytes] = []
    nodes = list(ast.walk(tree))
    defined = _defined(nodes)
    count, deep = 0, False
    classes: list[str] = []

    def say(node: ast.AST, text: str, add: str = "", narrower: str = "", warning: str = "") -> None:
        if not lines:
            lines.extend(source.encode("utf-8", "surrogatepass").split(b"\n"))
        found.append(Violation(text, *_column(lines, node), add, narrower, warning))

    def identifier(node: ast.AST, name: str) -> None:
        if name.startswith("__") and (name == "__builtins__" or name not in rules.magic):
            add = "" if name == "__builtins__" else f"{rules.key('eval-magic')}={name}"
            say(node, f"the name {name} is not allowed", add, warning=WARNINGS.get(name, ""))

    def private(name: str) -> bool:
        return bool(classes) and mangled(name, classes[-1]) != name

    def look(node: ast.AST, place: ast.AST, parent: ast.AST | None, depth: float) -> None:
        nonlocal count, deep
        count += 1
        place = node if hasattr(node, "lineno") else place
        kind = type(node).__name__
        if kind not in KNOWN:
            say(place, f"this version cannot guard {kind}")
            return  # nor what is in it
        told = kind in PARTS and type(parent).__name__ not in rules.syntax  # of what it is a part of
        if kind not in FREE and kind not in rules.syntax and not told:
            group = GROUPS.get(kind, kind)
            own = f"{rules.key('eval-syntax')}={kind}"
            say(place, f"{kind} is not allowed", f"{rules.key('eval-syntax')}={group}", own if group != kind else "")
        for field in _identifiers(type(node)):
            value = getattr(node, field)
            for name in value if isinstance(value, list) else [value]:
                if isinstance(name, str):
                    if not private(name):
                        identifier(place, name)
                    elif isinstance(node, ast.Attribute) and mangled(name, classes[-1]) not in rules.attribute:
                        say(
                            node,
                            f"the attribute {name} may not be read",
                            f"{rules.key('eval-attribute')}={mangled(name, classes[-1])}",
                        )
        if kind in SPECIAL or kind in PARAMETRIC:
            _special(node, parent)
        if isinstance(node, (ast.expr, ast.stmt, ast.comprehension)):
            # a + b + c is nested, but nobody reads it so
            chain = isinstance(node, ast.BinOp) and isinstance(parent, ast.BinOp) and parent.left is node
            depth += 0.1 if chain else 1
        if depth > rules.max_depth:
            if not deep:
                say(place, f"nested deeper than {rules.max_depth}", f"{rules.key('eval-max-depth')}={rules.max_depth * 2}")
            deep = True
            return
        if isinstance(node, ast.ClassDef):
            for child in (*node.decorator_list, *node.bases, *node.keywords):
                look(child, place, node, depth)
            classes.append(node.name)
            for child in node.body:
                look(child, place, node, depth)
            classes.pop()
            return
        for child in ast.iter_child_nodes(node):
            look(child, place, node, depth)

    def _special(node: ast.AST, parent: ast.AST | None) -> None:
        if isinstance(node, ast.Attribute):
            if not isinstance(node.ctx, ast.Load) and node.attr.startswith("__") and not private(node.attr):
                say(node, f"the attribute {node.attr} cannot be set or deleted")
            elif any(matches(pattern, node.attr) for pattern in NEVER):
                say(node, f"the attribute {node.attr} may not be read, whatever a rule says")
            elif not node.attr.startswith("__") and node.attr not in rules.attribute:
                say(node, f"the attribute {node.attr} may not be read", f"{rules.key('eval-attribute')}={node.attr}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name not in defined and name not in rules.call:
                value = vars(builtins).get(name)
                if value is not None and name not in names and not grantable(name, value):
                    say(node, f"{name} cannot be granted to a guarded string")
                else:
                    add = f"{rules.key('eval-call')}={name}"
                    say(node, f"{name} may not be called", add, warning=WARNINGS.get(name, ""))
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and _slices(node.slice):
            say(node, "this version cannot guard an assignment to a slice")
        elif isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Store) and not _starred_at_top(node, parent, tops):
            say(node, "this version cannot guard a starred name within a nested target")
        elif getattr(node, "type_params", None):
            say(node, "this version cannot guard type parameters")
        elif isinstance(node, ast.ClassDef) and any(k.arg == "metaclass" for k in node.keywords):
            say(node, "a class cannot have a metaclass")
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            _import(node)
        elif isinstance(node, ast.MatchClass):
            for name in node.kwd_attrs:
                identifier(node, name)
                if not name.startswith("__") and name not in rules.attribute:
                    say(node, f"the attribute {name} may not be read", f"{rules.key('eval-attribute')}={name}")

    def _import(node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.ImportFrom) and (node.level or not node.module):
            say(node, "an import has to name its module in full")
            return
        named = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        members = [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        for name in named:
            if not rules.imports(name) and not (members and all(map(rules.imports, members))):
                say(
                    node,
                    f"the module {name} may not be imported",
                    f"{rules.key('eval-import')}={name}",
                    warning=WARNINGS.get(name, ""),
                )
        if isinstance(node, ast.Import):
            return
        for alias in node.names:
            if alias.name == "*":
                say(node, "import * cannot be guarded: name what is wanted")
            elif not (
                rules.imports(f"{node.module}.{alias.name}") or alias.name in rules.attribute or alias.name.startswith("__")
            ):
                say(node, f"the attribute {alias.name} may not be read", f"{rules.key('eval-attribute')}={alias.name}")

    tops = {id(target) for node in nodes if isinstance(node, ast.Assign) and len(node.targets) == 1 for target in node.targets}
    try:
        look(tree, tree, None, 0)
    except RecursionError:
        raise rejection([Violation("the source is nested too deeply", 1, 0)], source, filename) from None
    if count > rules.max_nodes:
        found.append(
            Violation(f"the source has more than {rules.max_nodes} nodes", 1, 0, f"{rules.key('eval-max-nodes')}={count}")
        )
    if found:
        raise rejection(found, source, filename)


def read_names(tree: ast.AST) -> set[str]:
    """Every name that a source reads."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def bound_names(tree: ast.AST) -> set[str]:
    """Every name that a source binds."""
    return _defined(list(ast.walk(tree)))


def _slices(node: ast.AST) -> bool:
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Tuple) and any(map(_slices, node.elts)))


def _starred_at_top(node: ast.AST, parent: ast.AST | None, tops: set[int]) -> bool:
    return id(parent) in tops


def _defined(nodes: list[ast.AST]) -> set[str]:
    """Names that the source binds itself: it may call what it bound, and the run decides by the object."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names
