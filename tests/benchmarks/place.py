"""Where the benchmarks run: a temporary folder with a profile and files, the commands, and the facts of the machine."""

from __future__ import annotations

import compileall
import importlib.util
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHON = sys.executable
COMMAND = Path(sys.executable).with_name("python-sb")

#: What the sandboxed side may do. Not the least that would do, but of the size of a small program's profile.
PROFILE = """\
python-import=*
expose-ro={here}
expose-ro={folder}/data
expose-rw={folder}/output
"""
FILES = 20  # in the data folder


class CommandError(Exception):
    """A measured command failed, so that its time says nothing."""


@dataclass
class Place:
    """A run's folder and its size: ``rounds`` of each measure, ``quick`` for one tiny turn of each side."""

    folder: Path
    rounds: int
    quick: bool

    def __post_init__(self) -> None:
        for name in ("data", "output", "home"):
            (self.folder / name).mkdir()
        for number in range(FILES):
            (self.folder / "data" / f"{number:02}.txt").write_text("a line of text\n" * 20)
        self.profile.write_text(PROFILE.format(here=HERE, folder=self.folder))
        self._compile()

    def _compile(self) -> None:
        """Bytecode for the package and for what is here, as pip makes it: or each start would compile anew, where neither
        the sandbox nor PYTHONDONTWRITEBYTECODE lets the interpreter keep it."""
        package = importlib.util.find_spec("pysandboxes")
        assert package is not None and package.origin is not None
        for folder in (Path(package.origin).parent, HERE):
            compileall.compile_dir(folder, maxlevels=0, quiet=2)

    @property
    def profile(self) -> Path:
        """The default place of a profile: the working directory of every measured process."""
        return self.folder / ".py-sandboxes"

    def count(self, full: int) -> int:
        """How many samples a turn takes."""
        return max(3, full // 50) if self.quick else full

    @property
    def environment(self) -> dict[str, str]:
        """The same few variables for all sides; caches and state stay in the folder."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": str(self.folder / "home")}

    def bare(self, *arguments: str) -> list[str]:
        return [PYTHON, *arguments]

    def sandboxed(self, *arguments: str, provider: str | None = None) -> list[str]:
        """``provider`` None: the default one."""
        options = [f"--os-sandbox={provider}"] if provider else []
        return [str(COMMAND), *options, *arguments]

    def time(self, command: Sequence[str], **environment: str) -> float:
        """Seconds from spawn to end of a command that prints nothing. Raises CommandError with its last words."""
        # The descriptors go to a file: a pipe would put this process's reading on the measured way.
        with (self.folder / "last-words").open("w+") as words:
            began = time.perf_counter()
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                cwd=self.folder,
                env={**self.environment, **environment},
            )
            code = process.wait()
            took = time.perf_counter() - began
            if code != 0:
                words.seek(0)
                raise CommandError(f"{' '.join(command)}: exit code {code}: {words.read().strip()[-500:]}")
        return took

    def start(self, command: Sequence[str], **environment: str) -> subprocess.Popen[str]:
        """A process that is spoken to by lines. Its stderr goes to a file of its own in the folder."""
        with (self.folder / "worker-errors").open("a") as words:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=words,
                text=True,
                cwd=self.folder,
                env={**self.environment, **environment},
            )

    def last_words(self) -> str:
        return (self.folder / "worker-errors").read_text(errors="replace").strip()[-500:]


def machine() -> dict[str, str | int | float]:
    """What the figures were taken on."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "cpu": model,
        "cpus": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
