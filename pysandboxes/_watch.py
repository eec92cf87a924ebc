"""To be told when the program loads a module for the first time, so that a sandbox imports nothing for it."""

from __future__ import annotations

import sys
from _frozen_importlib import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


class Watch:
    """Sees the first import of a module: lets it be imported as ever, then calls ``then()``.

    It stays among the finders when it is over: another thread's import may be walking that list, and a finder that leaves it
    hides the next one from that walk.
    """

    def __init__(self, module: str, then: Callable[[], None]) -> None:
        self._module = module
        self._then = then
        self._busy = False
        self._over = False

    def begin(self) -> None:
        self._over = False
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def end(self) -> None:
        self._over = True

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != self._module or self._busy or self._over:
            return None
        self._busy = True
        try:
            # Found by the finders after this one; the lock of an import may be taken again by its own thread.
            __import__(name)
        finally:
            self._busy = False
        module = sys.modules[name]
        self._then()
        loader: Any = _Loaded(module, module.__spec__)
        module.__spec__ = None  # importlib would take it, and load the module a second time
        return ModuleSpec(name, loader)


class _Loaded:
    """The loader of a module that is loaded already."""

    def __init__(self, module: ModuleType, spec: object) -> None:
        self._module = module
        self._spec = spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__spec__"] = self._spec  # importlib has put ours there
