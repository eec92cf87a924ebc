"""The exceptions users catch, and what can be read from them: which denials stand behind a failure.

The classes are made in C (``_guard``), because the guard raises them where no Python of ours may run. Each refusal is
the builtin that plain Python would raise *and* a :class:`SandBoxError`.
"""

from __future__ import annotations

from . import _guard
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

#: Characters of a subject in a text for a model.
MAX_SUBJECT = 300
#: Exceptions that are looked at behind one: an exception may hang on a great many.
MAX_RELATED = 1000

# Of each family: what was not allowed, and what the model can do instead.
_FOR_MODEL = {
    "file": ("{verb} {subject}", "Work with the files that you were given"),
    "net": ("{verb} {subject}", "Go on without this connection"),
    "import": ("importing {subject}", "Use a module that is available"),
    "call": ("calling {subject}", "Do it in a way that needs no such function"),
    "eval": ("running program text by {subject}", "Write the code out instead of making it at run time"),
    "env": ("reading the environment variable {subject}", "Go on without its value"),
}
_ANY = ("using {subject}", "Go on without it")
_NET_VERBS = {
    "connect": "connecting to",
    "bind": "binding a socket to",
    "listen": "listening at",
    "sendto": "sending to",
    "resolve": "looking up",
    "reverse": "looking up the name of",
    "socket": "making a socket for",
}

#: Attribute that carries the denial maps on an exception that is no SandBoxError itself.
CARRIED = "__sandbox_denials__"


def __getattr__(name: str) -> object:
    # Made on first use: its base is pickle's, which most processes never load.
    if name == "RestrictedUnpicklingError":
        import _pickle  # noqa: F401  # for the guard, which finds it loaded: the import is this package's own

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
    the lines that would allow it, the narrowest first; ``message`` the whole text, which ends with the line to add;
    ``site`` the line of the program that asked (``file:line``, outside the standard library), ``""`` where it is not known.
    """

    __slots__ = ("add", "category", "family", "layer", "message", "op", "rule", "site", "subject")

    layer: str
    family: str
    subject: str
    op: str
    category: str
    rule: str
    add: tuple[str, ...]
    message: str
    site: str

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
        site: str = "",
    ) -> None:
        self.layer = layer
        self.family = family
        self.subject = subject
        self.op = op
        self.category = category
        self.rule = rule
        self.add = add
        self.message = message
        self.site = site

    @property
    def text_for_model(self) -> str:
        """Two sentences for a language model: what was refused and that it stays so, then what to do instead and whom to ask.

        It names neither the profile nor the lines to add, which are a person's; the subject is what the program itself asked
        for, on one line and not too long.
        """
        what, instead = _FOR_MODEL.get(self.family, _ANY)
        if self.family == "net":
            verb = _NET_VERBS.get(self.op, "using")
        else:
            verb = "writing" if self.message.startswith("writing ") else "reading"
        subject = "".join(char if char.isprintable() else "?" for char in self.subject)
        if len(subject) > MAX_SUBJECT:
            subject = f"{subject[: MAX_SUBJECT // 2]} ... {subject[-MAX_SUBJECT // 3 :]}"
        named = what.format(subject=subject or "this", verb=verb)
        return (
            f"The sandbox does not allow {named}, and trying again will not change that. "
            f"{instead}, or ask the person who runs this program to allow it."
        )

    def _key(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Denial) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"Denial({shown})"


SITE = Denial.__slots__.index("site")


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
        site=_text(record.get("site")),
    )


def _related(exc: BaseException) -> list[BaseException]:
    """``exc`` and every exception it was made of or because of, each once.

    Besides the links of Python itself these are the exceptions which libraries keep among the arguments or in an attribute
    (urllib and urllib3 ``reason``, SQLAlchemy ``orig``, aiohttp ``os_error``), in a list there, or in a future that failed.
    """
    todo: list[object] = [exc]
    seen: set[int] = set()
    found: list[BaseException] = []
    while todo and len(found) < MAX_RELATED:
        item = todo.pop()
        if not isinstance(item, BaseException):
            # A future keeps its exception there (concurrent.futures; tenacity puts such a one into its RetryError).
            item = _own(item).get("_exception")
        if not isinstance(item, BaseException) or id(item) in seen:
            continue
        seen.add(id(item))
        found.append(item)
        # Reversed, since the last one in is the first one out: own parts, then the cause, then the context.
        todo.append(item.__context__)
        todo.append(item.__cause__)
        for value in (*reversed(_own(item).values()), *reversed(BaseException.args.__get__(item))):  # type: ignore[attr-defined]
            if isinstance(value, (list, tuple)):
                todo.extend(part for part in reversed(value[:MAX_RELATED]) if isinstance(part, BaseException))
            else:
                todo.append(value)
        if isinstance(item, BaseExceptionGroup):
            todo.extend(reversed(item.exceptions))
    return found


def _own(item: object) -> dict[str, Any]:
    """The attributes of an object itself, without running a line of its class."""
    try:
        own = object.__getattribute__(item, "__dict__")
    except AttributeError:
        return {}
    return dict(own) if isinstance(own, dict) else {}


def _records(exc: BaseException) -> Iterator[dict[str, Any]]:
    related = _related(exc)
    for item in related:
        for name in ("denials", CARRIED) if isinstance(item, SandBoxError) else (CARRIED,):
            records = _own(item).get(name)
            if isinstance(records, (list, tuple)):
                yield from (record for record in records if isinstance(record, dict))
    if _guard.active():
        yield from _swallowed(related)


def _swallowed(related: list[BaseException]) -> Iterator[dict[str, Any]]:
    """Refusals of this process that no link ties to an exception, but whose text does: asyncio joins the texts of several
    failed connections into a new OSError."""
    texts = [text for item in related for text in _texts(item)]
    for record in _guard.denials():
        message = record.get("message")
        told = isinstance(message, str) and message and any(message in text for text in texts)
        if told or (record.get("layer") != "python" and any(_names(record, text) for text in texts)):
            yield record


def _names(record: dict[str, Any], text: str) -> bool:
    """Does an error of native code speak of what was refused to it? Such a refusal is the kernel's plain error: what ties it to
    an exception is the host, the port or the path that the library's message has, or the words of that error."""
    if record.get("layer") == "broker" and any(words in text.lower() for words in ("connection refused", "permission denied")):
        return True
    subject = record.get("subject")
    if not isinstance(subject, str) or not subject:
        return False
    host, colon, port = subject.rpartition(":")
    host = host.strip("[]")
    if not colon or not port.isdigit():
        return subject in text
    numbers = "".join(letter if letter.isdigit() else " " for letter in text).split()
    return (bool(host) and host in text) or port in numbers


def _texts(exc: BaseException) -> Iterator[str]:
    try:
        yield str(exc)
    except Exception:
        pass
    notes = _own(exc).get("__notes__")
    if isinstance(notes, list):
        yield from (note for note in notes if isinstance(note, str))


def denials(exc: BaseException) -> list[Denial]:
    """Every refusal behind ``exc`` as a :class:`Denial` (layer, family, subject, rule, lines to add), in the order met.

    For a program that looks at the parts; :func:`sandbox_denials` gives the same refusals as texts for a person. Each comes
    once; the list is empty where no refusal stands behind ``exc``.

    Follows ``__cause__``, ``__context__`` (also when suppressed), exception groups, and exceptions kept as arguments, in
    attributes or in futures. Of a sandboxed call it has every refusal that came during that call, whatever the
    libraries made of it. Within a sandbox, where no call bounds it, it also has the refusals that the text of ``exc`` tells
    of; what a library threw away without a trace is not tied to the error it raised instead.
    """
    found: dict[tuple[object, ...], Denial] = {}
    for record in _records(exc):
        denial = denial_from(record)
        # Refused again from another line it is the same refusal.
        found.setdefault((*denial._key()[:SITE], *denial._key()[SITE + 1 :]), denial)
    return list(found.values())


def sandbox_denials(exc: BaseException) -> list[str]:
    """Every refusal behind ``exc`` as a text that ends with the line of the profile which would allow it.

    For a log or a person; :func:`denials` gives the same refusals as data. A language model that called a tool is better told
    ``Denial.text_for_model``, which leaves out the lines that only a person may add.
    """
    return list(dict.fromkeys(denial.message for denial in denials(exc)))
