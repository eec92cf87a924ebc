"""Coroutine functions that the tests of a sandbox's own event loop call. Imported by both sides."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from pysandboxes import sandbox

#: Which thread has imported this module.
IMPORTED_BY_MAIN = threading.current_thread() is threading.main_thread()
#: One for each alarm that this interpreter's main thread has handled.
ALARMS: list[bool] = []
#: What the event loop waits for.
GATE = threading.Event()


@sandbox
async def imported_by_main() -> bool:
    return IMPORTED_BY_MAIN


@sandbox
async def same(value: Any) -> Any:
    return value


@sandbox
async def thread() -> int:
    return threading.get_ident()


@sandbox
def main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@sandbox
async def block_the_loop() -> bool:
    """Keep the loop from running anything else, until open_the_gate()."""
    return GATE.wait(60)


@sandbox
def open_the_gate() -> None:
    GATE.set()


@sandbox
def watch_alarms() -> None:
    signal.signal(signal.SIGALRM, lambda *_: ALARMS.append(threading.current_thread() is threading.main_thread()))


@sandbox
async def alarm() -> None:
    """A signal that comes while this thread, the loop's, is the one that runs."""
    os.kill(os.getpid(), signal.SIGALRM)


@sandbox
async def alarms() -> list[bool]:
    return ALARMS


@sandbox
def play_the_loop() -> set[object]:
    """What a program gets that reads the channel itself, from a thread that is not the loop's."""
    from pysandboxes import _guard

    got: set[object] = set()
    for _ in range(1000):
        _guard.leave()
        got.add(type(_guard.take(set())))
        got.add(_guard.look())
        _guard.leave()
    return {type(one) if isinstance(one, tuple) else one for one in got} - {bool, type(None), True, False}


class Member:
    """Stands in a set as what names the calls of same(), and calls the guard when it is compared."""

    target = b"\x8c\x0cloop_targets\x94\x8c\x04same\x94"

    def __init__(self, seen: list[object]) -> None:
        self.seen = seen

    def __hash__(self) -> int:
        return hash(self.target)

    def __eq__(self, other: object) -> bool:
        from pysandboxes import _guard

        if other == self.target:
            _guard.leave()
            self.seen.append(_guard.take({self.target}))
        return other == self.target


@sandbox
async def take_inside_take() -> tuple[list[bool], int]:
    """What a call was while another was being taken, if one was; how many were taken, and answered in same()'s place."""
    import pickle

    from pysandboxes import _guard

    seen: list[object] = []
    got = [_guard.take({Member(seen)}), *seen]  # type: ignore[arg-type]
    taken = [one for one in got if isinstance(one, tuple)]
    for number in {one[1] for one in taken}:
        _guard.send(14, number, pickle.dumps("taken"))
    return [isinstance(one, tuple) for one in seen], len(taken)


@sandbox
async def fork_in_the_loop() -> int:
    """The status of a copy of this interpreter that comes back from its call."""
    child = os.fork()
    if child == 0:
        return 0
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
