"""What memory a sandboxed program takes beyond a bare one: the peak of the interpreter, and of its supervisor."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from measure import NOTHING, How, Measure, Result, Rounds, interleave, judge
from place import CommandError, Place

MB = 1e6
#: Says that it runs, and stays until its stdin ends, so that its peaks can be read from outside.
PROGRAM = "import sys; print('ready', flush=True); sys.stdin.read()"

MEASURES = [
    Measure(
        "memory of a python-sb run",
        "python-sb, all processes",
        "python",
        How.LESS,
        20 * MB,
        "many small programs on one machine; peaks (VmHWM), shared pages counted for each process",
        unit="B",
    ),
    Measure("of it, the interpreter", "sandboxed interpreter", "python", How.LESS, None, "the guard and its tables", unit="B"),
    Measure("of it, the supervisor", "supervisor", NOTHING, How.LESS, None, "the Go runtime and the policy", unit="B"),
]


def run(place: Place) -> Iterator[Result]:
    def bare() -> list[float]:
        return [sum(_peaks(place, place.bare("-c", PROGRAM)))]

    def ours() -> list[float]:
        supervisor, *others = _peaks(place, place.sandboxed("-c", PROGRAM))
        return [supervisor, sum(others)]

    # Memory hardly varies: a few rounds do.
    taken = interleave({"bare": bare, "ours": ours}, min(place.rounds, 5))
    rounds: Rounds = {
        "python": taken["bare"],
        "python-sb, all processes": [[sum(one)] for one in taken["ours"]],
        "sandboxed interpreter": [[others] for _, others in taken["ours"]],
        "supervisor": [[supervisor] for supervisor, _ in taken["ours"]],
    }
    for measure in MEASURES:
        yield judge(measure, rounds)


def _peaks(place: Place, command: list[str]) -> list[float]:
    """Peak resident bytes of a command's process, then of each process below it, while all of them wait."""
    with place.start(command) as process:
        assert process.stdin is not None and process.stdout is not None
        if process.stdout.readline().strip() != "ready":
            raise CommandError(f"{command[0]} did not start: {place.last_words()}")
        peaks = [_peak(pid) for pid in _family(process.pid)]
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
    return peaks


def _family(pid: int) -> list[int]:
    """The process and all below it."""
    family = [pid]
    for one in family:  # grows while it is walked
        for thread in Path(f"/proc/{one}/task").iterdir():
            family += map(int, (thread / "children").read_text().split())
    return family


def _peak(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) * 1024
    raise CommandError(f"/proc/{pid}/status names no peak: the process has ended")
