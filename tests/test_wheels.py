"""Both distributions as a user gets them: built, installed into an empty environment, run without Go on PATH."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

if shutil.which("go") is None or shutil.which("uv") is None:
    pytest.skip("builds wheels, which needs Go and uv on PATH", allow_module_level=True)

pytestmark = pytest.mark.timeout(900)


def run(*command: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=env, cwd=cwd)
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The wheels of the running Python and both sdists, by tools/wheels.py, which checks them itself."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "dist"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob("python_sb-*.whl")):
            python = f"{sys.version_info[0]}.{sys.version_info[1]}"
            run(sys.executable, ROOT / "tools/wheels.py", "--output", folder, "--pythons", python)
    return folder


@pytest.fixture(scope="session")
def version() -> str:
    found = re.search(r'^version = "(.*?)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture
def without_go(tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has neither Go nor a compiler, and a home of its own."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "env", "uname", "cat"):
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_", "LANG", "LC_"))}
    return {**kept, "PATH": str(tools), "HOME": str(home)}


def the(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def test_names_and_contents(dist: Path, version: str) -> None:
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    engine = the(dist, f"pysandboxes-{version}-{python}-{python}-manylinux_2_28_*.whl")
    command = the(dist, f"python_sb-{version}-py3-none-manylinux_2_28_*.whl")
    with zipfile.ZipFile(engine) as archive:
        names = archive.namelist()
        metadata = archive.read(f"pysandboxes-{version}.dist-info/METADATA").decode()
    native = sorted(re.sub(r"\.cpython-.*", "", name) for name in names if name.endswith(".so"))
    assert native == ["pysandboxes/_core", "pysandboxes/_guard", "pysandboxes/_preload.so"]
    assert "pysandboxes/py.typed" in names and "pysandboxes/_core.pyi" in names
    assert [line for line in metadata.splitlines() if line.startswith("Requires-Dist")] == [
        f"Requires-Dist: python-sb=={version}"
    ]
    with zipfile.ZipFile(command) as archive:
        scripts = [info for info in archive.infolist() if info.filename.endswith("scripts/python-sb")]
        metadata = archive.read(f"python_sb-{version}.dist-info/METADATA").decode()
        assert len(scripts) == 1 and (scripts[0].external_attr >> 16) & 0o111
        assert b"ELF" in archive.read(scripts[0])[:4]
    assert f"Requires-Dist: pysandboxes=={version}" in metadata


def test_the_sdists_hold_sources_and_nothing_built(dist: Path) -> None:
    for pattern, wanted in {
        "pysandboxes-*.tar.gz": ["go.mod", "bindings/build.py", "bindings/core/module.c", "bindings/guard/preload.c"],
        "python_sb-*.tar.gz": ["source/go.mod", "source/python_sb/main.go", "source/bindings/build.py"],
    }.items():
        with tarfile.open(the(dist, pattern)) as archive:
            names = [name.partition("/")[2] for name in archive.getnames()]
        assert not [name for name in names if name.endswith(".so") or "/bin/" in name]
        for name in wanted:
            assert name in names, f"{pattern} lacks {name}"


def test_installed_by_pip(dist: Path, version: str, without_go: dict[str, str], tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", env=without_go)
    binaries = tmp_path / "venv/bin"
    run(binaries / "pip", "install", "-q", "--no-index", "--find-links", dist, "pysandboxes", env=without_go)
    for name in ("python-sb", "python3-sb", "ipython-sb", "ipython3-sb", "pysandboxes"):
        assert os.access(binaries / name, os.X_OK), name
    assert run(binaries / "python-sb", "--version", env=without_go).startswith(f"python-sb {version}")
    assert run(binaries / "pysandboxes", "--version", env=without_go) == f"pysandboxes {version}\n"
    code = "from pysandboxes import _core, _guard; print(_core.__version__, _core.control_Version(), _guard.__version__)"
    assert run(binaries / "python", "-c", code, env=without_go).split() == [version] * 3


def test_a_call_works_from_the_wheels(dist: Path, without_go: dict[str, str], tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv", env=without_go)
    run(tmp_path / "venv/bin/pip", "install", "-q", "--no-index", "--find-links", dist, "python-sb", env=without_go)
    work = tmp_path / "work"
    work.mkdir()
    (work / "task.py").write_text("from pysandboxes import sandbox\n@sandbox\ndef double(n): return 2 * n\n")
    (work / "main.py").write_text(
        "from pysandboxes import sandboxes\nfrom task import double\n"
        "if __name__ == '__main__':\n    with sandboxes():\n        print(double(21))\n"
    )
    (work / ".py-sandboxes").write_text(f"python-import=task\nexpose-ro={work}/task.py\nos-sandbox=subprocess\n")
    assert run(tmp_path / "venv/bin/python", "main.py", env=without_go, cwd=work).split() == ["42"]


@pytest.mark.parametrize("how", ["tool", "uvx", "user"])
def test_other_ways_to_install(dist: Path, version: str, without_go: dict[str, str], tmp_path: Path, how: str) -> None:
    # The program itself: what stands on PATH may be a wrapper that needs more of PATH.
    uv = run("uv", "run", "--no-project", "python", "-c", "import os; print(os.environ['UV'])").strip()
    index: list[str | Path] = ["--no-index", "--find-links", dist, "--python", sys.executable]
    if how == "tool":
        run(uv, "tool", "install", "-q", *index, "python-sb", env=without_go)
        command: list[str | Path] = [Path(without_go["HOME"], ".local/bin/python-sb")]
    elif how == "uvx":
        command = [uv, "tool", "run", "-q", *index, "python-sb"]
    else:
        base = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
        options: list[str | Path] = ["-q", "--user", "--no-index", "--break-system-packages", "--find-links", dist]
        run(base, "-m", "pip", "install", *options, "python-sb", env=without_go)
        command = [Path(without_go["HOME"], ".local/bin/python-sb")]
    assert run(*command, "--version", env=without_go, cwd=tmp_path).startswith(f"python-sb {version}")
