"""The application and python-sb killed by SIGKILL at twenty moments each: nothing of their sandboxes is left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from complete_mode import Place

HERE = Path(__file__).resolve().parent
DELAYS = (0, 2, 7, 20, 60)

#: Goes through its stages until it is killed, and says which one begins.
PROGRAM = """\
import sys
sys.path.insert(0, {here!r})
import fault_targets
from pysandboxes import sandboxes

def main():
    while True:
        print("start", flush=True)
        with sandboxes(sandboxes_config={profile!r}, graceful_shutdown=True):
            print("call", flush=True)
            fault_targets.sleep(0.02)
            fault_targets.answer(1 << 22)
            print("idle", flush=True)
            __import__("time").sleep(0.1)
            print("stop", flush=True)

if __name__ == "__main__":
    main()
"""


def kill_at(moments: list[str], folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, str(HERE / "warden.py"), str(folder), ",".join(moments), *command],
        capture_output=True, text=True, timeout=280, cwd=folder.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.timeout(300)
def test_the_application(tmp_path: Path, profile: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    (tmp_path / "program.py").write_text(PROGRAM.format(here=str(HERE), profile=str(profile)))
    moments = ["stop:300"]  # the first fills the caches
    moments += [f"{stage}:{delay}" for stage in ("start", "call", "idle", "stop") for delay in DELAYS]
    assert kill_at(moments, folder, sys.executable, str(tmp_path / "program.py")) == f"done {len(moments)}\n"


@pytest.mark.timeout(300)
def test_the_supervisor(place: Place) -> None:
    folder = place.folder / "all"
    folder.mkdir()
    place.profile("python-import=*\n")
    place.file("program.py", "import time\nprint('run', flush=True)\ntime.sleep(60)\n")
    moments = ["run:0", *(f":{delay}" for delay in range(0, 150, 10)), *(f"run:{delay}" for delay in DELAYS)]
    said = kill_at(moments, folder, str(place.bin / "python-sb"), "--pysandboxes-config", str(place.folder / ".py-sandboxes"),
                   str(place.folder / "program.py"))  # fmt: skip
    assert said == f"done {len(moments)}\n"


def test_what_is_left_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a program that leaves a process and a file behind is told of."""
    folder = tmp_path / "all"
    folder.mkdir()
    monkeypatch.setenv("WARDEN_PATIENCE", "0.2")
    left = """
import os, time
where = os.environ["HOME"] + "/" + str(os.getpid())
if os.fork():
    open(where, "w").close()
    print("here", flush=True)
time.sleep(60)
"""
    said = kill_at(["here:0", "here:0"], folder, sys.executable, "-c", left)
    assert said.count("here:0: processes ['") == 2
    assert said.count(f"here:0: ['{folder}/") == 1
