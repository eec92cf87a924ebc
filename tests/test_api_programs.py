"""Whole programs that use the package: their main file, signals, forks, notebooks, learning."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

# The sandbox does not get the variable, and needs it as little.
OPEN = """
import os, sys, pysandboxes
from pysandboxes import sandbox, sandboxes
PROFILE = os.environ.get('PROFILE')
"""


def main_profile(profile: Path, folder: Path) -> Path:
    path = folder / "with-main"
    path.write_text(profile.read_text() + f"expose-ro={folder}\n")
    return path


def test_a_function_of_the_main_file(run_program: Run) -> None:
    done = run_program(
        OPEN
        + """
print("loading", __name__)
class Local:
    def __init__(self, value): self.value = value
@sandbox
def double(local): return local.value * 2, __name__, sys.argv[1:]
if __name__ == "__main__":
    with sandboxes(sandboxes_config=PROFILE):
        print(double(Local(4)), double.__module__)
"""
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["loading __main__", "loading __mp_main__", "(8, '__mp_main__', []) __main__"]


def test_a_main_file_that_is_not_guarded(run_program: Run) -> None:
    done = run_program(
        OPEN
        + """
@sandbox
def f(): return 1
try:
    with sandboxes(sandboxes_config=PROFILE):
        print(f())
except pysandboxes.SandBoxError as exc:
    print(type(exc).__name__, exc)
    sys.exit(7)
"""
    )
    assert done.returncode == 7
    assert 'if __name__ == "__main__":' in done.stdout


def test_a_main_module_of_a_package(run_program: Run, tmp_path: Path, profile: Path) -> None:
    package = tmp_path / "mypackage"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "names.py").write_text("NAME = 'relative'\n")
    (package / "tool.py").write_text(
        OPEN
        + """
from .names import NAME
@sandbox
def f(): return NAME
if __name__ == "__main__":
    with sandboxes(sandboxes_config=PROFILE):
        print(f())
"""
    )
    done = run_program("", "-m", "mypackage.tool", profile=main_profile(profile, tmp_path))
    assert (done.stdout, done.stderr) == ("relative\n", "")


def test_the_planted_package_is_not_imported(run_program: Run, tmp_path: Path) -> None:
    """A pysandboxes in the working directory, which also is on the path of the application."""
    done = run_program(
        OPEN
        + """
import api_targets
if __name__ == "__main__":
    os.makedirs("pysandboxes")
    open("pysandboxes/__init__.py", "w").write("print('planted')")
    sys.path.insert(0, "")
    with sandboxes(sandboxes_config=PROFILE):
        print(api_targets.add(1))
"""
    )
    assert (done.stdout, done.stderr) == ("2\n", "")


WAITING = (
    OPEN
    + """
import api_targets, threading, time
if __name__ == "__main__":
    with sandboxes(sandboxes_config=PROFILE) as handle:
        api_targets.add(1)
        print("ready", handle.pid, flush=True)
        try:
            {call}
        except KeyboardInterrupt:
            print("interrupted", time.monotonic(), flush=True)
        print(api_targets.add(1), flush=True)
        os._exit(0)
"""
)


@pytest.mark.parametrize(
    "call",
    [
        "api_targets.sleep(60)",
        "import asyncio; asyncio.run(api_targets.asleep(60))",
        "[t := threading.Thread(target=api_targets.sleep, args=(60,), daemon=True), t.start(), api_targets.sleep(60)]",
    ],
    ids=["sync", "async", "follower"],
)
def test_ctrl_c_interrupts_a_waiting_call(program: Callable[..., subprocess.Popen[str]], call: str) -> None:
    import time

    process = program(WAITING.format(call=call))
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready")
    time.sleep(0.2)  # into the wait; too early would still be an interrupt of the same call
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    word, _, at = process.stdout.readline().partition(" ")
    assert word == "interrupted"
    assert float(at) - sent < 0.3
    assert process.stdout.readline() == "2\n"
    process.communicate(timeout=20)


def test_a_call_that_was_interrupted_does_not_hold_up_the_end(program: Callable[..., subprocess.Popen[str]]) -> None:
    process = program(
        OPEN
        + """
import api_targets
if __name__ == "__main__":
    try:
        with sandboxes(sandboxes_config=PROFILE):
            api_targets.add(1)
            print("ready", flush=True)
            api_targets.sleep(60)
    except KeyboardInterrupt:
        print("interrupted")
"""
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert (out, process.returncode) == ("interrupted\n", 0), err


def test_a_fork_of_the_application(run_program: Run) -> None:
    done = run_program(
        OPEN
        + """
import api_targets
if __name__ == "__main__":
    with sandboxes(sandboxes_config=PROFILE) as handle:
        api_targets.add(1)
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            for use in (lambda: api_targets.add(1), lambda: handle.pid, handle.reload):
                try:
                    use()
                except pysandboxes.SandBoxError as exc:
                    print("fork" in str(exc), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        print(api_targets.add(1), flush=True)
        if os.fork() == 0:
            sys.exit(5)  # leaves the block, which must not end the parent's sandbox
        print(os.waitstatus_to_exitcode(os.wait()[1]), api_targets.add(2))
"""
    )
    assert (done.stdout, done.returncode) == ("True\nTrue\nTrue\n2\n5 3\n", 0)
    assert "Error" not in done.stderr


def test_a_sandbox_that_nobody_leaves_ends_with_the_program(run_program: Run) -> None:
    done = run_program(
        OPEN
        + """
import api_targets
if __name__ == "__main__":
    handle = sandboxes(sandboxes_config=PROFILE).__enter__()
    api_targets.say("hello")
    print(handle.pid)
"""
    )
    hello, pid = done.stdout.split()
    assert (hello, done.stderr, done.returncode) == ("hello", "", 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_a_killed_application_takes_its_sandbox_along(program: Callable[..., subprocess.Popen[str]]) -> None:
    process = program(WAITING.format(call="api_targets.sleep(60)"))
    assert process.stdout is not None
    pid = int(process.stdout.readline().split()[1])
    process.kill()
    process.communicate(timeout=20)
    for _ in range(2000):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        os.sched_yield()
        signal.sigtimedwait([], 0.005)
    pytest.fail(f"the sandbox {pid} outlived its application")


def test_what_is_printed_outside_of_a_call_reaches_the_application(run_program: Run) -> None:
    done = run_program(
        OPEN
        + """
import threading
@sandbox
def start():
    import time
    def later():
        started.wait()
        print("from a thread")
        os.write(1, b"native\\n")
        finished.set()
    global started, finished
    started, finished = threading.Event(), threading.Event()
    threading.Thread(target=later).start()
@sandbox
def go():
    started.set()
    finished.wait()
if __name__ == "__main__":
    with sandboxes(sandboxes_config=PROFILE, python_api="ALLOW:threads"):
        start()
        go()
"""
    )
    assert sorted(done.stdout.splitlines()) == ["from a thread", "native"]
    assert done.stderr == ""


def test_learning_in_code(run_program: Run, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "file.txt").write_text("content")
    source = (
        OPEN
        + """
@sandbox
def work():
    import json
    return json.loads(open("data/file.txt").read() and "1"), os.environ.get("LEARNED")
if __name__ == "__main__":
    with sandboxes(**eval(os.environ["ARGUMENTS"])):
        print(*work())
"""
    )
    env = {"ARGUMENTS": "{'learn': 'learned'}", "LEARNED": "yes"}
    learning = run_program(source, env=env)
    assert learning.stdout == "1 yes\n", learning
    written = (tmp_path / "learned").read_text()
    assert "python-import=json" in written
    assert "./data" in written
    assert "env=LEARNED=${LEARNED}" in written
    assert learning.stderr.endswith(f" rules; check this file: {tmp_path / 'learned'}\n")
    enforced = run_program(source, env={**env, "ARGUMENTS": "{'sandboxes_config': 'learned'}"})
    assert enforced.stdout == "1 yes\n", enforced
    (tmp_path / "learned").write_text(written.replace("python-import=json", "#"))
    refused = run_program(source, env={**env, "ARGUMENTS": "{'sandboxes_config': 'learned'}"})
    assert "RuleModuleNotFoundError" in refused.stderr
    assert "python-import=json" in refused.stderr


def test_learning_into_a_file_that_cannot_be_written(run_program: Run) -> None:
    source = OPEN + "with sandboxes(learn='/no/such/folder/x'): print('ran')\n"
    done = run_program(source)
    assert (done.returncode, done.stdout) == (1, "")
    assert "learning into /no/such/folder/x" in done.stderr


def test_learning_can_be_forbidden(run_program: Run, tmp_path: Path) -> None:
    source = OPEN + "with sandboxes(learn='learned'): pass\n"
    done = run_program(source, env={"PYSANDBOXES_LEARN": "never"})
    assert "PYSANDBOXES_LEARN=never" in done.stderr
    assert not (tmp_path / "learned").exists()


def test_a_missing_profile_without_a_terminal(run_program: Run, tmp_path: Path) -> None:
    done = run_program(OPEN + "with sandboxes(): pass\n")
    assert "ConfigSyntaxError" in done.stderr
    assert str(tmp_path / ".py-sandboxes") in done.stderr
    assert "learn" in done.stderr


def test_nested_sandboxes_inside_are_no_sandboxes(run_program: Run) -> None:
    """In a process that is sandboxed already, with and @sandbox act in place; init_fn still runs."""
    done = run_program(
        OPEN
        + """
@sandbox
def inner(): return os.getpid()
def init(): print("init")
@sandbox
def outer():
    with sandboxes(init, sandboxes_config="/nowhere") as handle:
        async def main(): return inner()
        return inner() == os.getpid() == handle.pid, handle.provider
if __name__ == "__main__":
    with sandboxes(sandboxes_config=PROFILE):
        print(outer())
"""
    )
    assert (done.stdout, done.stderr) == ("init\n(True, 'inside')\n", "")


@pytest.mark.smoke
@pytest.mark.parametrize("command", [["-m", "pysandboxes.python_sb"], ["-c", "import pysandboxes.python_sb as p; p.main()"]])
def test_python_sb_from_python(command: list[str], profile: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import pysandboxes, api_targets\n"
        "print(pysandboxes.is_in_sandbox(), api_targets.add(1), sys.argv[1:])\n"
        "with pysandboxes.sandboxes(api_targets.initialise): print(api_targets.INITIALISED)\n"
        "sys.exit(4)\n"
    )
    done = subprocess.run(
        [sys.executable, *command, f"--pysandboxes-config={profile}", str(script), "--flag", "argument"],
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.returncode) == ("True 2 ['--flag', 'argument']\n['sync']\n", 4), done.stderr


def test_python_sb_that_is_not_installed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from pysandboxes import _binary, python_sb

    def missing() -> str:
        raise FileNotFoundError("the program python-sb is not installed")

    monkeypatch.setattr(_binary, "find", missing)
    with pytest.raises(SystemExit) as end:
        python_sb.main([])
    assert end.value.code == 127
    assert "not installed" in capsys.readouterr().err


def test_ipython_takes_what_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    from pysandboxes import python_sb

    taken: list[Any] = []
    monkeypatch.setattr(python_sb, "main", taken.append)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(sys, "argv", ["ipython-sb", "--learn", "--no-banner", "--os-sandbox=landlock", "-c", "1", "file.py"])
    python_sb.ipython_main()
    assert taken == [["--learn", "--os-sandbox=landlock", "-m", "IPython", "--no-banner", "-c", "1", "file.py"]]


def test_without_ipython_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from pysandboxes import python_sb

    monkeypatch.setattr(python_sb, "main", lambda arguments: pytest.fail(f"started {arguments}"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["/venv/bin/ipython3-sb", "--learn"])
    with pytest.raises(SystemExit) as end:
        python_sb.ipython_main()
    assert end.value.code == 1
    wanted = f"ipython3-sb: IPython is not installed for {sys.executable}; install it: pip install ipython\n"
    assert capsys.readouterr().err == wanted
