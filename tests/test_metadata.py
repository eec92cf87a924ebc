"""Mode, owner, times and attributes under landlock: the supervisor changes them, for native code as for Python."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from complete_mode import Place

PROFILE = "expose-rw=./work\npython-import=*\npython-api=ALLOW:native\n"
NETWORK = "net=ALLOW|TCP|127.0.0.1|80|OUT\n"

PROGRAM = """
import ctypes, os, shutil
libc = ctypes.CDLL(None, use_errno=True)
open("work/file", "w").close()
print(libc.chmod(b"work/file", 0o640), libc.chmod(os.path.abspath("work/file").encode(), 0o644))
os.utime("work/file", (1, 2))
os.symlink(os.path.abspath("work/file"), "work/link")
os.chmod("work/link", 0o604)
shutil.copy2("work/file", "work/copy")
fd = os.open("work/file", os.O_RDONLY)
os.fchmod(fd, 0o622)
os.chown("work/file", -1, os.getgid())
print(oct(os.stat("work/file").st_mode), oct(os.stat("work/copy").st_mode), os.stat("work/copy").st_mtime)
os.symlink(HIDDEN, "work/out")
for path in (HIDDEN, "work/out"):
    print(libc.chmod(path.encode(), 0o777), os.strerror(ctypes.get_errno()))
"""


def hidden(place: Place) -> Path:
    path = place.file("hidden/key", "s3cret")
    work = place.file("work/.keep").parent
    path.chmod(0o600)
    if place.user is not None:
        os.chown(path, place.user, place.user)
        os.chown(work, place.user, place.user)
    return path


def changes(place: Place, mode: str) -> None:
    secret = hidden(place)
    place.provider = "landlock"
    if mode:
        place.environment["PYSANDBOXES_NETWORK"] = mode
    place.profile(PROFILE + (NETWORK if mode else ""))
    done = place.run("-c", f"HIDDEN = {str(secret)!r}\n{PROGRAM}")
    assert done.stdout.splitlines() == [
        "0 0",
        "0o100622 0o100604 2.0",
        "-1 Permission denied",
        "-1 Permission denied",
    ], done.stdout + done.stderr
    assert "expose-rw=./hidden/key" in done.stderr, "a refusal of native code is told at the end"
    assert secret.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", ["", "walled", "unwalled"])
def test_what_is_exposed_for_writing_is_changed(place: Place, mode: str) -> None:
    changes(place, mode)


@pytest.mark.unprivileged
@pytest.mark.parametrize("mode", ["", "walled", "unwalled"])
def test_for_another_user_too(unprivileged: Place, mode: str) -> None:
    changes(unprivileged, mode)


@pytest.mark.smoke
def test_no_signal_interrupts_it(place: Place) -> None:
    """A signal that comes before the supervisor has taken the call ends it (EINTR), which is no outcome of chmod."""
    hidden(place)
    place.provider = "landlock"
    place.profile(PROFILE)
    code = """
import os, signal
ticks = []
signal.signal(signal.SIGALRM, lambda *a: ticks.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
for n in range(1500):
    os.chmod("work/.keep", 0o600 + n % 8)
    os.utime("work/.keep", (n, n))
    os.chown("work/.keep", -1, -1)
signal.setitimer(signal.ITIMER_REAL, 0)
print(oct(os.stat("work/.keep").st_mode), len(ticks) > 100)
def stop(*a): raise InterruptedError("the program's own")
signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
try:
    while True: os.chmod("work/.keep", 0o600)
except InterruptedError as e: print(e)
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    done = place.run("-c", code)
    assert done.stdout == "0o100603 True\nthe program's own\n", done.stdout + done.stderr


def test_many_at_once(place: Place) -> None:
    hidden(place)
    place.provider = "landlock"
    place.profile(PROFILE + "python-api=ALLOW:threads\n")
    code = """
import os, threading
wrong = []
def change(n):
    name = f"work/{n}"
    open(name, "w").close()
    for k in range(40):
        os.chmod(name, 0o600 + k % 8)
        if os.stat(name).st_mode & 7 != k % 8: wrong.append(n)
threads = [threading.Thread(target=change, args=(n,)) for n in range(30)]
for t in threads: t.start()
for t in threads: t.join()
print(wrong)
"""
    assert place.run("-c", code).stdout == "[]\n"
