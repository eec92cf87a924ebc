"""Calls of threads and event loops, with interpreters that die, run over their time and are reloaded: a table of what is left.

Runs until SOAK_CALLS calls (a million) or SOAK_TIME seconds (no limit) are over, whichever is first, with SOAK_RESTARTS
restarts (a thousand) spread over them. Exit status 1 where something grows: memory, descriptors, threads, processes,
pending calls.

Memory is compared between the halves: what allocators and garbage collectors of two languages keep is there after the first.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "faults"))

import fault_targets as targets

from pysandboxes import SandBoxProtocolError, SandBoxTimeoutError, sandboxes

CALLS = int(os.environ.get("SOAK_CALLS", "1000000"))
TIME = float(os.environ.get("SOAK_TIME", "inf"))
RESTARTS = int(os.environ.get("SOAK_RESTARTS", "1000"))
THREADS, TASKS = 8, 16
#: KiB that the second half may add to what the first half needed at most, and per restart.
GROWTH = int(os.environ.get("SOAK_GROWTH", "8192"))
PROFILE = f"""\
os-sandbox=${{OS_SANDBOX:-auto}}
python-import=*
python-api=ALLOW:process-exec,ALLOW:process-control
expose-ro={Path(__file__).parent}
"""


class Stdout:
    """The main thread's words go out; what calls print is counted."""

    def __init__(self) -> None:
        self.real = sys.stdout
        self.count = 0

    def write(self, text: str) -> int:
        if threading.current_thread() is threading.main_thread():
            return self.real.write(text)
        self.count += len(text)
        return len(text)

    def flush(self) -> None:
        self.real.flush()


def children() -> list[str]:
    """The processes that this one has started, and their states; Z is a zombie."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.append(fields[0])
    return found


def state() -> dict[str, int]:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    processes = children()
    return {
        "RSS KiB": pages * os.sysconf("SC_PAGE_SIZE") // 1024,
        "descriptors": len(os.listdir("/proc/self/fd")),  # noqa: PTH208
        "threads": len(os.listdir("/proc/self/task")),  # noqa: PTH208
        "Python threads": threading.active_count(),
        "children": len(processes),
        "zombies": processes.count("Z"),
    }


class Soak:
    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.calls = 0
        self.outcomes: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.went = threading.Event()
        self.went.set()
        self.resting = 0
        self.wrong: list[str] = []
        self.began = time.monotonic()

    def count(self, outcome: str) -> None:
        with self.lock:
            self.calls += 1
            self.outcomes[outcome] += 1

    def failed(self, exc: BaseException) -> None:
        """An answer that a restart has taken away is no fault; anything else is."""
        name = type(exc).__name__
        if not isinstance(exc, (SandBoxProtocolError, SandBoxTimeoutError)) and "generator is gone" not in str(exc):
            self.wrong.append(f"{name}: {exc}")
            self.over.set()
        self.count(name)

    def thread(self, number: int) -> None:
        turn = 0
        while not self.over.is_set():
            turn += 1
            self.pause()
            try:
                if turn % 50 == 0:
                    size = 1000 * (turn % 400)
                    if targets.answer(size) != b"x" * size:
                        self.wrong.append("another call's answer")
                elif turn % 70 == 0:
                    targets.say(f"thread {number}")
                elif turn % 90 == 0:
                    generator = targets.count_from(turn)
                    if [next(generator), next(generator)] != [turn, turn + 1]:
                        self.wrong.append("another generator's value")
                    generator.close()
                elif targets.take_argument("x" * (turn % 100)) != turn % 100:
                    self.wrong.append("another call's answer")
                self.count("answered")
            except Exception as exc:
                self.failed(exc)

    def pause(self) -> None:
        """Everybody rests while the state is looked at."""
        if not self.went.is_set():
            with self.lock:
                self.resting += 1
            self.went.wait()
            with self.lock:
                self.resting -= 1

    async def task(self, number: int) -> None:
        turn = 0
        while not self.over.is_set():
            turn += 1
            if not self.went.is_set():
                return  # to the loop's thread, which rests
            try:
                if turn % 100 == 0:
                    task = asyncio.ensure_future(targets.sleep_async(60))
                    await asyncio.sleep(0)
                    task.cancel()
                    try:
                        await task
                    except asyncio.CancelledError:
                        self.count("cancelled")
                        continue
                if await targets.sleep_async(0) != 0:
                    self.wrong.append("another task's answer")
                self.count("answered")
            except Exception as exc:
                self.failed(exc)

    def loop(self) -> None:
        async def tasks() -> None:
            await asyncio.gather(*(self.task(number) for number in range(TASKS)))

        while not self.over.is_set():
            self.pause()
            asyncio.run(tasks())

    def restart(self, number: int) -> None:
        """One of the ways in which an interpreter is replaced."""
        try:
            if number % 4 == 0:
                targets.end_by("_exit")
            elif number % 4 == 1:
                targets.end_by("9")
            elif number % 4 == 2:
                targets.sleep_a_moment(60)
            else:
                self.handle.reload()
                self.outcomes["reloads"] += 1
        except SandBoxTimeoutError:
            self.outcomes["over its time"] += 1
        except SandBoxProtocolError:
            self.outcomes["killed"] += 1

    def progress(self) -> float:
        return max(self.calls / CALLS, (time.monotonic() - self.began) / TIME)

    def rest(self) -> dict[str, int]:
        self.went.clear()
        while self.resting < THREADS + 1 and not self.wrong:
            time.sleep(0.01)
        found = state() | {"pending": self.handle.stats()["pending"]}
        self.went.set()
        while self.resting:
            time.sleep(0.01)
        return found

    def run(self) -> list[dict[str, int]]:
        threads = [threading.Thread(target=self.thread, args=(number,)) for number in range(THREADS)]
        threads.append(threading.Thread(target=self.loop))
        for thread in threads:
            thread.start()
        states: list[dict[str, int]] = []
        restarts = 0
        try:
            for quarter in range(1, 5):
                while self.progress() < quarter / 4 and not self.wrong:
                    # Five deaths within half a minute are a crash loop: every fourth restart is a reload, which forgets them.
                    if restarts < RESTARTS * self.progress():
                        self.restart(restarts)
                        restarts += 1
                    else:
                        time.sleep(0.002)
                states.append(self.rest())
                print(f"{self.calls} calls, {restarts} restarts, {time.monotonic() - self.began:.0f} s", states[-1], flush=True)
        finally:
            self.over.set()
            self.went.set()
            for thread in threads:
                thread.join(60)
        return states


def report(states: list[dict[str, int]], after: dict[str, int], before: dict[str, int], soak: Soak) -> list[str]:
    """Prints the table; what is not flat."""
    grown = []
    print(f"{'':16}{'before':>10}" + "".join(f"{f'{n}/4':>10}" for n in range(1, 5)) + f"{'after':>10}")
    for name in states[0]:
        row = [state[name] for state in states]
        # The last restart of a quarter may have left no interpreter; each has a channel, each loop two descriptors.
        slack = {"RSS KiB": GROWTH, "threads": 4, "descriptors": 8, "children": 1}.get(name, 0)
        most = max(row[:2])
        flat = row[3] <= most + slack and row[2] <= most + slack
        if name in ("zombies", "pending"):
            flat = max(row) == 0
        if name in before and name not in ("RSS KiB", "threads"):
            flat = flat and after[name] <= before[name] + 2
        if not flat:
            grown.append(name)
        end = after.get(name, 0)
        print(
            f"{name:16}{before.get(name, 0):>10}"
            + "".join(f"{value:>10}" for value in row)
            + f"{end:>10}"
            + ("" if flat else "  GROWS")
        )
    seconds = time.monotonic() - soak.began
    print(f"{soak.calls} calls in {seconds:.0f} s ({soak.calls / seconds:.0f} a second): {dict(soak.outcomes)}")
    return grown


def main() -> int:
    logging.getLogger("Pysandboxes").setLevel(logging.ERROR)
    stdout: Any = Stdout()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(stdout):
        profile = Path(folder) / "soak.py-sandboxes"
        profile.write_text(PROFILE)
        first: Any = targets.sleep_async
        with sandboxes(sandboxes_config=profile):  # what is opened once and kept
            asyncio.run(first(0))
        before = state()
        with sandboxes(sandboxes_config=profile) as handle:
            asyncio.run(first(0))
            soak = Soak(handle)
            states = soak.run()
        grown = report(states, state(), before, soak) if len(states) == 4 else ["nothing was measured"]
    for text in soak.wrong[:5]:
        print("wrong:", text)
    return 1 if grown or soak.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
