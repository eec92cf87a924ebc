"""An exception of the sandbox, made again in the application from what the child said about it.

Every word of it was chosen by the child. So no class is imported, no constructor or ``__setstate__`` of a program's
class runs, values come only from the validated rich form, and frames are pictures: their file names are written
``<sandbox:...>``, their source lines travel as data, and no file that the child named is ever opened.
"""

from __future__ import annotations

import builtins
import sys
from types import TracebackType

from ._exceptions import CARRIED, SandBoxBaseExceptionError, SandBoxError, SandBoxProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

MAX_DEPTH = 16
MAX_FRAMES = 200
#: Source lines are shown up to this line number: linecache holds a list that is as long as the number.
MAX_SHOWN_LINE = 20_000
#: Files of sandboxes that linecache remembers at a time.
MAX_FILES = 64

#: The attributes of an exception, whatever its class makes of ``__dict__`` and ``__getattribute__``.
_space: Any = BaseException.__dict__["__dict__"].__get__
_TEMPLATE = compile("raise __psb__", "<sandbox>", "exec")
#: Where it raises: its last instruction. An offset that no instruction has makes IPython's tracebacks look for one for ever.
_RAISES = len(_TEMPLATE.co_code) - 2
#: One entry of a location table (CPython's Objects/locations.md): all instructions are of the first line, in columns unknown.
_FIRST_LINE = bytes([0x80 | 13 << 3 | len(_TEMPLATE.co_code) // 2 - 1, 0])
_files: dict[str, None] = {}


def rebuild(descriptor: dict[str, Any], rich: bytes | None) -> BaseException:
    """The exception to raise in the caller.

    ``rich`` is ``Exception(args, attributes)`` as a pickle that the transport has accepted, or None.
    """
    values: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    if rich is not None:
        from _pickle import loads

        try:
            stand_in = loads(rich)
        except Exception:  # such as a time zone that only the sandbox has
            stand_in = None
        match getattr(stand_in, "args", None):
            case (tuple() as args, dict() as attributes):
                values = args, attributes
    return _build(descriptor, values, 0)


def _build(descriptor: dict[str, Any], values: tuple[tuple[Any, ...], dict[str, Any]] | None, depth: int) -> BaseException:
    exc = _instance(descriptor, values, depth)
    # By BaseException's own slots: a program's class may have covered them up.
    own = BaseException.__dict__
    records = [record for record in _list(descriptor, "denials") if isinstance(record, dict)]
    if isinstance(exc, SandBoxError):
        _word(exc, records)
    if records:
        _space(exc)["denials" if isinstance(exc, SandBoxError) else CARRIED] = records
    for note in _list(descriptor, "notes"):
        if isinstance(note, str):
            BaseException.add_note(exc, note)
    limit = descriptor.get("limit")
    if isinstance(limit, str):  # this side's own words (core/transport/bound.go)
        BaseException.add_note(exc, limit)
    if depth < MAX_DEPTH:
        for name, attribute in (("cause", "__cause__"), ("context", "__context__")):
            linked = descriptor.get(name)
            if isinstance(linked, dict):
                own[attribute].__set__(exc, _build(linked, None, depth + 1))
    own["__suppress_context__"].__set__(exc, descriptor.get("suppress") is True)
    return BaseException.with_traceback(exc, _traceback(_list(descriptor, "frames")))


def _word(exc: SandBoxError, records: list[dict[str, Any]]) -> None:
    """Leave a refusal the text, rule and lines to add of a denial that came with it, and none that the child made up.

    What the records say was said by this side's engine (core/transport/vouch.go); attributes are the child's own words.
    """
    own = _space(exc)
    text = own.pop("text", None)
    own.pop("rule", None)
    own.pop("add", None)
    for record in records:
        if isinstance(text, str) and record.get("message") == text:
            own.update(text=text, rule=_text(record, "rule"), add=_list(record, "add"))
            return


def _instance(descriptor: dict[str, Any], values: tuple[tuple[Any, ...], dict[str, Any]] | None, depth: int) -> BaseException:
    module, qualname, message = (_text(descriptor, name) for name in ("module", "qualname", "message"))
    name = qualname if module == "builtins" else f"{module}.{qualname}"
    if descriptor.get("base") is True:
        error: SandBoxError = SandBoxBaseExceptionError(f"the sandboxed call raised {name}{': ' if message else ''}{message}")
        error.original = name
        return error
    kind = _class(module, qualname)
    if kind is None:
        error = SandBoxProtocolError(
            f"the sandboxed call raised {name}{': ' if message else ''}{message} "
            f"(a class that this process does not have: import {module} here to catch it by its class)"
        )
        error.original = name
        return error
    parts = [_build(part, None, depth + 1) for part in _list(descriptor, "exceptions") if isinstance(part, dict)]
    return _of_class(kind, message, values, parts if depth < MAX_DEPTH else [])


def _class(module: str, qualname: str) -> type[Exception] | None:
    """An exception class of a module that this process has loaded, found without running any code of it."""
    loaded = sys.modules.get(module)
    found: Any = None
    space = getattr(loaded, "__dict__", None)
    if module == "pysandboxes":
        from . import _guard

        space = {qualname: getattr(_guard, qualname, None)}
    for name in qualname.split("."):
        if not isinstance(space, dict) and type(space).__name__ != "mappingproxy":
            return None
        found = space.get(name)  # type: ignore[union-attr]
        if not isinstance(found, type):
            return None
        space = type.__dict__["__dict__"].__get__(found)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def _of_class(
    kind: type[Exception],
    message: str,
    values: tuple[tuple[Any, ...], dict[str, Any]] | None,
    parts: list[BaseException],
) -> BaseException:
    """An instance of ``kind`` by the constructor of its nearest builtin class alone."""
    base = next(cls for cls in kind.__mro__ if getattr(builtins, cls.__name__, None) is cls)
    args, attributes = values if values is not None else ((message,), {})
    if issubclass(base, UnicodeError):
        args = _within(base, args)
    for attempt in (args, (message,), ()):
        arguments: tuple[Any, ...] = attempt
        if issubclass(base, BaseExceptionGroup):
            # Its text counts its parts, its argument does not.
            title = args[0] if values is not None and args and isinstance(args[0], str) else message.rpartition(" (")[0]
            arguments = (title, parts)
        try:
            exc: BaseException = base.__new__(kind, *arguments)
            base.__init__(exc, *arguments)
            break
        except Exception:
            continue
    else:
        return SandBoxProtocolError(f"the sandboxed call raised {kind.__module__}.{kind.__qualname__}: {message}")
    if not attempt and args:  # made without arguments, which it had
        BaseException.__dict__["args"].__set__(exc, (message,))
    for name, value in attributes.items():
        if type(name) is str and not name.startswith("__") and name not in ("args", "denials"):
            _set(exc, name, value)
    try:
        str(exc)
    except Exception:
        # The class words itself from attributes that could not cross.
        plain: BaseException = base.__new__(base, f"{kind.__qualname__}: {message}")
        plain.args = (f"{kind.__qualname__}: {message}",)
        return plain
    return exc


def _within(base: type[BaseException], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a UnicodeError with its positions inside its object, as the C API reads them.

    CPython's ``__str__`` believes them: a start far outside reads foreign memory, or ends the process.
    """
    at = 1 if base is not UnicodeTranslateError else 0
    if base is UnicodeError or len(args) != at + 4:
        return args
    text, start, end = args[at : at + 3]
    if type(text) not in (str, bytes) or type(start) is not int or type(end) is not int:
        return args  # its constructor refuses them
    size = len(text)
    start = min(max(start, 0), max(size - 1, 0))
    return (*args[:at], text, start, min(max(end, start + 1), max(size, start + 1)), args[-1])


def _set(exc: BaseException, name: str, value: Any) -> None:
    """Set an attribute as data: no property or ``__setattr__`` of a program's class runs, no method is covered up."""
    if isinstance(exc, UnicodeError) and name in ("encoding", "object", "start", "end", "reason"):
        return  # what its arguments said, and no other: see _within
    for cls in type(exc).__mro__:
        owned = cls.__dict__.get(name)
        if owned is None:
            continue
        if getattr(builtins, cls.__name__, None) is cls and hasattr(type(owned), "__set__"):
            try:
                type(owned).__set__(owned, exc, value)
            except Exception:
                return
            return
        if hasattr(type(owned), "__get__") or callable(owned):
            return
    _space(exc)[name] = value


def _traceback(frames: list[Any]) -> TracebackType | None:
    traceback: TracebackType | None = None
    for entry in reversed(frames[:MAX_FRAMES]):
        if not isinstance(entry, (list, tuple)) or len(entry) != 4:
            continue
        file, line, function, source = entry
        if isinstance(file, str) and isinstance(line, int) and isinstance(function, str):
            frame = _frame(f"<sandbox:{_printable(file)}>", line, _printable(function) or "<unknown>", source)
            traceback = TracebackType(traceback, frame, _RAISES, line if 0 <= line < 1 << 31 else 0)
    return traceback


def _frame(file: str, line: int, function: str, source: object) -> FrameType:
    if isinstance(source, str) and source and 0 < line <= MAX_SHOWN_LINE:
        _remember(file, line, _printable(source))
    code = _TEMPLATE.replace(
        co_filename=file,
        co_name=function.rpartition(".")[2] or function,
        co_qualname=function,
        co_firstlineno=line if 0 < line < 1 << 31 else 1,
        co_linetable=_FIRST_LINE,
    )
    try:
        exec(code, {"__name__": "<sandbox>", "__file__": file, "__psb__": _Stop})
    except _Stop as stop:
        traceback = stop.__traceback__
        assert traceback is not None and traceback.tb_next is not None
        return traceback.tb_next.tb_frame
    raise AssertionError


class _Stop(Exception):
    """Raised to get hold of a frame."""


def _remember(file: str, line: int, source: str) -> None:
    """Let tracebacks show a line: linecache serves entries that have no modification time as they are."""
    import linecache

    entry = linecache.cache.get(file)
    lines = list(entry[2]) if entry is not None and len(entry) == 4 else []
    lines += ["\n"] * (line - len(lines))
    lines[line - 1] = source + "\n"
    linecache.cache[file] = (0, None, lines, file)
    _files.pop(file, None)
    _files[file] = None
    while len(_files) > MAX_FILES:
        oldest = next(iter(_files))
        del _files[oldest]
        linecache.cache.pop(oldest, None)


def _printable(text: str) -> str:
    """``text`` on one line and without what would drive a terminal."""
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def _text(descriptor: dict[str, Any], name: str) -> str:
    value = descriptor.get(name)
    return value if isinstance(value, str) else ""


def _list(descriptor: dict[str, Any], name: str) -> list[Any]:
    value = descriptor.get(name)
    return value if isinstance(value, list) else []
