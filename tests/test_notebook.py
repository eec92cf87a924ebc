"""Sandboxes in a notebook: cells in a real Jupyter kernel, on the loopback."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import NATIVE_KERNEL_NAME
from jupyter_client.manager import KernelManager

pytestmark = [pytest.mark.smoke, pytest.mark.xdist_group("notebook")]

HERE = Path(__file__).resolve().parent
TIMEOUT = 60


@dataclass
class Cell:
    """What a cell has shown: texts by stream, the last value, the error with its traceback."""

    streams: dict[str, str] = field(default_factory=dict)
    value: str = ""
    error: str = ""
    traceback: str = ""

    @property
    def out(self) -> str:
        assert not self.error, self.traceback
        return self.streams.get("stdout", "")


class Notebook:
    """A kernel with a client. ``cell(code)`` runs a cell to its end; ``meanwhile`` is called with what it prints."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        self.manager = KernelManager(kernel_name=NATIVE_KERNEL_NAME, ip="127.0.0.1")
        self.manager.start_kernel(env=environment, cwd=str(folder))
        self.connect()

    def connect(self) -> None:
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT)

    def cell(self, code: str, meanwhile: Callable[[str], None] | None = None) -> Cell:
        shown = Cell()

        def hook(message: dict[str, Any]) -> None:
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                shown.streams[content["name"]] = shown.streams.get(content["name"], "") + content["text"]
                if meanwhile is not None:
                    meanwhile(content["text"])
            elif kind == "execute_result":
                shown.value = content["data"]["text/plain"]
            elif kind == "error":
                shown.error = f"{content['ename']}: {content['evalue']}"
                shown.traceback = "\n".join(content["traceback"])

        self.client.execute_interactive(code, timeout=TIMEOUT, output_hook=hook, allow_stdin=False)
        return shown

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()


@pytest.fixture
def notebook(tmp_path: Path, profile: Path) -> Iterator[Notebook]:
    homes = ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")
    environment = {
        **os.environ,
        **{name: str(tmp_path / name.lower()) for name in homes},
        "PROFILE": str(profile),
        "PYTHONPATH": str(HERE),
        "NO_COLOR": "1",
    }
    for name in homes:
        (tmp_path / name.lower()).mkdir()
    made = Notebook(environment, tmp_path)
    try:
        made.cell(
            "%colors nocolor\n"
            "import os\n"
            "import pysandboxes\n"
            "from pysandboxes import sandbox, sandboxes\n"
            "box = sandboxes(sandboxes_config=os.environ['PROFILE'])\n"
            "handle = box.__enter__()"
        )
        yield made
    finally:
        made.close()


def ended(pid: int) -> bool:
    """Whether a process ends within the test's patience."""
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        try:
            if " (" in (text := Path(f"/proc/{pid}/stat").read_text()) and text.rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def test_cells_define_call_and_redefine(notebook: Notebook) -> None:
    notebook.cell("import math\nfrom dataclasses import dataclass\nfactor = 2")
    notebook.cell(
        "@dataclass\nclass Circle:\n    radius: float\n\ndef area(circle):\n    return math.floor(circle.radius) * factor"
    )
    assert notebook.cell("@sandbox\ndef f(circle):\n    return area(circle), os.getpid()\nf(Circle(3))[0]").value == "6"
    assert notebook.cell("f(Circle(3))[1] == handle.pid != os.getpid()").value == "True"
    notebook.cell("factor = 10")
    assert notebook.cell("f(Circle(3))[0]").value == "30"
    notebook.cell("old = f\ndef area(circle):\n    return 'new'")
    notebook.cell("@sandbox\ndef f(circle):\n    return area(circle) + '!'")
    assert notebook.cell("f(1), old(1)[0]").value == "('new!', 'new')"
    assert notebook.cell("import api_targets\napi_targets.add(1, 1)").value == "2"


def test_the_newest_open_sandbox_is_called(notebook: Notebook) -> None:
    notebook.cell("@sandbox\ndef where():\n    return os.getpid()")
    notebook.cell("other = sandboxes(sandboxes_config=os.environ['PROFILE'])\nsecond = other.__enter__()")
    assert notebook.cell("where() == second.pid != handle.pid").value == "True"
    notebook.cell("other.__exit__(None, None, None)")
    assert notebook.cell("where() == handle.pid").value == "True"
    assert (
        notebook.cell("with sandboxes(sandboxes_config=os.environ['PROFILE']) as third: print(where() == third.pid)").out
        == "True\n"
    )
    notebook.cell("box.__exit__(None, None, None)")
    assert "no sandbox is running here" in notebook.cell("where()").error


def test_async_cells(notebook: Notebook) -> None:
    notebook.cell(
        "import asyncio\n"
        "@sandbox\nasync def f(x):\n    await asyncio.sleep(0)\n    print('in', x)\n    return x * 2\n"
        "@sandbox\nasync def numbers():\n    for i in range(3): yield i"
    )
    assert notebook.cell("await f(4)").value == "8"
    shown = notebook.cell("await asyncio.gather(*(f(i) for i in range(20))) == [i * 2 for i in range(20)]")
    assert (shown.value, sorted(shown.out.splitlines())) == ("True", sorted(f"in {i}" for i in range(20)))
    assert notebook.cell("[i async for i in numbers()]").value == "[0, 1, 2]"
    assert notebook.cell(
        "async with sandboxes(sandboxes_config=os.environ['PROFILE']) as inner:\n    print(inner.pid != handle.pid, await f(1))"
    ).out.splitlines() == ["in 1", "True 2"]


def test_output_and_exceptions_are_the_cell_s(notebook: Notebook) -> None:
    notebook.cell(
        "import sys\n"
        "class Mine(Exception): pass\n"
        "@sandbox\ndef f(x):\n    print('out', x)\n    print('err', x, file=sys.stderr)\n    return x\n"
        "@sandbox\ndef fails():\n    raise Mine('so')  # this very line\n"
        "@sandbox\ndef refused():\n    open('/etc/hostname')"
    )
    shown = notebook.cell("f(1)")
    assert (shown.value, shown.streams) == ("1", {"stdout": "out 1\n", "stderr": "err 1\n"})
    shown = notebook.cell("fails()")
    assert shown.error == "Mine: so"
    assert "# this very line" in shown.traceback
    shown = notebook.cell("refused()")
    assert shown.error.startswith("RuleFileNotFoundError")
    assert "expose-ro=/etc/hostname" in shown.traceback
    assert notebook.cell("f(2)").out == "out 2\n"


SLEEPERS = (
    "import time, asyncio\n"
    "@sandbox\ndef f():\n    print('started')\n    time.sleep(600)\n"
    "@sandbox\nasync def g():\n    print('started')\n    await asyncio.sleep(600)\n"
    "@sandbox\ndef h(): return 5"
)


def test_interrupt(notebook: Notebook) -> None:
    notebook.cell(SLEEPERS)
    shown = notebook.cell("f()", lambda text: notebook.manager.interrupt_kernel())
    assert shown.error.startswith("KeyboardInterrupt"), shown.traceback
    assert notebook.cell("h()").value == "5"


@pytest.mark.parametrize(
    "code", ["await g()", "print('started'); await asyncio.sleep(600)"]
)  # the second: as plain Python does
def test_interrupt_of_an_await(notebook: Notebook, code: str) -> None:
    notebook.cell(SLEEPERS)

    def interrupt(text: str) -> None:
        notebook.manager.interrupt_kernel()
        notebook.client.execute("", silent=True)  # the kernel's loop looks for the signal when something comes in

    assert notebook.cell(code, interrupt).error.startswith("CancelledError")
    while not (shown := notebook.cell("h()")).value:  # what was sent before the error was told is dropped
        assert not shown.error
    assert shown.value == "5"


def test_a_restart_leaves_no_sandbox_behind(notebook: Notebook) -> None:
    pid = int(notebook.cell("handle.pid").value)
    notebook.client.stop_channels()
    notebook.manager.restart_kernel(now=True)  # by SIGKILL
    notebook.connect()
    assert ended(pid)
    notebook.cell("import os\nfrom pysandboxes import sandbox, sandboxes")
    notebook.cell(
        "box = sandboxes(sandboxes_config=os.environ['PROFILE'])\nhandle = box.__enter__()\n@sandbox\ndef f(): return 1"
    )
    pid = int(notebook.cell("handle.pid").value)
    assert notebook.cell("f()").value == "1"
    notebook.client.stop_channels()
    notebook.manager.restart_kernel(now=False)  # as a user asks for it
    notebook.connect()
    assert ended(pid)


def test_what_cannot_travel_is_said_in_the_cell(notebook: Notebook) -> None:
    notebook.cell("import threading\nlock = threading.Lock()\n@sandbox\ndef f():\n    with lock: return 1")
    assert "'lock' (a _thread.lock), which f() refers to" in notebook.cell("f()").error
    notebook.cell("@sandbox\ndef f():\n    return 2")
    assert notebook.cell("f()").value == "2"


def test_open_is_the_builtin(notebook: Notebook) -> None:
    """IPython has an ``open`` of its own among the names of a notebook, in its own module, which no profile should need."""
    shown = notebook.cell(
        "@sandbox\ndef size(path):\n    with open(path) as file:\n        return len(file.read())\nsize('/etc/passwd')"
    )
    assert shown.error.startswith("RuleFileNotFoundError: [Errno 2] No such file or directory: '/etc/passwd'")
    assert notebook.cell("size(os.devnull)").value == "0"
    own = "from io import StringIO\ndef open(path):\n    return StringIO(path)\nsize('/etc/passwd')"
    assert notebook.cell(own).value == str(len("/etc/passwd"))  # the notebook's own travels
    assert notebook.cell("del open\nsize(os.devnull)").value == "0"
