"""Kernels whose Landlock is older: programs run as ever, what is lost is said, and nothing is let through for it.

The supervisor is built for it: how new its Landlock may be is set by the linker alone, so that nothing can ask for it later.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from complete_mode import BIN, Place

ROOT = Path(__file__).resolve().parents[1]
MODULE = "github.com/pysandboxes/pysandboxes"

#: What a start says by each Landlock ABI, beginning with the newest that lacks it.
LOST = {
    6: "signals reach the program itself only",
    5: "of ioctl the everyday requests",
    3: "files are not emptied",
    2: "moving files between folders",
}

PROGRAM = """
import ctypes, fcntl, json, os, signal, socket, sys, tempfile, threading, time
libc = ctypes.CDLL(None, use_errno=True)

def native(name, *args):
    ctypes.set_errno(0)
    return os.strerror(ctypes.get_errno()) if getattr(libc, name)(*args) < 0 else "ok"

os.makedirs("work/a", exist_ok=True)
with open("work/note", "w") as f: f.write("text")
os.truncate(f.fileno() if not f.closed else os.open("work/note", os.O_RDWR), 2)
os.rename("work/note", "work/other")
caught = []
signal.signal(signal.SIGUSR1, lambda *a: caught.append("handler"))
os.kill(os.getpid(), signal.SIGUSR1)
threading.Thread(target=caught.append, args=("thread",)).start()
with tempfile.TemporaryFile(dir="work") as t: t.write(b"x")
pair, local = socket.socketpair(), socket.socket(socket.AF_UNIX)
said = {
    "python": [open("work/other").read(), *caught],
    "read": native("open", b"/etc/passwd", 0),
    "kill": native("kill", VICTIM, 0),
    "group": native("kill", 0, 0),
    "owner": native("fcntl", pair[0].fileno(), 8, VICTIM),
    "empty": native("open", SHOWN, 0o1000),
    "truncate": native("truncate", SHOWN, 1),
    "chmod": native("chmod", SHOWN, 0o777),
    "socket": native("connect", local.fileno(), ctypes.create_string_buffer(b"\\1\\0\\0" + ABSTRACT), 3 + len(ABSTRACT)),
}
print(json.dumps(said))
"""

CHILDREN = """
import os, subprocess, sys, time
own = subprocess.Popen(["/bin/sleep", "100"])
own.poll = lambda: None
def tries(pid):
    own.pid = pid
    try: own.send_signal(0)
    except Exception as e: return type(e).__name__
    return "ok"
mine = own.pid
print(tries(mine), tries(VICTIM))
"""


def build(abi: int, folder: Path) -> Path:
    """A folder with a supervisor for a kernel of that ABI, which finds the tests' interpreter."""
    if not shutil.which("go"):
        pytest.skip("there is no Go here to build an older kernel's supervisor with")
    sys.path.insert(0, str(ROOT / "bindings"))
    from build import version  # type: ignore[import-not-found]

    folder.mkdir(mode=0o755)
    flags = f"-s -w -X {MODULE}/core/wire.Version={version(ROOT)} -X {MODULE}/providers/landlock.newestABI={abi}"
    build = ["go", "build", "-trimpath", f"-ldflags={flags}", "-o", folder / "python-sb", "./python_sb"]
    subprocess.run(build, cwd=ROOT, check=True, env={**os.environ, "CGO_ENABLED": "0"})
    (folder / "pysandboxes").write_text(f"#!{BIN / 'python'}\n")  # its first line says which interpreter is meant
    (folder / "python").symlink_to(BIN / "python")
    return folder


@pytest.fixture(scope="module", params=[1, 2, 3, 5, 6])
def older(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    return request.param, build(request.param, tmp_path_factory.mktemp("older") / str(request.param))


@pytest.fixture
def victim() -> Iterator[int]:
    process = subprocess.Popen(["/bin/sleep", "600"])
    yield process.pid
    process.kill()
    process.wait()


def on(older: tuple[int, Path], place: Place) -> Place:
    place.bin, place.provider = older[1], "landlock"
    return place


def test_programs_run_and_native_code_is_held(older: tuple[int, Path], place: Place, victim: int) -> None:
    place = on(older, place)
    shown = place.file("shown/page", "shown")
    place.file("work/.keep")
    abi, name = older[0], f"psb-old-{os.getpid()}-{older[0]}".encode()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(b"\0" + name)
        listener.listen()
        known = f"VICTIM, SHOWN, ABSTRACT = {victim}, {str(shown).encode()!r}, {name!r}\n"
        place.profile(
            "python-import=*\npython-api=ALLOW:native\npython-api=ALLOW:threads\npython-api=ALLOW:process-control\n"
            "expose-rw=./work\nexpose-ro=./shown\n"
        )
        done = place.run("-c", known + PROGRAM)
    said = json.loads(done.stdout or "{}")
    assert said.pop("python", None) == ["te", "handler", "thread"], done.stderr
    held = {name for name, outcome in said.items() if outcome != "ok"}
    assert held >= {"read", "kill", "empty", "truncate", "chmod", "socket"} and said["socket"] == "Connection refused", said
    assert ("owner" in held) == (abi < 6), "from ABI 6 on the signal itself is held"
    assert shown.read_text() == "shown" and shown.stat().st_mode & 0o777 != 0o777
    for before, text in LOST.items():
        assert (text in done.stderr) == (abi < before), done.stderr


def test_whose_child_cannot_be_told_is_not_signalled(older: tuple[int, Path], place: Place, victim: int) -> None:
    place = on(older, place)
    place.profile("python-import=*\npython-api=ALLOW:process-exec\nexpose-ro=/bin/sleep\nexpose-ro=/usr/bin/sleep\n")
    done = place.run("-c", f"VICTIM = {victim}\n{CHILDREN}")
    own, other = done.stdout.split()
    assert other != "ok", "a process outside"
    assert own in ("ok", "PermissionError"), done.stderr
    if older[0] >= 6:
        assert own == "ok"
