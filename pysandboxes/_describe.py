"""An exception of the sandbox as data: the descriptor and the rich form that the application builds it again from.

Runs in the sandboxed interpreter. Nothing here trusts the exception: its ``__str__``, ``__reduce__`` and attributes
may be the program's own and may raise, recurse or lie. The application checks everything again.
"""

# os.path: importing pathlib would cost more than all the rest of this package.
# ruff: noqa: PTH123

from __future__ import annotations

from _pickle import dumps

from ._arrival import sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

# Budgets below those of the protocol (docs/implementation.md), so that an honest child never meets them.
MAX_DEPTH = 8
MAX_TEXT = 16 * 1024
MAX_TEXTS = 512 * 1024
MAX_NODES = 64
MAX_GROUP = 32
MAX_DENIALS = 100
HEAD_FRAMES, TAIL_FRAMES = 40, 60
MAX_FRAMES = 1000
MAX_LINE = 400
MAX_RICH = 64 * 1024

_ATOMS = (type(None), bool, int, float, complex, str, bytes)
_SEQUENCES = (list, tuple, set, frozenset)
#: Value types of the standard library that the application accepts in a rich form (core/unpickle), by their modules.
_VALUES = {
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "ipaddress": {"IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network", "IPv4Interface", "IPv6Interface"},
    "pathlib": {"PosixPath", "PurePosixPath", "PureWindowsPath"},
    "pathlib._local": {"PosixPath", "PurePosixPath", "PureWindowsPath"},  # 3.13
    "uuid": {"UUID"},
    "zoneinfo": {"ZoneInfo"},
}
# What a program's class may have covered up.
_TRACEBACK, _CAUSE, _CONTEXT, _SUPPRESS = (
    BaseException.__dict__[name].__get__ for name in ("__traceback__", "__cause__", "__context__", "__suppress_context__")
)
_GROUP = BaseExceptionGroup.__dict__["exceptions"].__get__
#: Folder of this package: its own frames are left out of tracebacks.
_OURS = __file__.rpartition("/")[0] + "/"


class Describer:
    """Describes one raised exception with all that hangs on it; ``source`` reads lines of files for its tracebacks."""

    def __init__(self, source: SourceReader) -> None:
        self.source = source
        self.nodes = 0
        self.steps = 0
        self.left = MAX_TEXTS
        self.seen: set[int] = set()

    def describe(self, exc: BaseException, denials: list[dict[str, Any]] | None = None, depth: int = 0) -> dict[str, Any]:
        self.nodes += 1
        self.seen.add(id(exc))
        kind = type(exc)
        module, qualname = (str(type.__dict__[name].__get__(kind)) for name in ("__module__", "__qualname__"))
        records: list[Any] = []
        for name in ("denials", "__sandbox_denials__"):  # _exceptions.CARRIED
            own = _attribute(exc, name)
            if isinstance(own, (list, tuple)):
                records += [record for record in own[:MAX_DENIALS] if record not in records][: MAX_DENIALS - len(records)]
        more = [record for record in denials or () if record not in records]
        records += more[max(0, len(more) + len(records) - MAX_DENIALS) :]  # the newest tell best why it failed
        notes = _attribute(exc, "__notes__")
        group = _GROUP(exc) if issubclass(kind, BaseExceptionGroup) else ()
        return {
            "module": "__main__" if module == "__mp_main__" else self.text(module, 1024),
            "qualname": self.text(qualname, 1024),
            "message": self.text(text_of(exc)),
            "base": not issubclass(kind, Exception),
            "frames": self.frames(_TRACEBACK(exc)),
            "denials": [record for record in records if isinstance(record, dict)],
            "notes": [self.text(text_of(note), 4096) for note in notes[:16]] if type(notes) is list else [],
            "cause": self.linked(_CAUSE(exc), depth + 1),
            "context": self.linked(_CONTEXT(exc), depth + 1),
            "suppress": _SUPPRESS(exc),
            "exceptions": [part for part in (self.linked(e, depth + 2) for e in group[:MAX_GROUP]) if part],
        }

    def linked(self, exc: BaseException | None, depth: int) -> dict[str, Any] | None:
        if exc is None or id(exc) in self.seen or depth > MAX_DEPTH or self.nodes >= MAX_NODES:
            return None
        return self.describe(exc, depth=depth)

    def frames(self, traceback: TracebackType | None) -> list[list[Any]]:
        """``[file, line, function, source]`` of each frame, outermost first, without the serving loop's own."""
        steps = []
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if not code.co_filename.startswith(_OURS):
                steps.append((code, traceback.tb_lineno))
            traceback = traceback.tb_next
        if len(steps) > HEAD_FRAMES + TAIL_FRAMES:
            steps = steps[:HEAD_FRAMES] + steps[-TAIL_FRAMES:]
        steps = steps[: MAX_FRAMES - self.steps]
        self.steps += len(steps)
        return [
            [
                self.text(code.co_filename, 1024),
                line or 0,
                self.text(code.co_qualname, 256),
                self.text(self.source.line(code.co_filename, line), MAX_LINE),
            ]
            for code, line in steps
        ]

    def text(self, text: str, limit: int = MAX_TEXT) -> str:
        """``text`` within its limit and within what is left of the whole budget."""
        text = clip(text, min(limit, max(self.left, 64)))
        self.left -= len(text)
        return text


class SourceReader:
    """Lines of source files, for tracebacks. What may not be read has no line; nothing is asked twice."""

    MAX_FILES = 64

    def __init__(self) -> None:
        self.files: dict[str, list[bytes]] = {}

    def line(self, path: str, number: int | None) -> str:
        lines = sources.get(path) or self.files.get(path)
        if not number or (lines is None and path.startswith("<")):
            return ""
        if lines is None:
            if len(self.files) >= self.MAX_FILES:
                self.files.clear()
            try:
                with open(path, "rb") as file:
                    lines = file.read(4 << 20).splitlines()
            except (OSError, ValueError):
                lines = []
            self.files[path] = lines
        if number > len(lines):
            return ""
        return lines[number - 1].decode("utf-8", "replace").strip()


def text_of(value: object) -> str:
    try:
        return str(value)
    except BaseException:
        return f"<the text of this {type.__dict__['__qualname__'].__get__(type(value))} cannot be had>"


def _attribute(exc: BaseException, name: str) -> Any:
    """An attribute that a program may have set, and guarded."""
    try:
        return getattr(exc, name, None)
    except BaseException:
        return None


def clip(text: str, limit: int = MAX_TEXT) -> str:
    """``text`` as an exact str that is valid UTF-8, and short: its middle gives way."""
    text = str.__str__(text).encode("utf-8", "backslashreplace").decode()
    if len(text) > limit:
        text = f"{text[: limit * 2 // 3]} ... {text[len(text) - limit // 4 :]}"
    return text


def rich_form(exc: BaseException) -> bytes | None:
    """Pickle of ``Exception(args, attributes)``, or None where the arguments are more than plain data.

    An Exception stands for whatever class it is, since that is the form which the transport accepts; the class is in the
    descriptor. The arguments are those the nearest builtin class would be made from again; an exception among them becomes its
    text, as urllib.error.URLError takes it, and attributes that are no plain data stay behind.
    """
    base = builtin_base(type(exc))
    try:
        reduced = base.__reduce__(exc)
        args = reduced[1] if isinstance(reduced, tuple) and len(reduced) > 1 else exc.args
        if isinstance(exc, BaseExceptionGroup):
            args = (exc.message,)  # the parts come by their own descriptors
        if type(args) is tuple:
            args = tuple(clip(text_of(value)) if isinstance(value, BaseException) else value for value in args)
        state = reduced[2] if isinstance(reduced, tuple) and len(reduced) > 2 else {}
        if not is_data(args):
            return None
        attributes = {}
        for name, value in state.items() if isinstance(state, dict) else ():
            if type(name) is not str or name.startswith("__") or name == "denials":
                continue
            if isinstance(value, BaseException):
                attributes[name] = clip(text_of(value))
            elif is_data(value):
                attributes[name] = value
        data = dumps(Exception(args, attributes), 5)
    except BaseException:
        return None
    return data if len(data) <= MAX_RICH else None


def builtin_base(kind: type[BaseException]) -> type[BaseException]:
    for base in kind.__mro__:
        if base.__module__ == "builtins" and issubclass(base, BaseException):
            return base
    return BaseException


def is_data(value: object, depth: int = 0) -> bool:
    """Whether ``value`` is made of plain values alone (exact types, no cycle, bounded). The application looks again."""
    kind = type(value)
    if kind in _ATOMS or kind.__qualname__ in _VALUES.get(kind.__module__, ()):
        return True
    if depth > 8:
        return False
    if kind in _SEQUENCES:
        return len(value) <= 10_000 and all(is_data(item, depth + 1) for item in value)  # type: ignore[arg-type,attr-defined]
    if kind is dict:
        return len(value) <= 10_000 and all(  # type: ignore[arg-type]
            is_data(key, depth + 1) and is_data(item, depth + 1)
            for key, item in value.items()  # type: ignore[attr-defined]
        )
    return False
