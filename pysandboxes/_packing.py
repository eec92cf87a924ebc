"""The pickler of what travels from a ``__main__`` without a file (``_travel``).

What the sandbox has by name goes by name; functions and classes of ``__main__`` go as their parts, code objects by number.
"""

from __future__ import annotations

import sys
from _pickle import Pickler
from io import BytesIO
from types import CellType, CodeType, FunctionType, ModuleType

from . import _arrival
from ._anatomy import attributes_of, content_of, doc_of, found_by_import, home_of, loader_of, names_of, of_main, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._travel import Item, Parcel

#: What a class has to have when it is made.
_IN_SHELL = ("__module__", "__qualname__", "__doc__", "__slots__")


class Packer(Pickler):
    """Pickles for an item: what the sandbox has by name goes by name, functions and classes of ``__main__`` as their parts."""

    def __init__(self, parcel: Parcel, item: Item, file: Any = None) -> None:
        super().__init__(BytesIO() if file is None else file, 5)
        self._parcel = parcel
        self._item = item

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if kind is FunctionType:
            value = plain(value)
            if (name := self._name_of(value)) is not None:
                return self._by_name(name)
            return NotImplemented if found_by_import(value) else _recursive_repr(value) or self.function(value)
        if isinstance(value, type):
            if (name := self._name_of(value)) is not None:
                return self._by_name(name)
            return NotImplemented if found_by_import(value) else self.of_class(value)
        reduce = _REDUCERS.get(kind.__name__)
        return NotImplemented if reduce is None else reduce(self, value)

    def _name_of(self, value: Any) -> str | None:
        """The qualified name under which ``__main__`` has a function or class."""
        if value.__module__ not in ("__main__", None):
            return None
        first, *rest = value.__qualname__.split(".")
        found = self._parcel.space.get(first)
        for part in rest:
            found = getattr(found, "__dict__", {}).get(part)
        if plain(found) is not value or (rest and (type(value) is FunctionType or first == self._item.key)):
            return None  # a part of what is just being made goes with it
        return str(value.__qualname__)

    def _by_name(self, name: str) -> tuple[Any, ...]:
        first = name.partition(".")[0]
        self._item.needs[first] = None
        if first != self._item.key:
            self._parcel._need({first: None}, self._item.key)
        return _arrival.named, (name,)

    def code(self, value: CodeType) -> tuple[Any, ...]:
        codes = self._item.codes
        number = next((at for at, known in enumerate(codes) if known is value), len(codes))
        if number == len(codes):
            codes.append(value)
        return _arrival.code, (number,)

    def function(self, value: FunctionType) -> tuple[Any, ...]:
        """A function in the form of ``__reduce__``."""
        names = names_of(value.__code__)
        cells = value.__closure__ or ()
        space: Any = None
        if value.__globals__ is self._parcel.space:
            self._item.needs.update(dict.fromkeys(names))
        elif (home := home_of(value)) is not None:
            space = home
        else:
            space = {name: value.__globals__[name] for name in names if name in value.__globals__}
        code = value.__code__
        attributes = {
            name: got
            for name, got, plain_ in (
                ("__name__", value.__name__, code.co_name),
                ("__qualname__", value.__qualname__, code.co_qualname),
                ("__module__", value.__module__, "__main__" if space is None else None),
                ("__doc__", value.__doc__, doc_of(code)),
                ("__defaults__", value.__defaults__, None),
                ("__kwdefaults__", value.__kwdefaults__, None),
            )
            if got != plain_
        }
        attributes.update(value.__dict__)
        contents = [content_of(cell) for cell in cells]
        return _arrival.function, (code, len(cells), space), (attributes, contents), None, None, _arrival.restore_function

    def of_class(self, value: type) -> tuple[Any, ...]:
        """A class in the form of ``__reduce__``."""
        own = vars(value)
        space = {name: own[name] for name in _IN_SHELL if own.get(name) is not None}
        attributes = attributes_of(value)
        members = own.get("_member_map_")
        fields = own.get("_fields")
        if type(value).__module__ == "typing" or any(base.__module__ == "typing" for base in value.__bases__):
            raise TypeError(f"{value.__qualname__} is generic, a protocol or a typed dict, and those cannot travel")
        if isinstance(members, dict) and "_value2member_map_" in own:  # enum
            space = {**space, **{name: member._value_ for name, member in members.items()}}
            attributes = {name: part for name, part in attributes.items() if name not in members and of_main(part)}
        elif value.__bases__ == (tuple,) and isinstance(fields, tuple) and "_make" in own:
            defaults = tuple(own.get("_field_defaults", {}).values())
            kept = {name: space[name] for name in ("__qualname__", "__doc__") if name in space}
            methods = {name: part for name, part in attributes.items() if of_main(part)}
            made = (value.__name__, fields, defaults, kept)
            return _arrival.make_namedtuple, made, (methods,), None, None, _arrival.restore_class
        made_of: tuple[Any, ...] = (type(value), value.__name__, value.__bases__, space)
        return _arrival.make_class, made_of, (attributes,), None, None, _arrival.restore_class


# ---- reducers of what the standard pickler cannot take, or not as it is meant ----------------------------------------


def _cell(packer: Packer, value: CellType) -> Any:
    return CellType, (), content_of(value), None, None, _arrival.fill


def _module(packer: Packer, value: ModuleType) -> Any:
    loader = loader_of(value, None)
    if loader is None:
        raise TypeError(f"no import statement can name the module {value.__name__}")
    return _arrival.module, (loader,)


def _method(packer: Packer, value: Any) -> Any:
    return type(value), (value.__func__,)


def _property(packer: Packer, value: property) -> Any:
    return property, (value.fget, value.fset, value.fdel, value.__doc__)


def _cached_property(packer: Packer, value: Any) -> Any:
    return type(value), (value.func,)


def _lru_cache(packer: Packer, value: Any) -> Any:
    told = value.cache_parameters()
    return _arrival.lru_cache, (value.__wrapped__, told["maxsize"], told["typed"])


def _recursive_repr(value: FunctionType) -> tuple[Any, ...] | None:
    """What reprlib makes of a ``__repr__``: since 3.13 that of every dataclass, whose module imports reprlib by itself."""
    code = value.__code__
    if value.__globals__.get("__name__") != "reprlib" or not code.co_qualname.startswith("recursive_repr.<locals>."):
        return None
    parts = dict(zip(code.co_freevars, map(content_of, value.__closure__ or ()), strict=True))
    return _arrival.recursive_repr, (*parts["user_function"], *parts["fillvalue"])


def _sentinel(packer: Packer, value: Any) -> Any:
    """The marks that dataclasses compares by identity."""
    home = sys.modules.get(type(value).__module__)
    for name, known in vars(home).items() if home is not None and home.__name__ == "dataclasses" else ():
        if known is value:
            return _arrival.dataclass_mark, (name,)
    return NotImplemented


_REDUCERS: dict[str, Callable[[Packer, Any], Any]] = {
    "code": Packer.code,
    "cell": _cell,
    "module": _module,
    "staticmethod": _method,
    "classmethod": _method,
    "property": _property,
    "cached_property": _cached_property,
    "_lru_cache_wrapper": _lru_cache,
    "mappingproxy": lambda packer, value: (_arrival.proxy, (dict(value),)),
    "_FIELD_BASE": _sentinel,
    "_MISSING_TYPE": _sentinel,
    "_KW_ONLY_TYPE": _sentinel,
    "_HAS_DEFAULT_FACTORY_CLASS": _sentinel,
}
