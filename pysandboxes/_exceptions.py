"""The exceptions users catch, and what can be read from them: which denials stand behind a failure.

The classes are made in C (``_guard``), because the guard raises them where no Python of ours may run. Each refusal is
the builtin that plain Python would raise *and* a :class:`SandBoxError`.
"""

from __future__ import annotations

from ._guard import (
    ConfigSyntaxError,
    EvalInterrupted,
    EvalSyntaxRejected,
    RuleApiPermissionError,
    RuleEvalPermissionError,
    RuleFileNotFoundError,
    RuleModuleNotFoundError,
    RulePermissionError,
    RuleSocketConnectionRefusedError,
    SandBoxBaseExceptionError,
    SandBoxError,
    SandBoxProtocolError,
    SandBoxTimeoutError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ._guard import RestrictedUnpicklingError as RestrictedUnpicklingError

__all__ = (
    "ConfigSyntaxError",
    "Denial",
    "EvalInterrupted",
    "EvalSyntaxRejected",
    "RuleApiPermissionError",
    "RuleEvalPermissionError",
    "RuleFileNotFoundError",
    "RuleModuleNotFoundError",
    "RulePermissionError",
    "RuleSocketConnectionRefusedError",
    "SandBoxBaseExceptionError",
    "SandBoxError",
    "SandBoxProtocolError",
    "SandBoxTimeoutError",
    "SandboxContextWarning",
    "denials",
    "sandbox_denials",
)

#: Attribute that carries the denial maps on an exception that is no SandBoxError itself.
CARRIED = "__sandbox_denials__"


def __getattr__(name: str) -> object:
    # Made on first use: its base is pickle's, which most processes never load.
    if name == "RestrictedUnpicklingError":
        from . import _guard

        return _guard.RestrictedUnpicklingError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class SandboxContextWarning(UserWarning):
    """A sandbox is used in a way that works but is seldom meant."""


class Denial:
    """One refusal, as data.

    ``layer`` is ``"python"`` or ``"os"``; ``family`` the kind of rule (``file``, ``net``, ``import``, ``call``, ``env``,
    ``eval``); ``subject`` what was asked for; ``op`` what was to be done with it; ``category`` the category of a
    sensitive call, else ``""``; ``rule`` the line that decided (``file:line``), ``""`` where no rule matched; ``add``
    the lines that would allow it, the narrowest first; ``message`` the whole text, which ends with the line to add.
    """

    __slots__ = ("add", "category", "family", "layer", "message", "op", "rule", "subject")

    layer: str
    family: str
    subject: str
    op: str
    category: str
    rule: str
    add: tuple[str, ...]
    message: str

    def __init__(
        self,
        layer: str = "python",
        family: str = "",
        subject: str = "",
        op: str = "",
        category: str = "",
        rule: str = "",
        add: tuple[str, ...] = (),
        message: str = "",
    ) -> None:
        self.layer = layer
        self.family = family
        self.subject = subject
        self.op = op
        self.category = category
        self.rule = rule
        self.add = add
        self.message = message

    @property
    def text_for_model(self) -> str:
        """One sentence for a language model: what was refused, without the lines only a person may add."""
        what = self.message.partition("\n")[0].rstrip()
        for tail in (" Add:", " add:"):
            what = what.removesuffix(tail)
        return what or f"{self.op or self.family} {self.subject} is refused by the sandbox"

    def _key(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Denial) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"Denial({shown})"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def denial_from(record: dict[str, Any]) -> Denial:
    """A :class:`Denial` of a denial map (docs/implementation.md); fields of a wrong type become empty."""
    add = record.get("add")
    return Denial(
        layer=_text(record.get("layer")) or "python",
        family=_text(record.get("family")),
        subject=_text(record.get("subject")),
        op=_text(record.get("op")),
        category=_text(record.get("category")),
        rule=_text(record.get("rule")),
        add=tuple(line for line in add if isinstance(line, str)) if isinstance(add, (list, tuple)) else (),
        message=_text(record.get("message")),
    )


def _related(exc: BaseException) -> Iterator[BaseException]:
    """``exc`` and every exception it was made of or because of, each once."""
    todo: list[object] = [exc]
    seen: set[int] = set()
    while todo:
        item = todo.pop()
        if not isinstance(item, BaseException) or id(item) in seen:
            continue
        seen.add(id(item))
        yield item
        # Reversed, since the last one in is the first one out: own parts, then the cause, then the context.
        todo.append(item.__context__)
        todo.append(item.__cause__)
        todo.append(getattr(item, "reason", None))  # urllib.error.URLError keeps the refusal only here
        todo.extend(reversed(item.args))
        if isinstance(item, BaseExceptionGroup):
            todo.extend(reversed(item.exceptions))


def _records(exc: BaseException) -> Iterator[dict[str, Any]]:
    for item in _related(exc):
        for name in ("denials", CARRIED) if isinstance(item, SandBoxError) else (CARRIED,):
            records = item.__dict__.get(name) if hasattr(item, "__dict__") else None
            if records is None and name == "denials":
                records = getattr(item, name, None)
            if isinstance(records, (list, tuple)):
                yield from (record for record in records if isinstance(record, dict))


def denials(exc: BaseException) -> list[Denial]:
    """Every refusal behind ``exc`` as a :class:`Denial` (layer, family, subject, rule, lines to add), in the order met.

    For a program that looks at the parts; :func:`sandbox_denials` gives the same refusals as texts for a person. Each comes
    once; the list is empty where no refusal stands behind ``exc``.

    Follows ``__cause__``, ``__context__``, exception groups, exceptions kept as arguments, and the denials recorded
    during a sandboxed call whose refusal a library replaced by an error of its own.
    """
    found: dict[Denial, None] = {}
    for record in _records(exc):
        found.setdefault(denial_from(record))
    return list(found)


def sandbox_denials(exc: BaseException) -> list[str]:
    """Every refusal behind ``exc`` as a text that ends with the line of the profile which would allow it.

    For a log or a person; :func:`denials` gives the same refusals as data. A language model that called a tool is better told
    ``Denial.text_for_model``, which leaves out the lines that only a person may add.
    """
    return [denial.message for denial in denials(exc)]
