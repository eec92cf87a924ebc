"""What the operations of a program cost under python-sb: files, imports, connections."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from measure import How, Measure, Result, interleave, judge
from place import HERE, CommandError, Place

#: operation of worker.py -> (its name here, operations a turn)
OPERATIONS = {
    "open_close": ("open+close", 2000),
    "os_open_close": ("os.open+close", 2000),
    "os_stat": ("os.stat", 2000),
    "os_listdir": ("os.listdir", 1000),
    "cached_import": ("cached import", 5000),
    "connect_close": ("connect+close", 200),
}

#: provider -> operation -> (goal, what a later version has to reach, why)
GOALS: dict[str, dict[str, tuple[float | None, float | None, str]]] = {
    "landlock": {
        "open_close": (1.6, 1.5, "the most frequent question; the default provider"),
        "os_open_close": (1.6, 1.5, "the same without the file object, which hides the question's cost"),
        "os_stat": (2.5, None, "raises no audit event: a shim answers"),
        "os_listdir": (1.5, None, "walking trees"),
        "cached_import": (1.5, None, "functions that import where they need it"),
        "connect_close": (None, 2.5, "the Python layer asks the supervisor each time; the goal is that of the kernel broker"),
    },
    "subprocess": {
        "open_close": (2.0, None, "no kernel holds the links, so the Python layer resolves them"),
        "os_open_close": (2.0, None, "the same without the file object"),
        "os_stat": (2.5, None, "resolves links too"),
        "os_listdir": (1.5, None, "walking trees"),
        "cached_import": (1.5, None, "functions that import where they need it"),
        "connect_close": (None, 2.5, "as under landlock"),
    },
}


def name(provider: str, operation: str) -> str:
    return f"{OPERATIONS[operation][0]}, {provider}"


MEASURES = {
    (provider, operation): Measure(name(provider, operation), provider, "bare", How.RATIO, goal, why, later)
    for provider, row in GOALS.items()
    for operation, (goal, later, why) in row.items()
}


class Worker:
    """worker.py in a process of its own, bare or sandboxed."""

    def __init__(self, place: Place, command: list[str], **environment: str) -> None:
        self.place = place
        self.process = place.start(command, **environment)
        self.timer = 0.0
        self._line()  # ready

    def __enter__(self) -> Worker:
        self.timer = statistics.median(self._ask("no_operation", 2000))
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def turn(self, operation: str, count: int) -> list[float]:
        """Seconds of each of ``count`` operations, without the timer's own."""
        return [max(sample - self.timer, 1.0) * 1e-9 for sample in self._ask(operation, count)]

    def _ask(self, operation: str, count: int) -> list[int]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{operation} {count}\n")
        self.process.stdin.flush()
        return [int(word) for word in self._line().split()]

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait(10)
            raise CommandError(f"the worker ended with {self.process.returncode}: {self.place.last_words()}")
        return line


def run(place: Place) -> Iterator[Result]:
    with ExitStack() as stack:
        listener = stack.enter_context(place.start(place.bare(str(HERE / "listener.py"))))
        stack.callback(listener.kill)
        assert listener.stdout is not None
        port = int(listener.stdout.readline())
        with place.profile.open("a") as profile:
            profile.write(f"net=ALLOW|TCP|127.0.0.1|{port}|OUT\n")
        arguments = [str(HERE / "worker.py"), str(place.folder / "data"), str(port)]
        commands = {"bare": place.bare(*arguments)}
        commands |= {provider: place.sandboxed(*arguments, provider=provider) for provider in GOALS}
        workers: dict[str, Worker] = {}
        broken: dict[str, str] = {}
        for side, command in commands.items():
            try:
                workers[side] = stack.enter_context(Worker(place, command))
            except CommandError as error:
                broken[side] = str(error)
        for operation in OPERATIONS:
            yield from _one(place, operation, workers, broken)


def _one(place: Place, operation: str, workers: dict[str, Worker], broken: dict[str, str]) -> Iterator[Result]:
    def turn(worker: Worker) -> Callable[[], list[float]]:
        return lambda: worker.turn(operation, place.count(OPERATIONS[operation][1]))

    try:
        rounds = interleave({side: turn(worker) for side, worker in workers.items()}, place.rounds)
    except CommandError as error:
        for provider in GOALS:
            yield Result(MEASURES[provider, operation], note=str(error), failed=True)
        return
    for provider in GOALS:
        measure = MEASURES[provider, operation]
        note = broken.get(provider) or broken.get("bare")
        yield Result(measure, note=note, failed=True) if note else judge(measure, rounds)
