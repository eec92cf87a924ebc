"""Functions of a ``__main__`` that no file holds: a notebook, a prompt, ``python -c``, standard input.

The sandbox cannot import them. So before a call goes what it needs of ``__main__``: the function, and the global names that its
code refers to, down to what those need: functions and classes as code and parts, modules and what was imported from them by
name, other values as pickles. They become names of the ``__main__`` in the sandbox and stay there, as those of a module that
was imported; what has not changed since is not sent again.

An item has two pickles. The *shell* of a function or class is what it can be made of while nothing is in it; so functions and
classes may refer to each other. The *content* is the rest, or the whole of another value.

Runs in the application alone; ``_arrival`` is the other end.
"""

from __future__ import annotations

import sys
from io import BytesIO
from types import CodeType, FunctionType

from ._anatomy import alike, attributes_of, found_by_import, is_builtin_in_notebooks, loader_of, plain, source_texts, steady
from ._exceptions import SandBoxError
from ._packing import Packer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

#: How a payload of definitions begins (bindings/guard/sent.c).
SENT = b"\x01"
_ADVICE = "make it inside the function, pass what it stands for as an argument, or put the function into a module"


class Item:
    """One name of ``__main__`` as it was sent."""

    __slots__ = ("codes", "content", "key", "needs", "shell", "steady", "value")

    def __init__(self, key: str, value: Any) -> None:
        self.key = key
        self.value = value
        self.shell = b""
        self.content = b""
        self.codes: list[CodeType] = []
        #: Names that have to be in the sandbox, too; in the order in which they were met.
        self.needs: dict[str, None] = {}
        #: What it consisted of: where those are the same objects, it has not changed. None: that says nothing.
        self.steady = steady(value)

    def same(self, other: Item | None) -> bool:
        return (
            other is not None
            and self.shell == other.shell
            and self.content == other.content
            and len(self.codes) == len(other.codes)
            and all(a is b for a, b in zip(self.codes, other.codes, strict=True))
        )


class Luggage:
    """What of a ``__main__`` one interpreter has: items, and the functions that it can be asked for by label."""

    __slots__ = ("has", "labels")

    def __init__(self) -> None:
        self.has: dict[str, Item] = {}
        self.labels: dict[str, tuple[Any, Item]] = {}


class Journey:
    """A call on its way: its function, where that is of ``__main__``, and its arguments, where they name something of it.

    ``label``: what the call says in place of the function's module. By it a function is found that is no longer what its
    name means, since a later cell has defined another.
    """

    __slots__ = ("arguments", "function", "label")

    def __init__(self, function: Any) -> None:
        self.function = function
        self.arguments: tuple[Any, ...] = ()
        self.label = f"__main__#{id(function)}"

    def parcel(self, luggage: Luggage) -> Parcel:
        """What has to be sent to an interpreter first."""
        return Parcel(luggage, self)


class Parcel:
    """What one call needs, and what of it is new."""

    def __init__(self, luggage: Luggage, journey: Journey) -> None:
        self._has = has = luggage.has
        self._labels = luggage.labels
        function, arguments = journey.function, journey.arguments
        self._items: dict[str, Item] = {}
        self._shells: list[str] = []
        self._waiting: list[tuple[Item, str]] = []
        self.space: dict[str, Any] = vars(sys.modules["__main__"])
        self.name = "the call"
        self.label = journey.label
        entry: Item | None = None
        if function is not None:
            self.name = f"__main__.{function.__qualname__}"
            if function.__module__ == "__main__" and function.__globals__.get("__name__") == "__main__":
                self.space = function.__globals__  # of a prompt that has names of its own
            entry = self._entry(function)
        if arguments:
            scratch = Item("", None)
            Packer(self, scratch).dump(arguments)
            self._need(scratch.needs, "an argument")
        while self._waiting:
            self._finish(*self._waiting.pop(0))
        gone = [name for name in has if name not in self._items and "#" not in name and name not in self.space]
        self._new = [item for item in self._items.values() if not item.same(has.get(item.key))]
        self._gone = gone
        self._function = function
        self._entry_item = entry
        known = self._labels.get(self.label)
        self._register = entry is not None and (known is None or entry in self._new)

    # ---- what is new ------------------------------------------------------------------------------------------------

    def payload(self) -> bytes | None:
        """What is to be sent, or None where all is there."""
        if not (self._new or self._register or self._gone):
            return None
        from marshal import dumps

        codes: list[CodeType] = []
        packed: dict[str, tuple[str, int, bytes, bytes]] = {}
        for item in self._new:
            packed[item.key] = (item.key, len(codes), item.shell, item.content)
            codes += item.codes
        shells = [packed[key] for key in self._shells if key in packed]
        contents = [packed[key] for key in self._order() if key in packed]
        contents += [(name, -1, b"", b"") for name in self._gone]
        label, name = (self.label, self.name.partition(".")[2]) if self._register else ("", "")
        return SENT + dumps((tuple(codes), shells, contents, label, name, source_texts(codes)))

    def arrived(self) -> None:
        """The sandbox has it."""
        for item in self._new:
            self._has[item.key] = item
        for name in self._gone:
            self._has.pop(name, None)
        if self._entry_item is not None:
            # The function stays as long as its label, which is its address.
            self._labels[self.label] = (self._function, self._entry_item)

    def _order(self) -> Iterator[str]:
        """Functions and classes first, each after those that its content needs; then values."""
        done: set[str] = set()
        for shells in (True, False):
            for start in self._items.values():
                stack = [(start, iter(start.needs))]
                while stack:
                    item, needs = stack[-1]
                    done.add(item.key)
                    for name in needs:
                        other = self._items.get(name)
                        if other is not None and other.key not in done:
                            stack.append((other, iter(other.needs)))
                            break
                    else:
                        stack.pop()
                        if bool(item.shell) == shells:
                            yield item.key
            done.clear()

    # ---- what is needed ---------------------------------------------------------------------------------------------

    def _entry(self, function: FunctionType) -> Item:
        if plain(self.space.get(function.__qualname__)) is function:
            self._need({function.__qualname__: None}, "")
            return self._items[function.__qualname__]
        return self._add(self.label, function, "")

    def _need(self, names: dict[str, None], user: str) -> None:
        for name in names:
            if name not in self._items and name in self.space and not is_builtin_in_notebooks(name, self.space[name]):
                self._add(name, plain(self.space[name]), user)

    def _add(self, key: str, value: Any, user: str) -> Item:
        """Take a value in: its shell at once, its content later."""
        old = self._has.get(key)
        if old is not None and old.value is value and old.steady is not None and alike(old.steady, steady(value)):
            self._items[key] = old
            if old.shell:
                self._shells.append(key)
            self._need(old.needs, f"{key}()")
            return old
        item = self._items[key] = Item(key, value)
        try:
            shell = self._shell(item, value)
            if shell is not None:
                item.shell = self._dump(item, shell)
                self._shells.append(key)
        except Exception as exc:
            raise self._refusal(key, value, user, exc) from exc
        self._waiting.append((item, user))
        return item

    def _shell(self, item: Item, value: Any) -> tuple[Any, ...] | None:
        packer = Packer(self, item)
        if type(value) is FunctionType and not found_by_import(value):
            return packer.function(value)[:2]
        if isinstance(value, type) and not found_by_import(value):
            return packer.of_class(value)[:2]
        return None

    def _finish(self, item: Item, user: str) -> None:
        value = item.value
        packer = Packer(self, item)
        try:
            if item.shell:
                state = packer.function(value)[2] if type(value) is FunctionType else packer.of_class(value)[2]
                item.content = self._dump(item, state)
            else:
                loader = loader_of(value, self._users(item.key))
                if loader is not None:
                    item.codes.append(loader)
                else:
                    item.content = self._dump(item, value)
        except RecursionError:
            raise
        except Exception as exc:
            raise self._refusal(item.key, value, user, exc) from exc
        self._need(item.needs, "" if item.key == self.label else f"{item.key}{'()' if type(value) is FunctionType else ''}")

    def _users(self, key: str) -> CodeType | None:
        """Code that refers to a name: an import of it is charged there."""
        for item in self._items.values():
            if key in item.needs and item.codes:
                return item.codes[0]
        return None

    def _dump(self, item: Item, value: Any) -> bytes:
        file = BytesIO()
        Packer(self, item, file).dump(value)
        return file.getvalue()

    def _refusal(self, key: str, value: Any, user: str, exc: Exception) -> Exception:
        if isinstance(exc, SandBoxError):
            return exc
        kind = type(value)
        what = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        inside = self._culprit(value)
        if not user:
            which = inside or "what belongs to it"
        else:
            which = f"{key!r} (a {what}), which {user or 'it'} refers to" + (f", since of {inside}" if inside else "")
        return SandBoxError(f"{self.name} cannot travel into the sandbox with {which}: {type(exc).__name__}: {exc}; {_ADVICE}")

    def _culprit(self, value: Any) -> str:
        """The part of a function or class that cannot be pickled."""
        parts: list[tuple[str, Any]] = []
        if type(value) is FunctionType:
            cells = value.__closure__ or ()
            parts = [(f"its variable {name!r}", cell) for name, cell in zip(value.__code__.co_freevars, cells, strict=False)]
            parts += [("a default value", value.__defaults__), ("a default value", value.__kwdefaults__)]
            parts += [(f"its attribute {name!r}", part) for name, part in value.__dict__.items()]
        elif isinstance(value, type):
            parts = [(f"its base {base.__qualname__}", base) for base in value.__bases__]
            parts += [(f"its attribute {name!r}", part) for name, part in attributes_of(value).items()]
        for name, part in parts:
            try:
                self._dump(Item("", None), part)
            except Exception:
                return name
        return ""
