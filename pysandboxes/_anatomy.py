"""Looking at functions and classes: what their code refers to, what they are made of, where an import finds them.

Runs in the application alone, for ``_travel``.
"""

from __future__ import annotations

import builtins
import sys
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)

from . import _sandbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Values that cannot change: where the object is the same, so is its pickle.
_FROZEN = frozenset({type(None), bool, int, float, complex, str, bytes, ModuleType, BuiltinFunctionType, type(Ellipsis)})
#: What the interpreter makes for each class, or each class has for itself.
_MADE = frozenset(
    {
        *("__dict__", "__weakref__", "_abc_impl", "__doc__", "__module__", "__qualname__", "__slots__", "__firstlineno__"),
        *("__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__static_attributes__"),
        *("__orig_bases__", "__parameters__", "__type_params__"),
    }
)
_Slot = (MemberDescriptorType, GetSetDescriptorType)
#: Bytes of one source text that travels.
MAX_TEXT = 256 << 10


def plain(value: Any) -> Any:
    """The function that ``@sandbox`` decorates, for its wrapper: in the sandbox it is called directly."""
    if type(value) is FunctionType and value.__globals__ is vars(_sandbox):
        return value.__dict__.get("__wrapped__", value)
    return value


def found_by_import(value: Any) -> bool:
    """Whether a module other than ``__main__`` has a function or class under its name."""
    home = sys.modules.get(value.__module__) if isinstance(value.__module__, str) else None
    if home is None or home.__name__ == "__main__":
        return False
    found: Any = home
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is value


_opcodes: dict[int, int] = {}
_names: dict[CodeType, tuple[str, ...]] = {}


def names_of(code: CodeType) -> tuple[str, ...]:
    """The global names that code refers to, that of the functions and classes inside it as well."""
    known = _names.get(code)
    if known is not None:
        return known
    if not _opcodes:
        from opcode import opmap

        shifts = {"LOAD_GLOBAL": 1, "LOAD_NAME": 0, "STORE_GLOBAL": 0, "DELETE_GLOBAL": 0, "LOAD_FROM_DICT_OR_GLOBALS": 0}
        _opcodes.update({opmap[name]: shift for name, shift in shifts.items() if name in opmap})
        _opcodes[-1] = opmap["EXTENDED_ARG"]
    names: dict[str, None] = {}
    extended, raw = 0, code.co_code
    for at in range(0, len(raw), 2):
        opcode, argument = raw[at], raw[at + 1] | extended
        extended = argument << 8 if opcode == _opcodes[-1] else 0
        shift = _opcodes.get(opcode)
        if shift is not None and opcode != _opcodes[-1]:
            names[code.co_names[argument >> shift]] = None
    for constant in code.co_consts:
        if type(constant) is CodeType:
            names.update(dict.fromkeys(names_of(constant)))
    if len(_names) > 10_000:
        _names.clear()
    found = _names[code] = tuple(names)
    return found


def _all_names(code: CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if type(constant) is CodeType:
            names |= _all_names(constant)
    return names


_loaders: dict[tuple[str, str, int], CodeType] = {}


def loader_of(value: Any, user: CodeType | None) -> CodeType | None:
    """Code that imports a module, or what a module has by name; None where no statement does.

    It stands where the code does that refers to it, so that a refusal names that place.
    """
    if isinstance(value, ModuleType):
        module, statement = value.__name__, f"import {value.__name__} as found"
        if user is not None and hasattr(value, "__path__"):
            names = _all_names(user)
            below = [name for name in list(sys.modules) if name.startswith(module + ".")]
            used = [name for name in below if names.issuperset(name[len(module) + 1 :].split("."))]
            statement += "".join(f"; import {name}" for name in sorted(used))
    elif isinstance(value, (FunctionType, BuiltinFunctionType, type)) and found_by_import(value):
        first, *rest = value.__qualname__.split(".")
        module, statement = value.__module__, f"from {value.__module__} import {first} as found"
        statement += "".join(f"; found = found.{name}" for name in rest)
    else:
        return None
    if module in ("builtins", "__main__") or not all(part.isidentifier() for part in module.split(".")):
        return None
    file, line = (user.co_filename, user.co_firstlineno) if user is not None else ("<import>", 1)
    loader = _loaders.get((statement, file, line))
    if loader is None:
        try:
            made = compile(f"def load(): {statement}; return found", file, "exec", dont_inherit=True)
        except SyntaxError:  # a keyword for a name
            return None
        loader = next(constant for constant in made.co_consts if type(constant) is CodeType)
        if user is not None:
            loader = loader.replace(co_firstlineno=line, co_name=user.co_name, co_qualname=user.co_qualname)
        _loaders[statement, file, line] = loader
    return loader


def is_builtin_in_notebooks(name: str, value: Any) -> bool:
    """Whether a name of ``__main__`` is what IPython puts in place of a builtin (``open``), which the sandbox has."""
    return (
        type(value) is FunctionType
        and value.__globals__.get("__name__") == "IPython.core.interactiveshell"
        and value.__dict__.get("__wrapped__") is getattr(builtins, name, value)
    )


def home_of(function: FunctionType) -> ModuleType | None:
    """The module whose names a function's are, where it is not ``__main__``."""
    name = function.__globals__.get("__name__")
    module = sys.modules.get(name) if isinstance(name, str) else None
    return module if isinstance(module, ModuleType) and vars(module) is function.__globals__ and name != "__main__" else None


def steady(value: Any) -> list[Any] | None:
    """The objects that make up a value, where they cannot change themselves; None where one of them can."""
    kind = type(value)
    if kind in _FROZEN:
        return None if hasattr(value, "__path__") else [value]  # a package: which of its modules are needed may change
    if kind is FunctionType:
        if value.__dict__ or value.__kwdefaults__:
            return None
        parts = [*(value.__defaults__ or ()), *(part for cell in value.__closure__ or () for part in content_of(cell))]
        if not all(type(part) in _FROZEN or isinstance(part, type) for part in parts):
            return None
        return [value, value.__code__, *parts]
    return _steady_class(value) if isinstance(value, type) else None


def _steady_class(value: type) -> list[Any] | None:
    parts: list[Any] = [value, *value.__bases__]
    for name, part in vars(value).items():
        parts += (name, part)
        function = part.fget if isinstance(part, property) else getattr(part, "__func__", part)
        if (name[0] == "_" and type(function) is not FunctionType) or isinstance(part, (*_Slot, type)):
            continue
        if value in type(part).__mro__:  # a member of an enumeration; isinstance() asks the metaclass
            continue
        inside = steady(function)
        if inside is None:
            return None
        parts += inside
    return parts


def alike(one: list[Any], other: list[Any] | None) -> bool:
    return other is not None and len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def doc_of(code: CodeType) -> str | None:
    first = code.co_consts[0] if code.co_consts else None
    return first if isinstance(first, str) else None


def content_of(cell: CellType) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def attributes_of(value: type) -> dict[str, Any]:
    """What is in a class, but for what the interpreter makes for each class."""
    return {name: part for name, part in vars(value).items() if name not in _MADE and not isinstance(part, _Slot)}


def of_main(part: Any) -> bool:
    """Whether a part of a class was written in it: a function, or what the language's own decorators make of one."""
    function = part.fget if isinstance(part, property) else getattr(part, "__func__", part)
    return type(function) is FunctionType and function.__globals__.get("__name__") == "__main__"


def source_texts(codes: list[CodeType]) -> dict[str, str]:
    """The source texts of code that no file holds, for the tracebacks of the sandbox."""
    linecache = sys.modules.get("linecache")
    texts = {}
    cache = {} if linecache is None else linecache.cache
    for file in {code.co_filename for code in codes}:
        entry = cache.get(file)
        if isinstance(entry, tuple) and len(entry) == 4 and entry[0] <= MAX_TEXT:
            texts[file] = "".join(entry[2])
    return texts
