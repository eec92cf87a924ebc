"""A part of CPython's own tests says the same sandboxed as bare; `make compat` runs all of it (tests/cpython)."""

from __future__ import annotations

import errno
import importlib.util
import os
import socket
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


PROBE = """
import os, socket, sys, time
sys.path.insert(0, sys.argv[1])
import apart
apart.enter()
def tried(f, *args):
    try:
        f(*args)
    except OSError as e:
        return e.errno
print(tried(os.chmod, "/dev/null", 0o666), tried(time.clock_settime, time.CLOCK_REALTIME, time.time()))
socket.sethostname("psb-compat")
open(os.path.join(sys.prefix, "psb-compat"), "w").close()
open("/dev/null", "w").write("x")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else can change the machine")
def test_root_changes_nothing(tmp_path: Path) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text(PROBE)
    before = socket.gethostname()
    done = subprocess.run([sys.executable, probe, HERE / "cpython"], capture_output=True, text=True, timeout=60)
    if "no namespaces" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stdout) == (0, f"{errno.EROFS} {errno.EPERM}\n"), done.stderr
    assert socket.gethostname() == before
    assert not (Path(sys.prefix) / "psb-compat").exists()
