"""Learning runs that end badly, or cannot write: nothing that was seen is lost, and nothing that a person wrote is harmed."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from complete_mode import Place


def started(place: Place, *args: str) -> subprocess.Popen[str]:
    """A learning run in the background."""
    return subprocess.Popen(
        place.command(*args),
        cwd=place.folder,
        env=place.environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def rules(place: Place, name: str = ".py-sandboxes") -> set[str]:
    text = (place.folder / name).read_text()
    return {line.split("  #")[0] for line in text.splitlines() if re.match(r"(env|expose-r[ow]|net=ALLOW|python-\w+)", line)}


STEPS = """
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.open(b'first/f', 0)
for n in range(10_000):
    os.mkdir(f'{n}')
    with open(f'{n}/f', 'w'):
        pass
    if n % 2:
        libc.open(f'{n}/f'.encode(), os.O_RDWR)
    print(n, time.monotonic(), flush=True)
    time.sleep(0.002)
"""


@pytest.mark.parametrize("seed", range(20))
def test_a_killed_run_loses_nothing(place: Place, seed: int) -> None:
    """Of what the program said it had done more than 50 ms before the kill."""
    place.file("first/f")
    run = started(place, "--learn", "-c", STEPS)
    assert run.stdout
    seen = {0: time.monotonic()}
    killed: list[float] = []

    def kill() -> None:
        killed.append(time.monotonic())
        run.kill()  # the supervisor, and the kernel with it the program

    assert run.stdout.readline()
    timer = threading.Timer(random.Random(seed).uniform(0, 0.4), kill)
    timer.start()
    for line in run.stdout:
        if len(words := line.split()) == 2 and line.endswith("\n"):
            seen[int(words[0])] = float(words[1])
    timer.join()
    assert run.wait() == -signal.SIGKILL
    assert run.stderr
    run.stderr.close()
    assert not (place.folder / ".py-sandboxes").exists()
    after = place.run("--learn", "-c", "pass")
    assert after.returncode == 0, after.stderr
    assert "an earlier learning run was killed" in after.stderr
    learned = rules(place)
    due = [n for n, at in seen.items() if at < killed[0] - 0.05]
    assert [n for n in due if f"expose-rw=./{n}/" not in learned] == []
    assert "expose-ro=./first" in learned
    assert not list(Path(place.environ()["HOME"]).rglob("learning/*")), "what stands in the profile is kept nowhere else"


def test_an_interrupt_of_a_program_that_never_ends(place: Place) -> None:
    place.file("data/a.txt")
    run = started(place, "--learn", "-c", "open('data/a.txt'); print('there', flush=True)\nwhile True: pass")
    assert run.stdout
    assert run.stdout.readline() == "there\n"
    run.send_signal(signal.SIGINT)
    _, stderr = run.communicate(timeout=60)
    assert run.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in stderr
    assert "check this file" in stderr
    assert "expose-ro=./data" in rules(place)


def test_two_runs_at_once_are_both_kept(place: Place) -> None:
    for name in ("a", "b"):
        place.file(f"{name}/f")
    both = [started(place, "--learn", "-c", f"print(open('{name}/f').read())") for name in ("a", "b")]
    for run in both:
        _, stderr = run.communicate(timeout=60)
        assert run.returncode == 0, stderr
    assert {"expose-ro=./a", "expose-ro=./b"} <= rules(place)
    assert not list(place.folder.glob("*.lock"))


CANNOT = {
    "damaged markers": ("# <learning_guard_files>\nexpose-ro=./data\n", "begins here and never ends"),
    "a broken marker": ("# <learning_guard_files\n", "is damaged"),
    "locked": ("learn=false\n", "is locked by learn=false"),
    "no profile at all": ("what is this\n", ".py-sandboxes:1"),
}


@pytest.mark.parametrize("name", CANNOT)
def test_a_profile_that_cannot_be_learned_into(place: Place, name: str) -> None:
    text, says = CANNOT[name]
    path = place.profile(text)
    done = place.run("--learn", "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert path.read_text() == text
    assert sorted(p.name for p in place.folder.iterdir()) == [".py-sandboxes", "home"]


def test_another_locked_file(place: Place) -> None:
    place.profile("python-import=os\n")
    place.file("other", "learn=false\n")
    done = place.run("--learn=other", "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (2, "")
    assert "other is locked by learn=false" in done.stderr


def test_a_profile_that_is_read_only(place: Place) -> None:
    path = place.profile("python-import=os\n")
    path.chmod(0o444)
    done = place.run("--learn", "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (2, "")
    assert "is read-only" in done.stderr
    assert "--learn=FILE" in done.stderr
    assert path.read_text() == "python-import=os\n"


def test_line_ends_of_another_system_stay(place: Place) -> None:
    place.file("data/a.txt")
    path = place.folder / ".py-sandboxes"
    path.write_bytes(b"python-import=os\r\n# <learning_guard_files>\r\n# </learning_guard_files>\r\n")
    done = place.run("--learn", "-c", "open('data/a.txt')")
    assert done.returncode == 0, done.stderr
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert all(line.endswith(b"\r") for line in lines)
    assert any(line.startswith(b"expose-ro=./data") for line in lines)
    assert path.with_name(".py-sandboxes.old").read_bytes().startswith(b"python-import=os\r\n")


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_full_disk(place: Place) -> None:
    disk = place.folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", disk], check=True)
    try:
        place.file("data/a.txt")
        profile = disk / "profile"
        profile.write_text("python-import=os\n")
        (disk / "rest").write_bytes(bytes(4096))
        code = "open('data/a.txt')\nopen('disk/more', 'wb', 0).write(bytes(4096))"
        done = place.run("--learn=disk/profile", "-c", code)
        assert done.returncode == 0, done.stderr
        assert "what was learned could not be written" in done.stderr
        assert "no space left" in done.stderr
        assert profile.read_text() == "python-import=os\n"
        assert sorted(p.name for p in disk.iterdir()) == ["more", "profile", "rest"]
        for name in ("rest", "more"):
            (disk / name).unlink()
        again = place.run("--learn=disk/profile", "-c", "pass")
        assert again.returncode == 0, again.stderr
        assert "expose-ro=" in profile.read_text(), "what could not be written is not lost"
    finally:
        subprocess.run(["umount", disk], check=True)


def test_the_warning_comes_first(place: Place) -> None:
    done = place.run("--learn", "-c", "import sys; print('ran', file=sys.stderr)")
    first = done.stderr.splitlines()[0]
    assert "LEARNING into" in first
    assert "Never do this with code that you do not trust." in first
    partial = place.run("--learn", "-c", "pass", stdin=subprocess.DEVNULL)
    assert "\x1b" not in partial.stderr, "plain where no terminal is"
