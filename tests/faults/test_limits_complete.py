"""Limits of a whole program: it meets what bare Python meets, and python-sb names the line that ended it."""

from __future__ import annotations

import re
import signal

import pytest
from complete_mode import Place

PROGRAM = """\
import sys
if sys.argv[1] == "compute":
    while True:
        pass
if sys.argv[1] == "take":
    try:
        print(len(bytearray(int(sys.argv[2]) << 20)))
    except MemoryError:
        print("MemoryError")
if sys.argv[1] == "open":
    kept = []
    try:
        for number in range(int(sys.argv[2])):
            kept.append(open(__file__))
        print(len(kept))
    except OSError as exc:
        print(exc.errno)
"""


@pytest.mark.parametrize(
    ("line", "arguments", "says"),
    [
        ("limit-memory=100MB", ("take", "20"), f"{20 << 20}"),
        ("limit-memory=100MB", ("take", "200"), "MemoryError"),
        ("limit-open-files=64", ("open", "20"), "20"),
        ("limit-open-files=64", ("open", "100"), "24"),
    ],
)
def test_what_a_program_meets(place: Place, line: str, arguments: tuple[str, ...], says: str) -> None:
    place.profile(f"python-import=*\n{line}\n")
    place.file("program.py", PROGRAM)
    done = place.run("program.py", *arguments)
    if says == "MemoryError" and done.returncode:  # a control group has no such error: the kernel ends the program
        assert re.search(r"^python-sb: the program was ended by limit-memory=100MB, .*:2$", done.stderr, re.MULTILINE)
        return
    assert (done.returncode, done.stdout) == (0, f"{says}\n"), done.stderr


def test_processor_time(place: Place) -> None:
    place.profile("python-import=*\nlimit-cpu=1s\n")
    place.file("program.py", PROGRAM)
    done = place.run("program.py", "compute")
    assert done.returncode == -signal.SIGXCPU
    assert re.search(r"^python-sb: the program was ended by limit-cpu=1s, .*\.py-sandboxes:2$", done.stderr, re.MULTILINE)
    assert place.run("program.py", "take", "1").returncode == 0
