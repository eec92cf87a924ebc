"""A part of CPython's own tests says the same sandboxed as bare; `make compat` runs all of it (tests/cpython)."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.mark.skipif(importlib.util.find_spec("test.test_os") is None, reason="this Python ships no tests")
@pytest.mark.timeout(600)
def test_quick_part() -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, HERE / "cpython", "--quick", "--provider", "landlock"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=590,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\ntest_") >= 8, done.stdout
