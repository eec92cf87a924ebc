"""Build hook of the pysandboxes distribution: the three native parts, the wheel's tag, the pin on python-sb.

How each part is built: bindings/build.py. An editable install builds into the source tree, a wheel into a temporary folder.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


def load_build(root: str | Path) -> ModuleType:
    """bindings/build.py as a module; by its path, since the build runs with any folder on sys.path."""
    spec = importlib.util.spec_from_file_location("pysandboxes_build", Path(root, "bindings/build.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


class Pin(MetadataHookInterface):
    """Each distribution pins the other to its own version: installing either gives both."""

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["dependencies"] = [f"python-sb=={metadata['version']}"]


class NativeParts(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        found: list[str] = load_build(self.root).requirements(compiler=True)
        return found

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        build = load_build(self.root)
        python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-{build.wheel_platform()}"
        package = Path(self.root, "pysandboxes")
        if version != "editable":
            self.scratch = tempfile.TemporaryDirectory()
            package = Path(self.scratch.name)
        for part in (build.build_core, build.build_guard, build.build_preload):
            try:
                built: Path = part(package)
            except build.BuildError as error:  # its text says what is missing; a traceback would bury it
                raise SystemExit(str(error)) from None
            if version != "editable":
                build_data["force_include"][str(built)] = f"pysandboxes/{built.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self.scratch.cleanup()
