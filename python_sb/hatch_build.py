"""Build hook of the python-sb distribution: one static Go binary, installed as the command python-sb.

Its sources are the root's: beside this folder in the repository, in `source/` in the sdist.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# What the sdist takes from the root: enough for bindings/build.py to build ./python_sb.
SOURCES = ["pyproject.toml", "go.mod", "go.sum", "bindings/build.py", "core", "providers", "python_sb/main.go"]


def source(here: str | Path) -> Path:
    inside = Path(here, "source")
    return inside if inside.is_dir() else Path(here).resolve().parent


def load_build(root: Path) -> ModuleType:
    """bindings/build.py as a module; by its path, since the build runs with any folder on sys.path."""
    spec = importlib.util.spec_from_file_location("pysandboxes_build", root / "bindings/build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


class Version(MetadataHookInterface):
    """The root's version, and the pin on pysandboxes of that version."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = source(self.root)
        metadata["version"] = load_build(root).version(root)
        metadata["dependencies"] = [f"pysandboxes=={metadata['version']}"]


class Program(BuildHookInterface[Any]):
    def dependencies(self) -> list[str]:
        if self.target_name == "sdist":
            return []
        root = source(self.root)
        found: list[str] = load_build(root).requirements(root, compiler=False)
        return found

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = source(self.root)
        if self.target_name == "sdist":
            build_data["force_include"].update({str(root / name): f"source/{name}" for name in SOURCES})
            return
        build = load_build(root)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{build.wheel_platform()}"
        try:
            build.build_program(Path(self.root, "bin"), root)
        except build.BuildError as error:  # its text says what is missing; a traceback would bury it
            raise SystemExit(str(error)) from None
