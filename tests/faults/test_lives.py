"""Ends that nobody planned: the call that meets one gets an error that says which, the next call works, nothing is left."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import fault_targets
import pytest

from pysandboxes import SandBoxBaseExceptionError, SandBoxError, SandBoxProtocolError, sandboxes

HERE = Path(__file__).resolve().parent
SOAK = bool(os.environ.get("PSB_SOAK"))
GRANTS = ("ALLOW:process-exec", "ALLOW:os.kill", "ALLOW:native")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def resident() -> int:
    """KiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (str(int(signal.SIGKILL)), r"signal 9 \(SIGKILL\): by another process, or by the kernel because memory ran out"),
        (str(int(signal.SIGSEGV)), r"signal 11 \(SIGSEGV\): a fault in native code"),
        (str(int(signal.SIGABRT)), r"signal 6 \(SIGABRT\): native code gave up"),
        (str(int(signal.SIGTERM)), r"signal 15 \(SIGTERM\)"),
        ("_exit", "ended with exit code 3"),
        ("fault", r"signal 11 \(SIGSEGV\)"),
    ],
)
def test_an_interpreter_that_ends(profile: Path, how: str, words: str) -> None:
    with sandboxes(sandboxes_config=profile, python_api=GRANTS) as handle:
        first = handle.pid
        with pytest.raises(SandBoxProtocolError, match=rf"^the call has no answer: the sandbox \(process {first}\) .*{words}"):
            fault_targets.end_by(how)
        assert fault_targets.pid() == handle.pid != first
        assert handle.stats()["last_death"]
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


@pytest.mark.parametrize(
    ("how", "cls", "words"),
    [
        ("exit", SandBoxBaseExceptionError, "SystemExit: 4"),
        ("quit", SandBoxBaseExceptionError, "SystemExit: by a message"),
        ("recursion", RecursionError, "recursion"),
    ],
)
def test_a_call_that_only_seems_to_end_it(profile: Path, how: str, cls: type[Exception], words: str) -> None:
    with sandboxes(sandboxes_config=profile) as handle:
        first = handle.pid
        with pytest.raises(cls, match=words):
            fault_targets.end_by(how)
        assert fault_targets.pid() == handle.pid == first


def test_a_crash_loop_ends(profile: Path) -> None:
    with sandboxes(sandboxes_config=profile) as handle:
        for _ in range(5):
            with pytest.raises(SandBoxProtocolError, match="exit code 3"):
                fault_targets.end_by("_exit")
        with pytest.raises(
            SandBoxError, match=r"died 5 times within 30s and is not started again; the last time: .*exit code 3"
        ):
            fault_targets.pid()
        with pytest.raises(SandBoxError, match="died 5 times"):
            fault_targets.pid()
        assert handle.stats()["pid"] == 0
    with sandboxes(sandboxes_config=profile) as handle:
        assert fault_targets.pid() == handle.pid


def test_calls_over_their_time_are_no_crash_loop(profile: Path) -> None:
    with sandboxes(sandboxes_config=profile, call_timeout="150ms"):
        for _ in range(7):
            with pytest.raises(TimeoutError):
                fault_targets.sleep(60)


def test_others_of_a_call_over_its_time_are_told_why(profile: Path) -> None:
    failures: list[BaseException] = []

    def call() -> None:
        try:
            asyncio.run(fault_targets.sleep_async(60))
        except BaseException as exc:
            failures.append(exc)

    with sandboxes(sandboxes_config=profile) as handle:
        fault_targets.pid()
        other = threading.Thread(target=call)
        other.start()
        while handle.stats()["pending"] < 1:
            pass
        with pytest.raises(TimeoutError):
            fault_targets.sleep_a_moment(60)
        other.join(20)
    assert [type(exc) for exc in failures] == [SandBoxProtocolError]
    assert "another of its calls was over its time" in str(failures[0])


def test_an_init_fn_that_ends_the_interpreter(profile: Path) -> None:
    with pytest.raises(SandBoxProtocolError, match="exit code 9"):
        sandboxes(fault_targets.initialise_and_die, sandboxes_config=profile).__enter__()


def test_an_init_fn_that_calls(profile: Path) -> None:
    """In the sandbox a call is direct."""
    with sandboxes(fault_targets.initialise_by_a_call, sandboxes_config=profile):
        assert fault_targets.initialised() == ["xxx"]


WAITS = {
    "a start whose init_fn hangs": "sandboxes(fault_targets.initialise_for_ever, sandboxes_config=PROFILE).__enter__()",
    "the end, while a call runs": """
with sandboxes(sandboxes_config=PROFILE) as handle:
    __import__("threading").Thread(target=quiet, daemon=True).start()
    while handle.stats()["pending"] < 1:
        pass
    print("initialising", flush=True)
""",
    "a reload, while a call runs": """
with sandboxes(sandboxes_config=PROFILE) as handle:
    __import__("threading").Thread(target=quiet, daemon=True).start()
    while handle.stats()["pending"] < 1:
        pass
    print("initialising", flush=True)
    handle.reload()
""",
}


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_in_each_wait(wait: str, program: Callable[..., subprocess.Popen[str]]) -> None:
    lines = "\n".join("    " + line for line in WAITS[wait].strip("\n").splitlines())
    process = program(f"""\
import os, sys
sys.path.insert(0, {str(HERE)!r})
import fault_targets
from pysandboxes import SandBoxError, sandboxes
PROFILE = os.environ["PROFILE"]

def quiet():
    try:
        fault_targets.sleep(600)
    except SandBoxError:
        pass

if __name__ == "__main__":
{lines}
""")
    assert process.stdout is not None
    assert process.stdout.readline() == "initialising\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)  # well below the time that a drain may take
    assert process.returncode == -signal.SIGINT, err
    assert err.rstrip().endswith("KeyboardInterrupt"), err


def test_threads_and_tasks_that_call_while_it_stops(profile: Path) -> None:
    """Each gets its answer or an error of ours, and all of them come back."""
    outcomes: list[object] = []
    began = threading.Barrier(9)

    def call(function: Callable[[], object]) -> None:
        began.wait()
        try:
            while True:
                outcomes.append(function())
        except BaseException as exc:
            outcomes.append(type(exc))

    def task() -> object:
        return asyncio.run(fault_targets.sleep_async(0))

    with sandboxes(sandboxes_config=profile):
        fault_targets.pid()
        functions = [fault_targets.pid] * 4 + [task] * 4
        threads = [threading.Thread(target=call, args=(function,)) for function in functions]
        for thread in threads:
            thread.start()
        began.wait()
        fault_targets.sleep(0.05)
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    ends = [outcome for outcome in outcomes if isinstance(outcome, type)]
    assert len(ends) == 8
    assert set(ends) <= {SandBoxError, SandBoxProtocolError}


def test_a_fork_in_the_sandbox(profile: Path) -> None:
    with sandboxes(sandboxes_config=profile, python_api=GRANTS) as handle:
        first = handle.pid
        assert fault_targets.fork_and_go_on() == 7
        for how, status in {"return": 0, "exit": 5, "message": 1, "raise": 1}.items():
            assert fault_targets.fork_and_come_back(how) == status, "and the answer is that of the one that was asked"
        assert fault_targets.pid() == first


class Tail(io.TextIOBase):
    """Counts what is written and keeps the end of it."""

    def __init__(self) -> None:
        self.count = 0
        self.last = ""

    def write(self, text: str) -> int:
        self.count += len(text)
        self.last = text[-100:]
        return len(text)


def test_output_without_end_takes_no_memory(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tail = Tail()
    monkeypatch.setattr(sys, "stdout", tail)
    chunk, times = b"0123456789abcde\n" * 4096, (4096 if SOAK else 400)
    with sandboxes(sandboxes_config=profile):
        fault_targets.write([chunk], 20)
        before, tail.count = resident(), 0
        assert fault_targets.write([chunk], times) == times * len(chunk) == tail.count
        assert tail.last.endswith("abcde\n")
        assert resident() - before < 16 << 10


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        ([b"\xff\xfe whole\n"], "\\xff\\xfe whole\n"),
        ([b"gr\xc3", b"\xbc\xc3\x9f\n"], "grüß\n"),
        ([b"no", b" line", b" end"], "no line end"),
        ([b"\x00\x1b[0m\n"], "\x00\x1b[0m\n"),
    ],
    ids=["no utf-8", "a character in two parts", "no line end", "control characters"],
)
def test_output_of_any_bytes(profile: Path, chunks: list[bytes], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with sandboxes(sandboxes_config=profile):
        fault_targets.write(chunks)
        assert capsys.readouterr().out == text


def test_native_code_that_writes_to_the_descriptor(profile: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with sandboxes(sandboxes_config=profile):
        assert fault_targets.write_natively(b"from below\n") == 11
    assert capfd.readouterr().out == "from below\n"


@pytest.mark.timeout(1500 if SOAK else 120)
def test_many_lives_leave_nothing(program: Callable[..., subprocess.Popen[str]]) -> None:
    """Start, call, end, and every third by a death: descriptors, threads and memory stay as they are."""
    source = """
import os, sys, threading
from pathlib import Path
sys.path.insert(0, os.environ["HERE"])
import fault_targets
from pysandboxes import SandBoxProtocolError, sandboxes

def live(number):
    with sandboxes(sandboxes_config=os.environ["PROFILE"], graceful_shutdown=number % 2 == 0):
        assert len(fault_targets.answer(1000)) == 1000
        if number % 3 == 0:
            try: fault_targets.end_by("_exit")
            except SandBoxProtocolError: return
            raise AssertionError("it lived on")

def state():
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    return len(os.listdir("/proc/self/fd")), threading.active_count(), resident

if __name__ == "__main__":
    rounds = int(os.environ["ROUNDS"])
    for number in range(rounds // 2): live(number)
    before = state()
    for number in range(rounds): live(number)
    after = state()
    assert after[0] <= before[0] + 1 and after[1] == before[1] and after[2] - before[2] < 8 << 10, (before, after)
    try: os.waitpid(-1, os.WNOHANG)
    except ChildProcessError: print("nothing left")
"""
    process = program(source, env={"HERE": str(HERE), "ROUNDS": str(1000 if SOAK else 8)})
    out, err = process.communicate(timeout=1400 if SOAK else 100)
    assert (out, process.returncode) == ("nothing left\n", 0), err
