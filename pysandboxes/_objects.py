"""Results of ``remote-result-mode=objects``: an unpickler that finds classes without importing anything.

The transport has validated the stream (core/unpickle): its instructions, its budgets, and the names it writes. What a name
leads to is known only here, so here it is judged by where it is *defined*: a result may name the classes that the
application has loaded, and those functions by which known libraries rebuild their values. ``remote-result-guard=false``
leaves that judgement out; nothing is imported all the same, and a dotted name leads through classes alone.
"""

from __future__ import annotations

import sys
from _io import BytesIO
from _pickle import Unpickler

from ._exceptions import RestrictedUnpicklingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: What the transport says of a result in place of a descriptor.
GUARDED, UNGUARDED = "objects", "objects-unguarded"
#: Bytes of a pickle up to which the place of a refused name is looked for.
MAX_LOCATED = 16 << 20
MAX_VERDICTS = 4096

# What a metaclass, or an object that pretends, could answer otherwise.
_MODULE, _QUALNAME = type.__dict__["__module__"].__get__, type.__dict__["__qualname__"].__get__
_MRO, _SPACE = type.__dict__["__mro__"].__get__, type.__dict__["__dict__"].__get__
_NOTHING = object()
_verdicts: dict[tuple[object, ...], tuple[bool, str]] = {}


def load(data: bytes, buffers: list[Any], mode: str) -> Any:
    """The value of a pickle that the transport has accepted in mode objects."""
    unpickler = _Objects(data, buffers, mode != UNGUARDED)
    try:
        try:
            return unpickler.load()
        finally:
            unpickler.keep_enums()
    except (RestrictedUnpicklingError, MemoryError):
        raise
    except Exception as exc:  # a class that does not take what the sandbox gave it
        raise RestrictedUnpicklingError(f"the result cannot be rebuilt: {type(exc).__name__}: {exc}") from exc


class _Objects(Unpickler):
    def __init__(self, data: bytes, buffers: list[Any], guarded: bool) -> None:
        super().__init__(BytesIO(data), buffers=buffers)
        self._data = data
        self._buffers = len(buffers)
        self._guarded = guarded
        self._found: dict[tuple[str, str], Any] = {}
        self._enums: list[tuple[Any, dict[str, Any]]] = []

    def find_class(self, module: str, name: str) -> Any:
        """What a name of the stream stands for in this process."""
        found = self._found.get((module, name), _NOTHING)
        if found is _NOTHING:
            found = self._found[module, name] = self._look_up(module, name)
        return found

    def _look_up(self, module: str, name: str) -> Any:
        # The sandbox loads the main file under that name (_main_module).
        found = _resolve("__main__" if module == "__mp_main__" else module, name)
        listed, why = _judge(module, name, found)
        if listed:
            return super().find_class(module, name)
        if found is _NOTHING:
            reason = f"which this process has not loaded. Before the call:\n    import {_shown(module)}"
            raise self._refusal(module, name, found, reason)
        if self._guarded and why:
            raise self._refusal(module, name, found, f"which {why}. Add:\n    remote-result-guard=false")
        enum = sys.modules.get("enum")
        if enum is not None and issubclass(type(found), enum.EnumMeta):
            self._enums += [(member, dict(member.__dict__)) for member in found._member_map_.values()]
        return found

    def keep_enums(self) -> None:
        """Take back what the stream did to members of enumerations, which are the application's own and shared by all of it."""
        changed = [(member, state) for member, state in self._enums if member.__dict__ != state]
        for member, state in changed:
            member.__dict__.clear()
            member.__dict__.update(state)
        if changed:
            member = changed[0][0]
            raise RestrictedUnpicklingError(
                f"the result is refused: it changes {type(member).__qualname__}.{member._name_}, a member of an enumeration"
            )

    def _refusal(self, module: str, name: str, found: Any, reason: str) -> RestrictedUnpicklingError:
        what = f"the class or function {_shown(f'{module}.{name}')}"
        if found is not _NOTHING:
            defined = ".".join(_defined(found))
            if defined != f"{module}.{name}":
                what += f" ({_shown(defined)})"
        return RestrictedUnpicklingError(f"the result is refused: {self._place(module, name)} is {what}, {reason}")

    def _place(self, module: str, name: str) -> str:
        from binascii import b2a_base64

        from ._native import ask

        if len(self._data) <= MAX_LOCATED:
            data = b2a_base64(self._data, newline=False).decode()
            try:
                place = ask("ResultPath", {"data": data, "buffers": self._buffers, "module": module, "name": name})
            except Exception:
                place = None
            if isinstance(place, str):
                return place
        return "result\N{HORIZONTAL ELLIPSIS}"


def _resolve(module: str, name: str) -> Any:
    """What ``name`` is in a loaded module, dots leading through classes; no ``__getattr__`` is asked."""
    found: Any = _NOTHING
    space = getattr(sys.modules.get(module), "__dict__", None)
    for part in name.split("."):
        if space is None:
            return _NOTHING
        found = space.get(part, _NOTHING)
        space = _SPACE(found) if issubclass(type(found), type) else None
    return found


def _judge(module: str, name: str, found: Any) -> tuple[bool, str]:
    """Whether the name is in the table of the standard library's value types, and what the guard has against it."""
    from ._native import ask

    is_class = issubclass(type(found), type)
    defined: tuple[str, str] | None = None
    bases: tuple[tuple[str, str], ...] = ()
    if found is not _NOTHING:
        defined = _defined(found)
        if is_class:
            bases = tuple(_defined(base) for base in _MRO(found)[1:])
    key = (module, name, defined, is_class, bases)
    verdict = _verdicts.get(key)
    if verdict is None:
        definition: dict[str, Any] | None = None
        if defined is not None:
            standard = defined[0].partition(".")[0] in sys.stdlib_module_names
            definition = {"module": defined[0], "name": defined[1], "class": is_class, "standard": standard, "bases": bases}
        answer = ask("ResultName", {"module": module, "name": name, "definition": definition})
        verdict = answer["listed"] is True, str(answer["why"])
        if len(_verdicts) >= MAX_VERDICTS:
            _verdicts.clear()
        _verdicts[key] = verdict
    return verdict


def _defined(found: Any) -> tuple[str, str]:
    """Module and name under which something was defined, whatever it is found under."""
    if issubclass(type(found), type):
        return str(_MODULE(found)), str(_QUALNAME(found))
    module, name = getattr(found, "__module__", None), getattr(found, "__qualname__", None)
    return (module if isinstance(module, str) else ""), (name if isinstance(name, str) else type(found).__name__)


def _shown(text: str) -> str:
    """A name that the sandbox chose, for a message."""
    return ascii(text[:200])[1:-1]
