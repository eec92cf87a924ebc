"""The application's main file inside a sandboxed interpreter, the way multiprocessing does it.

The file is loaded under the name ``__mp_main__``, so that its ``if __name__ == "__main__":`` block does not run, and
only when a call first needs something of it: what the main file imports is charged to the profile. It is loaded by an
import of that name, as any module, so that the guard sees an import and no string that is executed.
"""

from __future__ import annotations

import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import SourceFileLoader
from _thread import RLock
from types import ModuleType

from ._exceptions import SandBoxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "__mp_main__"


class _Finder:
    """Finds the main file, and nothing else."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != NAME or not _Main.path:
            return None
        spec = _Spec(NAME, _Loader(NAME, _Main.path), origin=_Main.path)
        spec.has_location = True
        return spec


class _Spec(ModuleSpec):
    """The main file as part of the package it belongs to, where its relative imports start from."""

    @property
    def parent(self) -> str:
        return _Main.package


class _Loader(SourceFileLoader):
    """Leaves no compiled copy of the main file behind."""

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        return None


class LazyMain(ModuleType):
    """Stands for ``__main__`` until a name of it is asked for, then loads the file and hands out its names."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module '__main__' has no attribute {name!r}")
        try:
            return getattr(load(), name)
        except AttributeError:
            raise AttributeError(f"the application's main file has no {name!r}") from None


class _Main:
    """The one main file of a sandboxed interpreter: where it is, and how far its loading has come."""

    path = ""
    package = ""
    loading = False
    lock = RLock()


def install(path: str, package: str) -> None:
    """Put the lazy ``__main__`` in place.

    ``path`` is "" where the application has no main file; ``package`` is what its relative imports start from.
    """
    _Main.path = path
    _Main.package = package
    sys.modules["__main__"] = LazyMain("__main__")
    sys.meta_path.insert(0, _Finder)


def loading() -> bool:
    """Whether the main file is being loaded just now: opening a sandbox then means that it is not guarded."""
    return _Main.loading


def load() -> ModuleType:
    """The application's main module, loaded at the first need."""
    with _Main.lock:
        if not _Main.path:
            raise SandBoxError(
                "a name of __main__ is needed that did not come with the call, and the application has no main file that the "
                "sandbox could load (a notebook, -c or standard input): put what has the name into a module"
            )
        module = sys.modules.get(NAME)
        if module is not None:
            return module
        if _Main.package:
            __import__(_Main.package)
        _Main.loading = True
        try:
            __import__(NAME)
        finally:
            _Main.loading = False
        module = sys.modules["__main__"] = sys.modules[NAME]
        return module
