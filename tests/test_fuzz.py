"""The fuzzer of the live guard on seeds that are kept: what it found once stays mended. `make fuzz` takes new ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).resolve().parent / "fuzz"
pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("group", ["events", "calls", "paths"])
def test_kept_seeds(group: str, seed: int) -> None:
    done = subprocess.run(
        [sys.executable, FUZZ, "--seed", str(seed), "--time", "30s", "--cases", "250" if group == "paths" else "2000", group],
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("option", ["-Xdev", "-Werror"])
def test_debug_allocator(option: str) -> None:
    done = subprocess.run(
        [sys.executable, FUZZ, "--seed", "3", "--time", "30s", "--cases", "400", f"--python={option}", "events", "calls"],
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stdout
