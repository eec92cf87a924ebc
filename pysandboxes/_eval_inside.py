"""``eval``, ``exec`` and ``compile`` in a sandbox with ``eval-*`` rules; ``bindings/guard/eval_door.c`` calls them."""

from __future__ import annotations

import os
import types

from . import _guard
from ._evaluated import KEPT, code_of, run
from ._exceptions import RuleEvalPermissionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from ._eval_rules import Rules

#: `from __future__ import ...` of whoever calls compile(): they change nothing that is checked.
_FUTURE = 0x1FE0000
#: What a guarded compile() has made, by its address.
_made: dict[int, tuple[CodeType, dict[str, object]]] = {}
_own: dict[str, Rules] = {}


def evaluated(kind: str, caller: tuple[str, int, dict[str, Any] | None], source: Any, *args: Any, **kwargs: Any) -> Any:
    """``eval``, ``exec`` and ``compile`` of a program whose profile has ``eval-*`` rules: as they are, but guarded.

    ``caller`` is where it is called, and what is seen there if a profile says ``eval-namespace=caller``.

    NotImplemented for a code object that was not made here: the caller then asks whether it may run.
    """
    rules = own_rules("")
    if kind == "compile":
        return _compiled(rules, source, *args, **kwargs)
    space = args[0] if args else kwargs.get("globals")
    local = args[1] if len(args) > 1 else kwargs.get("locals")
    if space is not None and not isinstance(space, dict):
        raise TypeError(f"{kind}() arg 2 must be a dict, not {type(space).__name__}")
    if kwargs.keys() - {"globals", "locals"}:
        raise RuleEvalPermissionError("a guarded exec() takes no closure")
    if isinstance(source, types.CodeType):
        made = _made.get(id(source))
        if made is None or made[0] is not source:
            return NotImplemented
        source = made
    else:
        source = _text(source)
    names = None
    if space is not None or local is not None:
        names = {**(space or {}), **(dict(local) if local is not None else {})}
    elif rules.namespace == "caller" and caller[2] is not None:
        names = dict(caller[2])
    before = dict(names or {})
    try:
        result = run(source, kind, rules, names, caller[:2])
    finally:
        into = local if local is not None else space
        if into is not None and names is not None:
            for name, value in names.items():
                if name not in before or before[name] is not value:
                    into[name] = value
            for name in before.keys() - names.keys():
                into.pop(name, None)
    return result if kind == "eval" else None


def _text(source: Any) -> str:
    if isinstance(source, str):
        return str.__str__(source)
    if not isinstance(source, (bytes, bytearray, memoryview)):
        raise TypeError("eval() arg 1 must be a string, bytes or code object")
    return bytes(source).decode("utf-8")  # with another declaration of its encoding it is refused, since it is none of UTF-8


def _compiled(
    rules: Rules,
    source: Any,
    filename: Any,
    mode: str,
    flags: int = 0,
    dont_inherit: bool = False,
    optimize: int = -1,
    **kwargs: Any,
) -> Any:
    import ast

    name = os.fsdecode(filename)
    if flags & ast.PyCF_ONLY_AST:
        return ast.parse(source, name, mode)
    if flags & ~_FUTURE or kwargs.keys() - {"_feature_version"} or mode not in ("eval", "exec"):
        raise RuleEvalPermissionError("a guarded compile() takes mode eval or exec, and no flags that change what it compiles")
    if isinstance(source, ast.AST):
        # a tree can say what no text does; what its text says is checked
        source = ast.unparse(source)
    text = _text(source)
    if _guard.learning():
        from . import _eval_learn

        rules = _eval_learn.widened(text, rules, frozenset(), mode, name)
    code, builtins = code_of(text, rules, frozenset(), mode, name)
    while len(_made) >= KEPT:
        _made.pop(next(iter(_made)), None)
    _made[id(code)] = (code, builtins)
    return code


def own_rules(name: str) -> Rules:
    """Those that the sandbox was started with."""
    from ._eval_rules import Rules

    if not _own:
        import json

        tables = json.loads(_guard.eval_table() or b"{}")
        _own.update({name: Rules(name, table) for name, table in tables.items()})
    if name not in _own and "*" in _own and _guard.learning():
        _own[name] = Rules(name, _own["*"].table)  # it starts from nothing
    if name not in _own:
        line = f"eval-syntax:{name}=arith" if name else "eval-syntax=arith"
        what = f"no guarded profile {name}" if name else "no eval-* line without a profile's name"
        raise RuleEvalPermissionError(f"the profile of this sandbox has {what}. Add:\n    {line}")
    return _own[name]
