"""The test build of `_core`, and a fresh interpreter with it: fixtures of the tests that look at the border itself."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
BINDING = ROOT / "bindings/core"

#: Runs code in an interpreter; see ``python``.
Run = Callable[..., "subprocess.CompletedProcess[str]"]

if shutil.which("go") is None:
    pytest.skip("builds an extension, which needs Go on PATH", allow_module_level=True)


def build_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pysandboxes_build", ROOT / "bindings/build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def regenerate(tags: str, output: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BINDING / "regen.py"), "--tags", tags, "--output", str(output)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="session")
def extension(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The test build of `_core`, made once for all workers of a run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "psbtest"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (built := list(folder.glob("_core*.so"))):
            done = regenerate("psbtest", folder)
            assert done.returncode == 0, done.stderr
            overlay = {str(BINDING / name): str(folder / name) for name in ("gopy.go", "gopy_wrappers.h")}
            built = [build_module().build_core(folder, tags="psbtest", overlay=overlay)]
    return built[0]


PRELUDE = """
import importlib.util, json, os, signal, sys, threading
def load():
    global core
    spec = importlib.util.spec_from_file_location("_core", {path!r})
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    return core
def fault(function, *args):
    try:
        function(*args)
    except RuntimeError as error:
        return json.loads(str(error))
    raise AssertionError(f"{{function.__name__}} did not fail")
"""


@pytest.fixture
def python(extension: Path) -> Run:
    """Run code in a fresh interpreter after PRELUDE; `core` is the extension unless load=False."""

    def run(code: str, *options: str, load: bool = True, status: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        text = PRELUDE.format(path=str(extension)) + ("load()\n" if load else "") + textwrap.dedent(code)
        done = subprocess.run(
            [sys.executable, *options, "-c", text],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, **env},
        )
        assert done.returncode == status, f"ended with {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    return run
