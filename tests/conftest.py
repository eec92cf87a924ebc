"""Fixtures of the Python tests: profiles, open sandboxes, programs in processes of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from complete_mode import NOBODY, Place, public_environment

HERE = Path(__file__).resolve().parent

if (
    signal.getsignal(signal.SIGINT) == signal.SIG_IGN
):  # a shell starts background jobs so; what the tests start would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

#: What a test's sandbox may do: import anything, read the tests, kill itself. OS_SANDBOX chooses the provider.
PROFILE = f"""\
os-sandbox=${{OS_SANDBOX:-auto}}
python-import=*
python-api=ALLOW:os.kill
expose-ro={HERE}
"""


@pytest.fixture(scope="session")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile that lets the functions of api_targets be called and little else."""
    path = tmp_path_factory.mktemp("profile") / "tests.py-sandboxes"
    path.write_text(PROFILE)
    return path


@pytest.fixture
def sandbox_here(profile: Path) -> Iterator[Any]:
    """A sandbox of this test's own."""
    from pysandboxes import sandboxes

    with sandboxes(sandboxes_config=profile) as handle:
        yield handle


@pytest.fixture
def program(tmp_path: Path, profile: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts a Python program of its own: ``program(source, *arguments)``; it finds the profile in $PROFILE."""

    def start(source: str, *arguments: str, name: str = "program.py", **options: Any) -> subprocess.Popen[str]:
        file = tmp_path / name
        file.write_text(textwrap.dedent(source))
        environment = {
            **os.environ,
            "PROFILE": str(options.pop("profile", profile)),
            "FOLDER": str(tmp_path),
            "PYTHONPATH": str(HERE),
            **options.pop("env", {}),
        }
        return subprocess.Popen(
            [sys.executable, *options.pop("flags", ()), *(arguments or (str(file),))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment,
            **options,
        )

    return start


@pytest.fixture
def run_program(program: Callable[..., subprocess.Popen[str]]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program to its end and gives what it printed."""

    def run(source: str, *arguments: str, stdin: str | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
        process = program(source, *arguments, **options)
        out, err = process.communicate(stdin, timeout=60)
        if os.environ.get("OS_SANDBOX") == "subprocess":  # says at each start that it is weaker, and why it is in force
            err = "".join(line for line in err.splitlines(keepends=True) if "=subprocess " not in line)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return run


@pytest.fixture(scope="session")
def public_bin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """python and python-sb that another user can run, or None."""
    with tempfile.TemporaryDirectory(prefix="psb-public-") as folder:  # pytest's own folders are private
        Path(folder).chmod(0o755)
        yield public_environment(Path(folder) / "env")


@pytest.fixture
def unprivileged(public_bin: Path | None) -> Iterator[Place]:
    """A Place whose programs run as a user without any right: the tests' own where that is not root, else nobody."""
    if os.geteuid() != 0:
        user = None
    elif public_bin is None:
        pytest.skip("no interpreter of this version can be run by another user")
    else:
        user = NOBODY
    with tempfile.TemporaryDirectory(prefix="psb-nobody-") as folder:
        place = Place(Path(folder), user=user, **({"bin": public_bin} if user else {}))
        place.environ()
        if user:
            for path in (Path(folder), Path(folder) / "home"):
                os.chown(path, user, user)
        yield place


@pytest.fixture
def place() -> Iterator[Place]:
    """A folder of its own in which programs run under python-sb; its name is short, since unix sockets are made in it."""
    with tempfile.TemporaryDirectory(prefix="psb-") as folder:
        yield Place(Path(folder))


@pytest.fixture
def pool(profile: Path) -> Iterator[Callable[..., Any]]:
    """Makes pools that end with the test."""
    from pysandboxes import SandboxPoolExecutor

    made: list[SandboxPoolExecutor] = []

    def make(max_workers: int | None = 2, **options: Any) -> SandboxPoolExecutor:
        made.append(SandboxPoolExecutor(max_workers, sandboxes_config=profile, **options))
        return made[-1]

    yield make
    for one in made:
        one.shutdown(cancel_futures=True)


@pytest.fixture(scope="session")
def contained() -> Iterator[Path]:
    """The program that stands in for a container engine (``providers/internal/contained``)."""
    if not shutil.which("go"):
        pytest.skip("there is no Go here to build the container's stand-in with")
    folder = Path("/tmp") / f"psb-contained-{os.getpid()}"
    folder.mkdir(mode=0o755)
    build = ["go", "build", "-o", folder / "contained", "./providers/internal/contained"]
    subprocess.run(build, cwd=HERE.parent, check=True, env={**os.environ, "CGO_ENABLED": "0"})
    yield folder / "contained"
    shutil.rmtree(folder)
