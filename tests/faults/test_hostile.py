"""A sandbox that is hostile on the call channel: its calls fail, by an error that says why; the application is as before."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import hostile_targets
import pytest
from test_lives import descriptors, resident

from pysandboxes import RestrictedUnpicklingError, SandBoxProtocolError, SandBoxTimeoutError, sandboxes

GRANTS = ("ALLOW:native", "ALLOW:process-exec", "ALLOW:threads")

#: What the sandbox does, and the words for it; it is ended, and the next call has a new one.
ENDED = {
    "garbage": r"a frame of \d+ bytes \(at most 1048640\)",
    "a huge frame": r"a frame of 2147483647 bytes \(at most 1048640\)",
    "an answer to no question": r"a frame of kind 14 for call \d+, which was never made",
    "an answer to call 0": r"a frame of kind 14 for call 0, which was never made",
    "output of no such call": r"a frame of kind 11 for call \d+, which was never made",
    "READY again": r"READY a second time",
    "another version": r"READY a second time",
    "a kind of the application's": r"a frame of the unknown kind 1",
    "an unknown field": r"""an exception's descriptor: .*unknown field "evil\"""",
    "an exception of a million frames": r"a frame of \d+ bytes|an exception's descriptor: .*",
}


@pytest.fixture
def spared(profile: Path) -> Any:
    """Opens a sandbox, and looks afterwards whether the application is what it was."""
    with sandboxes(sandboxes_config=profile, python_api=GRANTS):  # what is opened once and kept
        hostile_targets.quiet()
    before = descriptors(), threading.active_count()
    with sandboxes(sandboxes_config=profile, python_api=GRANTS, graceful_shutdown=False) as handle:
        assert hostile_targets.quiet() == handle.pid
        yield handle
        assert hostile_targets.quiet() == handle.pid
    assert descriptors() <= before[0] + 2
    assert threading.active_count() == before[1]


@pytest.mark.parametrize("how", ENDED)
def test_it_is_ended(spared: Any, how: str) -> None:
    first = spared.pid
    with pytest.raises(
        SandBoxProtocolError,
        match=rf"^the call has no answer: the sandbox \(process {first}\) broke the call protocol: ({ENDED[how]})",
    ):
        hostile_targets.attack(how)
    assert hostile_targets.quiet() != first
    assert re.search(rf"process {first}\) was ended: .*broke the call protocol", spared.stats()["last_death"])


@pytest.mark.parametrize("how", ["half a frame, and the end", "closes", "shuts its end"])
def test_a_channel_that_ends(spared: Any, how: str) -> None:
    first = spared.pid
    with pytest.raises(SandBoxProtocolError, match=r"closed its connection|ended with exit code 0"):
        hostile_targets.attack(how)
    assert hostile_targets.quiet() != first


def test_two_answers(spared: Any) -> None:
    """The first is the call's answer; the second ends the sandbox, at the latest when the next call reads it."""
    first = spared.pid
    assert hostile_targets.attack("two answers") is None
    try:
        hostile_targets.quiet()
    except SandBoxProtocolError as exc:
        assert "broke the call protocol: a frame of kind 14 for call" in str(exc)
    assert hostile_targets.quiet() != first


def test_a_pickle_bomb(spared: Any) -> None:
    """Is a result that is refused."""
    with pytest.raises(RestrictedUnpicklingError, match=r"posix\.system"):
        hostile_targets.attack("a pickle bomb")


def test_a_bomb_in_an_exception(spared: Any) -> None:
    """What the descriptor says is left of it."""
    with pytest.raises(ValueError, match=r"^m$"):
        hostile_targets.attack("a bomb in an exception")


#: Its frames get in between those of the other call; so it may be what that makes of them.
FLOOD = r"broke the call protocol: (\d+ bytes of output of call \d+ that nobody has taken, where 1048576 are sent ahead|.*)"


class Waiting:
    """A stream that takes nothing until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def write(self, text: str) -> int:
        self.go.wait(30)
        return len(text)

    def flush(self) -> None:
        return


@pytest.mark.parametrize("how", ["output without end", "records without end"])
def test_a_flood_that_waits_for_nobody(spared: Any, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While another thread reads: the sandbox is ended once it is past its window."""
    stream = Waiting()
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setattr("pysandboxes._logs.handle", lambda _: stream.go.wait(30))
    before = resident()
    outcome: list[BaseException] = []

    def flooded() -> None:
        try:
            hostile_targets.attack(how)
        except BaseException as exc:
            outcome.append(exc)

    thread = threading.Thread(target=flooded)
    thread.start()
    with pytest.raises(SandBoxProtocolError, match=FLOOD):
        while True:
            hostile_targets.quiet()
    assert resident() - before < 32 << 10
    stream.go.set()
    thread.join(30)
    assert re.search(FLOOD, str(outcome[0]))


def test_a_frame_that_stalls(spared: Any) -> None:
    """Holds all calls up, and so nobody waits longer than for any call that hangs: for its time, or until Ctrl-C."""
    first = spared.pid
    with pytest.raises(SandBoxTimeoutError, match=r"stall has not answered within 0\.5 s"):
        hostile_targets.stall()
    assert hostile_targets.quiet() != first
