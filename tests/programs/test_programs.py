"""Real programs do under their profile what they do bare, and where a rule is missing, the line to add is told."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import servers
from complete_mode import Place

SCRIPTS = Path(__file__).parent / "scripts"
CLIENTS = Path(__file__).parent / "clients"
MODES = ("walled", "unwalled")


@dataclass(frozen=True)
class Program:
    script: str
    needs: str = ""
    """The server that it talks to; it may connect to that alone."""
    grants: str = ""
    """Profile lines beyond imports and the connection."""
    native: bool = False
    """Its connection is made by code that raises no Python event."""
    refused: bool = True
    """Without the net rule it has to fail; False: it has no connection that matters."""
    client: str = ""
    """The program of another language that it starts."""


CODE = (
    "python-api=ALLOW:sys._getframe, ALLOW:dynamic-code\n"  # what attrs, anyio and typing_extensions do when they are imported
)
THREADS = "python-api=ALLOW:threads\n"
SERVES = "net=ALLOW|TCP|127.0.0.1|{own}|*\n"
FREE = "net=ALLOW|TCP|127.0.0.1|0|IN\nnet=ALLOW|TCP|127.0.0.1|32768-60999|OUT\n"
STARTS = "python-api=ALLOW:subprocess.run, ALLOW:process-exec\nexpose-ro=./client\n"

PROGRAMS = [
    Program("asyncio_threads", "http", THREADS),
    Program("httpx_client", "http", CODE),
    Program("requests_client", "http", THREADS),
    Program("aiohttp_client", "http", CODE),
    Program("pycurl_client", "http", native=True),
    Program("grpc_client", "grpc", THREADS + CODE, native=True),
    Program("grpc_both", "", THREADS + CODE + SERVES, refused=False),
    Program("psycopg_client", "postgres", CODE, native=True),
    Program("asyncpg_client", "postgres", CODE),
    Program("redis_client", "redis", CODE),
    Program("numpy_threads", "", THREADS, refused=False),
    Program("semaphores", "", THREADS + "python-api=ALLOW:multiprocessing.Process.start\nexpose-rw=/dev/shm\n", refused=False),
    Program("tls_client", "tls", "expose-ro=./certificate.pem\n"),
    Program("zmq_pair", "", FREE, refused=False),
    Program("library", "", "expose-rw=./work\n", refused=False),
    Program("started_client", "http", STARTS, native=True, client="go"),
    Program("started_client", "http", STARTS, native=True, client="rust"),
]


def title(program: Program) -> str:
    return f"{program.client or program.script.removesuffix('_client')}"


class Town:
    """The servers, each started when the first program needs it."""

    def __init__(self, folder: Path) -> None:
        self.stack = contextlib.ExitStack()
        self.folder = folder
        self.ports: dict[str, int] = {}
        self.bare: dict[str, str] = {}  # what each program prints bare

    def port(self, name: str) -> int:
        if name not in self.ports:
            self.ports[name] = self.stack.enter_context(self.server(name))
        return self.ports[name]

    def server(self, name: str) -> contextlib.AbstractContextManager[int]:
        match name:
            case "http":
                return servers.http()
            case "grpc":
                return servers.grpc()
            case "tls":
                if not shutil.which("openssl"):
                    pytest.skip("there is no openssl(1) to make a certificate")
                return servers.tls(self.folder / "certificate.pem")
            case "redis":
                return servers.redis() or pytest.skip("there is no Redis here")
            case "postgres":
                commands = servers.postgres_folder()
                return servers.postgres(commands) if commands else pytest.skip("there is no PostgreSQL here")
        raise KeyError(name)

    def client(self, language: str) -> Path:
        """The client program of a language, compiled once."""
        made = self.folder / f"client-{language}"
        if made.exists():
            return made
        compiler = shutil.which({"go": "go", "rust": "rustc"}[language])
        if compiler is None:
            pytest.skip(f"there is no compiler for {language} here")
        command = {
            "go": [compiler, "build", "-o", made, CLIENTS / "client.go"],
            "rust": [compiler, "-o", made, CLIENTS / "client.rs"],
        }[language]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off"})
        return made


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    made = Town(tmp_path_factory.mktemp("town"))
    with made.stack:
        yield made


#: Arranges a program in a place: its arguments and, but for the net rule, its profile.
Arrange = Callable[[Program], list[str]]


@pytest.fixture
def arrange(place: Place, town: Town) -> Arrange:
    def arranged(program: Program) -> list[str]:
        ports: dict[str, int | str] = {"own": servers.free_port()}
        if program.needs:
            ports[program.needs] = town.port(program.needs)
        if program.needs == "tls":
            shutil.copy(town.folder / "certificate.pem", place.folder)
            ports["certificate"] = "certificate.pem"
        arguments = [f"{program.script}.py", json.dumps(ports)]
        if program.client:
            shutil.copy(town.client(program.client), place.folder / "client")
            arguments.append(str(place.folder / "client"))
        for script in (program.script, "watched"):
            shutil.copy(SCRIPTS / f"{script}.py", place.folder)
        (place.folder / "work").mkdir()
        place.provider = "landlock"
        place.environment["OPENBLAS_NUM_THREADS"] = "2"
        place.profile(
            f"python-import=*\nenv=OPENBLAS_NUM_THREADS=2\nexpose-ro=./{program.script}.py\n" + program.grants.format(**ports)
        )
        return arguments

    return arranged


def allow(place: Place, port: int) -> str:
    line = f"net=ALLOW|TCP|127.0.0.1|{port}|OUT"
    with (place.folder / ".py-sandboxes").open("a") as profile:
        profile.write(line + "\n")
    return line


def rows(programs: list[Program]) -> pytest.MarkDecorator:
    """Those that talk to the same server are one worker's."""
    some = [pytest.param(p, id=title(p), marks=pytest.mark.xdist_group(f"town {p.needs}")) for p in programs]
    return pytest.mark.parametrize("program", some)


in_each_mode = pytest.mark.parametrize("mode", MODES)


@in_each_mode
@rows(PROGRAMS)
def test_a_program_does_what_it_does_bare(place: Place, town: Town, arrange: Arrange, program: Program, mode: str) -> None:
    arguments = arrange(program)
    allow(place, town.port(program.needs or "http"))  # a rule, or the mode would mean nothing
    where = place.folder / "work" if program.script == "library" else place.folder
    script = [f"../{arguments[0]}" if where != place.folder else arguments[0], *arguments[1:]]
    if (bare := town.bare.get(title(program))) is None:
        control = place.bare(*script, cwd=where)
        assert control.returncode == 0, control.stderr
        bare = town.bare.setdefault(title(program), control.stdout)
    place.environment["PYSANDBOXES_NETWORK"] = mode
    done = place.run("--pysandboxes-config", place.folder / ".py-sandboxes", *script, cwd=where)
    assert (done.stdout, done.returncode) == (bare, 0), done.stderr


@in_each_mode
@rows([program for program in PROGRAMS if program.refused])
def test_a_refusal_tells_the_line(place: Place, town: Town, arrange: Arrange, program: Program, mode: str) -> None:
    arguments = arrange(program)
    line = f"net=ALLOW|TCP|127.0.0.1|{town.port(program.needs)}|OUT"
    allow(place, servers.free_port())  # another one
    place.environment["PYSANDBOXES_NETWORK"] = mode
    done = place.run("watched.py", *arguments)
    *_, ended, lines = "", "", *done.stdout.splitlines()
    assert ended.startswith("ENDED ") and "well" not in ended, f"{done.stdout}{done.stderr}"
    assert line in lines, f"{done.stdout}{done.stderr}"
    if program.native:  # what Python meets it tells itself
        assert line in done.stderr, f"{done.stdout}{done.stderr}"


@in_each_mode
def test_a_server_is_reached_by_its_rule(place: Place, town: Town, arrange: Arrange, mode: str) -> None:
    program = Program("uvicorn_server", "", THREADS + CODE + "net=ALLOW|TCP|127.0.0.1|{own}|IN\n")
    arguments = arrange(program)
    port = json.loads(arguments[1])["own"]
    place.environment["PYSANDBOXES_NETWORK"] = mode
    with (
        (place.folder / "errors").open("w+") as errors,
        subprocess.Popen(
            place.command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=place.folder,
            env=place.environ(),
        ) as process,
    ):
        assert process.stdout is not None
        try:
            servers.answers(port, process)
            for path in ("/one", "/two", "/end"):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                    assert answer.read() == b"served " + path.encode()
            assert process.stdout.read() == "ended\n"
            assert process.wait(10) == 0
        except BaseException:
            process.kill()
            errors.seek(0)
            print(errors.read())
            raise
