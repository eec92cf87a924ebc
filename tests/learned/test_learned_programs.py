"""Real programs under the profile that one learning run wrote: the same output at once, and nothing to add by a second run."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from complete_mode import Place

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
SCRIPTS = Path(__file__).parent / "scripts"
sys.path.insert(0, str(PROGRAMS))

import servers  # noqa: E402


@dataclass(frozen=True)
class Program:
    script: str
    server: str = ""
    arguments: tuple[str, ...] = ()
    """In place of the script and its ports."""
    stdin: str = ""
    native: tuple[str, ...] = ()
    """What of its rules only native code asks for, by their beginnings."""


def asked(*messages: dict[str, object]) -> str:
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
CALL = {"name": "read", "arguments": {"name": "note.txt"}}
MCP = asked(
    {"id": 1, "method": "initialize", "params": HELLO},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": CALL},
)

TABLE = [
    Program("httpx_client", "http"),
    Program("requests_client", "http"),
    Program("aiohttp_client", "http"),
    Program("pycurl_client", "http", native=("net=ALLOW|TCP|127.0.0.1|",)),
    Program("grpc_client", "grpc", native=("net=ALLOW|TCP|127.0.0.1|",)),
    Program("psycopg_client", "postgres", native=("net=ALLOW|TCP|127.0.0.1|",)),
    Program("sqlalchemy_postgres", "postgres", native=("net=ALLOW|TCP|127.0.0.1|",)),
    Program("asyncpg_client", "postgres"),
    Program("redis_client", "redis"),
    Program("numpy_threads"),
    Program("pandas_frame"),
    Program("sqlalchemy_sqlite"),
    Program("flask_client"),
    Program("pillow_image"),
    Program("matplotlib_plot"),
    Program("openpyxl_sheet"),
    Program("pools"),
    Program("suite", arguments=("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:pysandboxes", "suite.py")),
    Program("package", arguments=("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:pysandboxes", "package")),
    Program("notebook", arguments=("-m", "nbconvert", "--to", "markdown", "--stdout", "--execute", "notebook.ipynb")),
    Program("zmq_pair", native=("net=ALLOW|TCP|127.0.0.1|",)),
    Program("mcp_server", stdin=MCP),
]

NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# Notes"]},
        {
            "cell_type": "code",
            "id": "b",
            "metadata": {},
            "execution_count": None,
            "source": ["print(open('data/note.txt').read())\n", "1 + 1"],
            "outputs": [],
        },
    ],
    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


FAMILIES = {
    "environment": ("env=",),
    "files": ("expose-",),
    "network": ("net=ALLOW",),
    "imports": ("python-import=",),
    "calls": ("python-api=",),
}


def arrange(place: Place, program: Program, port: int | None) -> list[str]:
    for folder in (SCRIPTS, PROGRAMS / "scripts"):
        if (script := folder / f"{program.script}.py").exists():
            shutil.copy(script, place.folder)
    place.file("data/sales.csv", "city,amount\nGraz,3\nLinz,4\nGraz,5\n")
    place.file("data/page.html", "<h1>{{ title }}</h1>")
    place.file("data/note.txt", "buy milk")
    place.file("notebook.ipynb", json.dumps(NOTEBOOK))
    (place.folder / "out").mkdir()
    if program.script == "package":
        unpack(place.folder / "package")
    place.environment.update(OPENBLAS_NUM_THREADS="2", OS_SANDBOX="landlock")
    return list(program.arguments) or [f"{program.script}.py", *([json.dumps({program.server: port})] if port else [])]


def unpack(folder: Path) -> None:
    """The tests of a package from the index, as its authors ship them with their source."""
    version = importlib.metadata.version("iniconfig")
    with tempfile.TemporaryDirectory() as scratch:
        fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary=:all:", "-d", scratch]
        fetch.append(f"iniconfig=={version}")
        if (done := subprocess.run(fetch, capture_output=True, text=True)).returncode:
            pytest.skip(f"the package index was not reached: {done.stderr[-500:]}")
        with tarfile.open(next(Path(scratch).glob("*.tar.gz"))) as archive:
            archive.extractall(scratch, filter="data")
        shutil.copytree(Path(scratch, f"iniconfig-{version}", "testing"), folder)


def same(program: Program, text: str) -> str:
    """The output without what differs by itself: how long a suite took."""
    return text.split(" in ")[0] if "pytest" in program.arguments else text


def serve(name: str) -> contextlib.AbstractContextManager[int] | None:
    """The server of that name, None where this machine has none."""
    if name == "postgres":
        commands = servers.postgres_folder()
        return servers.postgres(commands) if commands else None
    return {"http": servers.http, "grpc": servers.grpc, "redis": servers.redis}[name]()


@pytest.mark.parametrize("program", TABLE, ids=lambda p: p.script)
def test_learned_then_enforced(place: Place, tmp_path_factory: pytest.TempPathFactory, program: Program) -> None:
    place.environment["TMPDIR"] = str(tmp_path_factory.mktemp("scratch"))
    # Not in the project: a folder that holds somebody's home is never exposed as a whole.
    place.environment["HOME"] = str(tmp_path_factory.mktemp("home"))
    if not program.server:
        check(place, program, arrange(place, program, None))
        return
    if (server := serve(program.server)) is None:
        pytest.skip(f"this machine has no {program.server}")
    with server as port:
        check(place, program, arrange(place, program, port))


def check(place: Place, program: Program, arguments: list[str]) -> None:
    options = {"input": program.stdin} if program.stdin else {}
    bare = place.bare(*arguments, **options)
    assert bare.returncode == 0, bare.stderr
    learned = place.run("--learn", *arguments, **options)
    assert (learned.returncode, same(program, learned.stdout)) == (0, same(program, bare.stdout)), learned.stderr
    profile = place.folder / ".py-sandboxes"
    rules = [line for line in profile.read_text().splitlines() if line and line[0] != "#"]
    native = [line for line in rules if "seen in native code" in line]
    families = [f"{sum(line.startswith(keys) for line in rules)} {name}" for name, keys in FAMILIES.items()]
    print("\n" + " | ".join([program.script, *families, f"{len(native)} of native code alone"]), *native, sep="\n    ")
    for beginning in program.native:
        assert any(line.startswith(beginning) for line in native), native
    enforced = place.run(*arguments, **options)
    if enforced.returncode:
        print(*rules, sep="\n    ")
    assert (enforced.returncode, same(program, enforced.stdout)) == (0, same(program, bare.stdout)), enforced.stderr
    before = profile.read_bytes()
    again = place.run("--learn", *arguments, **options)
    assert again.returncode == 0, again.stderr
    assert profile.read_bytes() == before, again.stderr
