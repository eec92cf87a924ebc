"""A program that makes and ends many threads and sub-interpreters, or takes many signals, and asks the guard in each.

``soak.py threads|interpreters|signals COUNT SECRET``; run under python-sb, which exposes work. Ends with figures of the
memory and the descriptors after each quarter; a wrong verdict ends it with an error.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from pathlib import Path

SECRET = sys.argv[3]

#: What each of them does: what is allowed gives what it gives, what is not is refused. Sub-interpreters get it as text.
WORK = f"""\
import os
if os.stat("shown").st_size != 5 or len(open("shown").read()) != 5:
    raise SystemError("what is allowed went wrong")
for ask in (open, os.stat, os.listdir):
    try:
        ask({SECRET!r})
    except OSError:
        pass
    else:
        raise SystemError(f"{{ask}} was not refused")
import quopri
"""
CODE = compile(WORK, "work", "exec")


def state() -> tuple[int, int]:
    """RSS in KiB, descriptors."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024, len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def threads(count: int) -> None:
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            exec(CODE, {})
        except BaseException as error:
            wrong.append(error)

    batch = [threading.Thread(target=work) for _ in range(count)]
    for thread in batch:
        thread.start()
    for thread in batch:
        thread.join()
    if wrong:
        raise wrong[0]


def interpreters(count: int) -> None:
    if sys.version_info >= (3, 13):
        import _interpreters as low  # type: ignore[import-not-found]
    else:
        import _xxsubinterpreters as low  # type: ignore[import-not-found]
    for _ in range(count):
        one = low.create()
        failed = low.run_string(one, WORK)  # 3.13 says so rather than raise
        low.destroy(one)
        if failed is not None:
            raise SystemError(str(failed))


def signals(seconds: int) -> None:
    taken = wrong = 0

    def handler(*_: object) -> None:
        nonlocal taken, wrong
        taken += 1
        try:
            with open("shown" if taken % 2 else SECRET) as file:  # noqa: PTH123
                wrong += file.read() != "shown"
        except OSError:
            wrong += taken % 2

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    end, asked = time.monotonic() + seconds / 4, 0
    while time.monotonic() < end:
        asked += 1
        if os.stat("shown").st_size != 5:  # noqa: PTH116
            wrong += 1
        try:
            os.stat(SECRET)  # noqa: PTH116
            wrong += 1
        except OSError:
            pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(f"signals={taken} questions={asked} wrong={wrong}")
    if wrong or not taken:
        raise SystemError("a wrong verdict")


def main() -> None:
    how = {"threads": threads, "interpreters": interpreters, "signals": signals}[sys.argv[1]]
    count = int(sys.argv[2])
    os.chdir("work")
    Path("shown").write_text("shown")
    states = []
    begun = time.monotonic()
    for _ in range(4):
        if how is threads:
            for _ in range(0, count // 4, 50):
                threads(min(50, count // 4))
        else:
            how(count // 4 if how is interpreters else count)
        states.append(state())
    print(f"{sys.argv[1]} {count}: {time.monotonic() - begun:.1f} s; KiB and descriptors by quarters:", *states)


main()
