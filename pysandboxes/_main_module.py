"""The application's main file inside a sandboxed interpreter, the way multiprocessing does it.

The file is loaded under the name ``__mp_main__``, so that its ``if __name__ == "__main__":`` block does not run, and
only when a call first needs something of it: what the main file imports is charged to the profile.
"""

from __future__ import annotations

import sys
from _frozen_importlib import spec_from_loader
from _frozen_importlib_external import SourceFileLoader
from _thread import RLock
from types import ModuleType

from ._exceptions import SandBoxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "__mp_main__"


class _MainLoader(SourceFileLoader):
    """Loads the file and leaves no compiled copy of it behind."""

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
    module: ModuleType | None = None
    loading = False
    lock = RLock()


def install(path: str, package: str) -> None:
    """Put the lazy ``__main__`` in place.

    ``path`` is "" where the application has no main file; ``package`` is what its relative imports start from.
    """
    _Main.path = path
    _Main.package = package
    sys.modules["__main__"] = LazyMain("__main__")


def loading() -> bool:
    """Whether the main file is being loaded just now: opening a sandbox then means that it is not guarded."""
    return _Main.loading


def load() -> ModuleType:
    """The application's main module, loaded at the first need."""
    with _Main.lock:
        if _Main.module is not None:
            return _Main.module
        if not _Main.path:
            raise SandBoxError(
                "a name of __main__ is needed, but the application has no main file that the sandbox could load "
                "(a notebook, -c or standard input): put the function into a module"
            )
        if _Main.package:
            __import__(_Main.package)
        loader = _MainLoader(NAME, _Main.path)
        module = ModuleType(NAME)
        module.__file__ = _Main.path
        module.__loader__ = loader
        module.__package__ = _Main.package
        module.__spec__ = spec_from_loader(NAME, loader, origin=_Main.path)
        sys.modules[NAME] = _Main.module = module
        _Main.loading = True
        try:
            loader.exec_module(module)
        except BaseException:
            del sys.modules[NAME]
            _Main.module = None
            raise
        finally:
            _Main.loading = False
        sys.modules["__main__"] = module
        return module
