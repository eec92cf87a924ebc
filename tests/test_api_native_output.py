"""Descriptors 1 and 2 of a sandbox: the caller's while exactly one call runs, else the application's own."""

from __future__ import annotations

import asyncio
import contextlib
import io
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import native_output_targets as targets
import pytest

import pysandboxes

pytestmark = pytest.mark.smoke

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def here(profile: Path, tmp_path: Path) -> Iterator[Path]:
    """A sandbox that may do what the targets do; the folder whose files it sees."""
    with pysandboxes.sandboxes(
        sandboxes_config=profile, python_api="ALLOW:native", python_import="ctypes", expose_ro=str(tmp_path)
    ):
        yield tmp_path


def caught(call: Callable[[], object]) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        call()
    return out.getvalue(), err.getvalue()


def test_it_is_the_only_call_s(here: Path) -> None:
    for number in range(200):
        assert caught(lambda n=number: targets.write(b"out %d" % n, b"err")) == (f"out {number}", "err")  # type: ignore[misc]


def test_it_is_an_async_caller_s(here: Path) -> None:
    async def main() -> None:
        for number in range(50):
            await targets.write_async(b"%d;" % number)

    assert caught(lambda: asyncio.run(main()))[0] == "".join(f"{n};" for n in range(50))


def test_what_c_code_has_buffered_comes_before_the_result(here: Path) -> None:
    out = caught(lambda: targets.print_c("ä".encode()))[0]
    assert out in ("python\nä", "äpython\n")  # two ways, and nobody keeps them in step


def test_it_comes_before_an_exception(here: Path) -> None:
    def call() -> None:
        with pytest.raises(ValueError, match="failed"):
            targets.write_and_fail(b"before")

    assert caught(call)[0] == "before"


def test_the_last_words_of_an_interpreter(here: Path) -> None:
    def call() -> None:
        with pytest.raises(pysandboxes.SandBoxProtocolError, match="exit code 3"):
            targets.write_and_die(b"the end")

    assert caught(call)[1] == "the end"


def test_it_comes_while_the_call_runs(here: Path) -> None:
    class Answers(io.StringIO):
        def write(self, text: str) -> int:
            (here / text).touch()
            return len(text)

    for name in ("first", "second"):
        with contextlib.redirect_stdout(Answers()):
            assert targets.write_and_wait(name.encode(), str(here / name)) is True


def test_more_than_is_kept(here: Path) -> None:
    """It waits for the caller, in the pipe and not in this process."""

    class Counts(io.StringIO):
        count = 0

        def write(self, text: str) -> int:
            self.count += len(text)
            return len(text)

    stream = Counts()
    with contextlib.redirect_stdout(stream):
        targets.write_often(16 << 20)
    assert stream.count == 16 << 20


def test_of_two_calls_it_is_the_application_s(run_program: Run, tmp_path: Path) -> None:
    targets_file = Path(targets.__file__)
    done = run_program(
        f"""
import contextlib, io, os, sys, threading
sys.path.insert(0, {str(targets_file.parent)!r})
import pysandboxes, native_output_targets as targets
if __name__ == "__main__":
    stream = io.StringIO()
    with pysandboxes.sandboxes(
        sandboxes_config=os.environ["PROFILE"], python_api="ALLOW:native", python_import="ctypes", expose_ro={str(tmp_path)!r}
    ):
        targets.write()
        class Begun(io.StringIO):
            def write(self, text):
                begun.set()
                return super().write(text)
        begun, stream = threading.Event(), Begun()
        with contextlib.redirect_stdout(stream):
            waits = threading.Thread(target=targets.write_and_wait, args=(b"alone", {str(tmp_path / "go")!r}))
            waits.start()
            begun.wait()
            targets.write(b"of two")
            open({str(tmp_path / "go")!r}, "w").close()
            waits.join()
    print([stream.getvalue()])
"""
    )
    assert done.stderr == ""
    assert done.stdout == "of two['alone']\n"


def test_outside_of_calls_it_is_the_application_s(run_program: Run) -> None:
    done = run_program(
        """
import contextlib, io, os, pysandboxes
from pysandboxes import sandbox, sandboxes
@sandbox
def later():
    import threading
    threading.Thread(target=lambda: (gate.wait(), os.write(1, b"later"))).start()
@sandbox
def empty(): gate.set()
if __name__ != "__main__":
    import threading
    gate = threading.Event()
if __name__ == "__main__":
    with sandboxes(sandboxes_config=os.environ["PROFILE"], python_api="ALLOW:threads", graceful_shutdown=True):
        later()
        empty()
"""
    )
    assert (done.stdout, done.stderr) == ("later", "")
