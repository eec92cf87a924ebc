"""python-sb in place of python: options, argv, streams, exit codes, signals. The oracle is bare Python."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke
OPEN = "python-import=*\npython-api=ALLOW:*\n"


def same(place: Place, *args: str, **kwargs: object) -> subprocess.CompletedProcess[str]:
    """Runs args sandboxed and bare: status and output must agree."""
    boxed, bare = place.run(*args, **kwargs), place.bare(*args, **kwargs)
    assert (boxed.returncode, boxed.stdout) == (bare.returncode, bare.stdout), boxed.stderr
    return boxed


@pytest.mark.parametrize("status", [0, 1, 2, 77, 255])
def test_exit_codes(place: Place, status: int) -> None:
    place.profile(OPEN)
    assert same(place, "-c", f"import sys; sys.exit({status})").returncode == status


def test_exit_by_message_and_by_exception(place: Place) -> None:
    place.profile(OPEN)
    done = same(place, "-c", "import sys; sys.exit('message')")
    assert (done.returncode, done.stderr) == (1, "message\n")
    done = same(place, "-c", "1/0")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGABRT", "SIGHUP"])
def test_death_by_signal(place: Place, name: str) -> None:
    place.profile(OPEN)
    number = getattr(signal, name)
    assert same(place, "-c", f"import os; os.kill(os.getpid(), {int(number)})").returncode == -number


def test_argv(place: Place) -> None:
    place.profile(OPEN)
    script = str(place.file("show.py", "import sys; print(sys.argv[1:], __name__, sys.flags.optimize)"))
    arguments = ["--learn", "--key=value", "-c", "x y", "", "-"]
    same(place, script, *arguments)
    same(place, "-O", script, *arguments)
    same(place, "-c", "import sys; print(sys.argv)", *arguments)


@pytest.mark.parametrize(
    "options",
    [
        ["-X", "utf8"],
        ["-Xutf8=0"],
        ["-W", "error"],
        ["-I"],
        ["-OO"],
        ["-u"],
        ["-B"],
        ["-bb"],
        ["-P"],
        ["-IS"],
        ["-E"],
        ["-q", "-v"][:1],
    ],
)
def test_options_of_python(place: Place, options: list[str]) -> None:
    place.profile(OPEN)
    code = "import sys; print(sys.flags, sys._xoptions, sys.warnoptions)"
    boxed, bare = place.run(*options, "-c", code), place.bare(*options, "-c", code, env={})  # the sandbox's is empty too
    assert (boxed.returncode, boxed.stdout) == (bare.returncode, bare.stdout), boxed.stderr


def test_a_module(place: Place) -> None:
    place.profile("python-import=*\n")
    done = place.run("-m", "json.tool", input='{"a": 1}')
    bare = place.bare("-m", "json.tool", input='{"a": 1}')
    assert (done.returncode, done.stdout) == (bare.returncode, bare.stdout), done.stderr


def test_a_module_of_the_folder(place: Place) -> None:
    place.file("package/__init__.py", "")
    place.file("package/__main__.py", "import sys; print('main of', __package__, sys.argv[1:])")
    place.profile("python-import=sys\n")
    same(place, "-m", "package", "a", "--b=c")


def test_a_program_from_stdin(place: Place) -> None:
    place.profile(OPEN)
    same(place, "-", "a", input="import sys; print(sys.argv, sys.stdin.read())")


def test_stdin_reaches_the_program(place: Place) -> None:
    place.profile(OPEN)
    same(place, "-c", "import sys; print(sys.stdin.read().upper())", input="text\n" * 1000)


def test_a_target_that_is_missing(place: Place) -> None:
    place.profile(OPEN)
    done = place.run("no_such_script.py")
    bare = place.bare("no_such_script.py")
    assert done.returncode == bare.returncode == 2
    assert "no_such_script.py" in done.stderr
    assert "Traceback" not in done.stderr
    done = place.run("-m", "no_such_module_here")
    assert done.returncode == 1
    assert "no_such_module_here" in done.stderr


def test_an_unknown_option(place: Place) -> None:
    place.profile(OPEN)
    done = place.run("--lern", "-c", "pass")
    assert done.returncode == 2
    assert "--learn" in done.stderr
    done = place.run("--expose-or=/tmp", "-c", "pass")
    assert done.returncode == 2
    assert "expose-ro" in done.stderr


def test_the_version(place: Place) -> None:
    done = place.run("--version")
    assert done.returncode == 0
    assert done.stdout.startswith("python-sb ")


def test_no_profile_and_no_terminal(place: Place) -> None:
    done = place.run("-c", "print('ran')")
    assert done.returncode == 2
    assert done.stdout == ""
    assert ".py-sandboxes" in done.stderr
    assert "--learn" in done.stderr


def test_signals_reach_the_program(place: Place) -> None:
    place.profile(OPEN)
    code = """
import os, signal, sys
def handler(number, frame):
    os.write(1, f'got {signal.Signals(number).name}\\n'.encode())
    sys.exit(5)
signal.signal(signal.SIGTERM, handler)
os.write(1, b'ready\\n')
signal.pause()
"""
    with subprocess.Popen(
        place.command("-c", code), stdout=subprocess.PIPE, text=True, cwd=place.folder, env=place.environ()
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
        assert child.stdout.readline() == "got SIGTERM\n"
        assert child.wait(20) == 5


@pytest.mark.parametrize("handled", [True, False])
def test_ctrl_c_on_a_terminal(place: Place, handled: bool) -> None:
    place.profile(OPEN)
    code = "import time\nprint('ready', flush=True)\ntime.sleep(60)\n"
    if handled:
        code = "try:\n    import time\n    print('ready', flush=True)\n    time.sleep(60)\nexcept KeyboardInterrupt: pass\n"
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(place.folder)
        os.execve(place.command()[0], place.command("-c", code), place.environ())
    try:
        seen = b""
        while b"ready" not in seen:
            assert select.select([terminal], [], [], 20)[0], seen
            seen += os.read(terminal, 4096)
        os.write(terminal, b"\x03")
        status = os.waitpid(pid, 0)[1]
    finally:
        os.close(terminal)
    if handled:
        assert os.waitstatus_to_exitcode(status) == 0
    else:
        assert os.waitstatus_to_exitcode(status) == -signal.SIGINT


def test_sigpipe_and_faulthandler_are_pythons_own(place: Place) -> None:
    place.profile(OPEN)
    same(
        place,
        "-c",
        "import signal; print(signal.getsignal(signal.SIGPIPE), [signal.getsignal(s) for s in (2, 13, 15, 17, 23)])",
    )
    done = place.run("-X", "faulthandler", "-c", "import ctypes; ctypes.string_at(0)")
    bare = place.bare("-X", "faulthandler", "-c", "import ctypes; ctypes.string_at(0)")
    assert done.returncode == bare.returncode == -signal.SIGSEGV, done.stderr
    assert "Fatal Python error: Segmentation fault" in done.stderr


def test_no_descriptor_is_in_the_programs_way(place: Place) -> None:
    place.profile(OPEN)
    same(place, "-c", "import os; r, w = os.pipe(); print(r, w)")


def test_threads_are_the_programs_own(place: Place) -> None:
    place.profile(OPEN + "expose-ro=/proc\n")
    same(place, "-c", "import os; print(len(os.listdir('/proc/self/task')))")


def test_py_sandbox_false_leaves_only_the_os_layer(place: Place) -> None:
    place.profile("py-sandbox=false\n")
    done = place.run("-c", "import json; print(json.dumps(1))")
    assert done.stdout == "1\n", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_the_supervisor_dies_and_takes_the_program_along(place: Place) -> None:
    place.profile(OPEN)
    code = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)"
    with subprocess.Popen(
        place.command("-c", code), stdout=subprocess.PIPE, text=True, cwd=place.folder, env=place.environ()
    ) as child:
        assert child.stdout is not None
        inner = int(child.stdout.readline())
        handle = os.pidfd_open(inner)
        child.kill()
        child.wait(20)
        assert select.select([handle], [], [], 20)[0], "the program outlived its supervisor"
        os.close(handle)
