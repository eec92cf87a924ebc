"""``guarded_eval``: a string evaluated under the ``eval-*`` rules of a profile, with no sandbox around it."""

# os.path: importing pathlib would cost more than the rest.
# ruff: noqa: PTH109, PTH116

from __future__ import annotations

import _string  # type: ignore[import-not-found] # noqa: F401 - for bindings/guard/eval_format.c: here it is the package's own import
import os
import sys
import threading
import types

from . import _alarm, _guard
from ._exceptions import RuleEvalPermissionError, SandboxContextWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from types import CodeType
    from typing import Any

    from ._eval_rules import Rules

FILENAME = "<guarded>"
#: Compiled sources that are kept, all profiles together.
KEPT = 512
_PLAIN = frozenset({int, float, str, bytes, bool, list, dict, tuple, set, type(None)})
_RISKY_MODULES = frozenset({"os", "posix", "subprocess", "ctypes", "socket", "_socket", "shutil", "importlib", "sys"})
_RISKY_NAMES = frozenset({"getattr", "setattr", "delattr", "open", "eval", "exec", "compile", "__import__", "globals", "vars"})

_lock = threading.Lock()
_places: dict[tuple[object, str], str] = {}
_tables: dict[str, tuple[object, dict[str, Rules]]] = {}
_codes: dict[tuple[int, str, frozenset[str], str, str], tuple[Rules, CodeType, dict[str, object]]] = {}
_warned: set[tuple[str, int]] = set()


def guarded_eval(source: str, *, profile: str | None = None, names: MutableMapping[str, Any] | None = None) -> Any:
    """Evaluates ``source`` under the guarded profile ``profile`` (None: the plain ``eval-*`` lines) of ``.py-sandboxes``.

    An expression gives its value; statements give None, and what they assign is put into ``names``, which is also what the
    source sees besides the builtins that ``eval-call`` names. With ``eval-namespace=closed`` it sees nothing of ``names``.

    The profile is the one that ``sandboxes()`` would take: at the root of the calling package, else in the current folder.

    Raises :class:`EvalSyntaxRejected` with every violation before anything runs; :class:`RuleEvalPermissionError` for what
    shows only at run time, and where no such profile exists; :class:`EvalInterrupted`, a BaseException, where a bound is
    passed; ``ConfigSyntaxError`` for a profile with a mistake; and what the source itself raises.
    """
    if not isinstance(source, str):
        raise TypeError(f"guarded_eval() takes a str, not {type(source).__name__}")
    source = str.__str__(source).lstrip(" \t")
    if _guard.active():  # where frames are nobody's to look at
        from ._eval_inside import own_rules

        return run(source, "", own_rules(profile or ""), names, None)
    frame = sys._getframe(1)
    rules = _rules(profile or "", frame.f_globals.get("__package__"))
    if names is None and rules.namespace == "caller":
        names = {**frame.f_globals, **frame.f_locals}
    return run(source, "", rules, names, (frame.f_code.co_filename, frame.f_lineno))


def run(
    source: str | tuple[CodeType, dict[str, object]],
    kind: str,
    rules: Rules,
    names: MutableMapping[str, Any] | None,
    caller: tuple[str, int] | None,
) -> Any:
    """Runs a source, or what :func:`code_of` has made of one. ``caller`` is a file and a line, for warnings."""
    given = {} if names is None or rules.namespace == "closed" else {str(k): v for k, v in dict(names).items()}
    given.pop("__builtins__", None)
    if rules.namespace == "caller":
        _warn_once("everything of its caller (eval-namespace=caller)", caller)
    _warn_of(given, caller)
    if _guard.learning():
        from . import _eval_learn

        return _eval_learn.run(source, kind, rules, names, given)
    return evaluate(source, kind, rules, names, given)


def evaluate(
    source: str | tuple[CodeType, dict[str, object]],
    kind: str,
    rules: Rules,
    names: MutableMapping[str, Any] | None,
    given: dict[str, Any],
    learned: dict[tuple[str, str], object] | None = None,
) -> Any:
    """Runs a source with what was ``given`` of ``names``. ``learned``: in a learning run, where what it let through is put."""
    called = frozenset(name for name in given if rules.calls(name)) if given else frozenset()
    code, builtins = code_of(source, rules, called, kind) if isinstance(source, str) else source
    space = dict(given)
    granted = tuple(given[name] for name in called)
    bounds = (rules.max_iterations, rules.max_alloc, rules.max_call_depth, rules.timeout, rules.max_leaked)
    foreign = rules.modules.allow or any(type(value) not in _PLAIN for value in given.values())
    ring = foreign and _alarm.set_for(rules.timeout)
    try:
        return _guard.evaluate(code, space, builtins, granted, rules.runtime(), *bounds, learned)
    finally:
        if ring:
            _alarm.end()
        if names is not None:
            _copy_back(names, given, space)


def _copy_back(names: MutableMapping[str, Any], given: dict[str, Any], space: dict[str, Any]) -> None:
    for name, value in list(space.items()):
        if name != "__builtins__" and not name.startswith("@") and (name not in given or given[name] is not value):
            names[name] = value
    for name in given.keys() - space.keys():
        names.pop(name, None)


def code_of(
    source: str, rules: Rules, names: frozenset[str], kind: str = "", filename: str = FILENAME
) -> tuple[CodeType, dict[str, object]]:
    """The code of a source, and the builtins that it names: no others can be reached. ``kind`` "" takes what it is."""
    key = (id(rules), source, names, kind, filename)
    kept = _codes.get(key)
    if kept is not None and kept[0] is rules:
        return kept[1], kept[2]
    from . import _eval_check, _eval_look, _eval_rewrite

    tree = _eval_check.parse(source, rules, filename, kind)
    read = _eval_look.accepted(tree, rules)
    if read is None:
        _eval_check.check(tree, rules, source, filename, names)
        read = _eval_check.read_names(tree)
    builtins = {name: rules.builtins[name] for name in read if name in rules.builtins}
    code = _eval_rewrite.compiled(tree, filename)
    with _lock:
        while len(_codes) >= KEPT:
            del _codes[next(iter(_codes))]
        _codes[key] = (rules, code, builtins)
    return code, builtins


def _rules(name: str, package: object) -> Rules:
    place = (package, os.getcwd())
    path = _places.get(place)
    stamp = _stamp(path) if path is not None else None
    if path is None or stamp is None:
        path = _find(package)
        stamp = _stamp(path)
        if len(_places) < KEPT:
            _places[place] = path
    known = _tables.get(path)
    if known is None or known[0] != stamp:
        known = (stamp, _load(path))
        _tables[path] = known
    rules = known[1].get(name)
    if rules is None:
        line = f"eval-syntax:{name}=arith" if name else "eval-syntax=arith"
        what = f"no guarded profile {name}" if name else "no eval-* line"
        raise RuleEvalPermissionError(f"{path} has {what}, so no string may be evaluated by it. Add:\n    {line}")
    return rules


def _find(package: object) -> str:
    from ._spec import find_profile

    path, _ = find_profile(None, package.partition(".")[0] if isinstance(package, str) and package else None)
    if path is None:
        raise RuleEvalPermissionError(
            "there is no profile .py-sandboxes here, so no string may be evaluated. Add to one:\n    eval-syntax=arith"
        )
    return path


def _stamp(path: str) -> object:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _load(path: str) -> dict[str, Rules]:
    from ._eval_rules import Rules
    from ._native import ask

    here = {"env": dict(os.environ), "cwd": os.getcwd(), "interpreter": "", "package": ""}
    tables = ask("EvalProfiles", {"profile": path, **here})
    return {name: Rules(name, table) for name, table in tables.items()}


def _warn_of(given: dict[str, Any], caller: tuple[str, int] | None) -> None:
    for name, value in given.items():
        if type(value) in _PLAIN:
            continue
        module = (
            getattr(value, "__module__", None)
            if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type))
            else None
        )
        risky = isinstance(value, types.ModuleType) or module in _RISKY_MODULES
        if not risky and isinstance(value, types.BuiltinFunctionType):
            risky = module in ("builtins", "io", "_io") and value.__name__ in _RISKY_NAMES
        if risky:
            _warn_once(name, caller)


def _warn_once(name: str, caller: tuple[str, int] | None) -> None:
    import warnings

    site = caller or (FILENAME, 1)
    if site not in _warned:
        _warned.add(site)
        warnings.warn_explicit(
            f"the evaluated string sees {name}, which reaches far beyond it; pass what it needs instead, or grant no "
            "attribute of it",
            SandboxContextWarning,
            *site,
        )
