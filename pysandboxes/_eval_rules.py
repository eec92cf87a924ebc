"""What a guarded profile allows: the engine's table of one profile, ready for the check of a source and for its run."""

from __future__ import annotations

import datetime

from . import _guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The groups of ``eval-attribute``, by the types whose public methods they are in the running interpreter.
METHOD_GROUPS: dict[str, tuple[type, ...]] = {
    "str-methods": (str,),
    "list-methods": (list,),
    "dict-methods": (dict,),
    "set-methods": (set, frozenset),
    "tuple-methods": (tuple,),
    "num-methods": (int, float, complex),
    "bytes-methods": (bytes, bytearray),
    "date-methods": (datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
}
#: They walk the attributes that a text names: granted by their own name only.
WALKERS = frozenset({"format", "format_map"})

#: Nothing of the plain builtins besides these can be granted; exception classes can.
CONSTANTS = frozenset({"None", "True", "False", "Ellipsis", "NotImplemented"})


def matches(pattern: str, name: str) -> bool:
    """Does ``name`` match a pattern with at most one ``*``?"""
    head, star, tail = pattern.partition("*")
    if not star:
        return pattern == name
    return len(name) >= len(head) + len(tail) and name.startswith(head) and name.endswith(tail)


def _ungrouped(names: list[str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        if name in METHOD_GROUPS:
            for kind in METHOD_GROUPS[name]:
                found += [known for known in dir(kind) if not known.startswith("_") and known not in WALKERS]
        else:
            found.append(name)
    return tuple(dict.fromkeys(found))


class NameSet:
    """Names that are allowed and denied; a denial wins."""

    __slots__ = ("allow", "deny")

    def __init__(self, table: dict[str, list[str]]) -> None:
        self.allow = _ungrouped(table["allow"])
        self.deny = _ungrouped(table["deny"])

    def __contains__(self, name: str) -> bool:
        return any(matches(p, name) for p in self.allow) and not any(matches(p, name) for p in self.deny)


class Rules:
    """One guarded profile. ``name`` is "" for the plain one."""

    def __init__(self, name: str, table: dict[str, Any]) -> None:
        self.name, self.table = name, table
        self.syntax = frozenset(table["syntax"]["allow"]) - frozenset(table["syntax"]["deny"])
        self.call = NameSet(table["call"])
        self.attribute = NameSet(table["attribute"])
        self.magic = NameSet(table["magic"])
        self.modules = NameSet(table["import"])
        self.namespace: str = table["namespace"]
        self.timeout: float = table["timeout"]
        self.max_iterations: int = table["max_iterations"]
        self.max_call_depth: int = table["max_call_depth"]
        self.max_depth: int = table["max_depth"]
        self.max_nodes: int = table["max_nodes"]
        self.max_alloc: int = table["max_alloc"]
        self.max_leaked: int = table["max_leaked_threads"]
        self._calls: dict[str, bool] = {}
        self.decided: dict[str, bool] = {}
        #: Of _eval_look: the nodes that it passes, and the attributes.
        self.kinds: dict[type, tuple[int, str | None, tuple[str, ...]]] | None = None
        self.reads: dict[str, bool] = {}
        self.builtins = self._builtins()

    def calls(self, name: str) -> bool:
        """Does eval-call grant this name?"""
        known = self._calls.get(name)
        if known is None:
            known = name in self.call
            if len(self._calls) < 4096:
                self._calls[name] = known
        return known

    def imports(self, name: str) -> bool:
        """Does eval-import grant this module? A name stands for what is in it, too."""
        parts = name.split(".")
        names = [".".join(parts[: i + 1]) for i in range(len(parts))]
        allowed = any(matches(p, n) for p in self.modules.allow for n in names)
        return allowed and not any(matches(p, n) for p in self.modules.deny for n in names)

    def key(self, key: str) -> str:
        """How a key of this profile is written."""
        return f"{key}:{self.name}" if self.name else key

    def runtime(self) -> tuple[tuple[str, ...] | dict[str, bool], ...]:
        """The rules of names, as the meter takes them."""
        sets = (self.attribute, self.magic, self.call, self.modules)
        return (*(part for names in sets for part in (names.allow, names.deny)), self.decided)

    def _builtins(self) -> dict[str, object]:
        import builtins

        return {
            name: value
            for name, value in vars(builtins).items()
            if not name.startswith("_") and name in self.call and grantable(name, value)
        }


def grantable(name: str, value: object) -> bool:
    """Can a builtin be granted at all?"""
    return bool(_guard.eval_builtin(name)) or (isinstance(value, type) and issubclass(value, BaseException))
