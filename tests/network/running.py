"""Runs ways inside and bare, and keeps what came of them."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from complete_mode import Place
from outside import HOSTS, SIX, Outside, in_a_network, victim

ABSENT = -2
TRIES = 5000  # of a race

#: What the profile of every run allows: the port ``open`` on all loopback addresses, ``narrow`` on one, and ``closed``.
GRANTS = """\
python-import=*
python-api=ALLOW:native
expose-ro=./native
expose-rw=./shared
expose-rw=./shared/granted.sock
expose-rw=./shared/granted.sock.d
net=ALLOW|*|127.0.0.0/8|{open}|OUT
net=ALLOW|*|{hosts[0]}|{open}|OUT
net=ALLOW|*|{hosts[1]}|{open}|OUT
net=ALLOW|*|{hosts[2]}|{open}|OUT
net=ALLOW|*|0.0.0.0|{open}|OUT
net=ALLOW|*|::|{open}|OUT
net=ALLOW|*|{hosts[0]}|{narrow}|OUT
net=ALLOW|*|{hosts[0]}|{closed}|OUT
net=ALLOW|TCP|{hosts[0]}|{hole}|OUT
"""
#: And what that of the twins allows besides.
TWIN_GRANTS = """\
expose-rw=./open.sock
expose-rw=./open.sock.d
net=ALLOW|*|@loopback|{granted_door}|IN
net=ALLOW|*|0.0.0.0|{granted_door}|IN
net=ALLOW|*|::|{granted_door}|IN
"""
RUNNER = """\
import ctypes, os
class Ground(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_char_p) for name in 'token path exposed abstract host other host6'.split()),
        *((name, ctypes.c_int) for name in 'port open closed narrow hole door steal victim victim_fd tries'.split()),
    ]
library = ctypes.CDLL({library!r})
os.environ['WAYS_PROGRAM'] = {program!r}
library.setenv(b'WAYS_PROGRAM', {program!r}.encode(), 1)
for name in {names!r}:
    ground = Ground(f'<{{name}}>'.encode(), *{values!r})
    print(f'\\n<<{{name}}', flush=True)
    result = getattr(library, name)(ctypes.byref(ground))
    print(f'\\n>>{{name}} {{result}}', flush=True)
    os.read(0, 1)
print('\\nEND', flush=True)
"""


@dataclass
class Run:
    """How the functions of one process went."""

    results: dict[str, int] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    heard: dict[str, list[bytes]] = field(default_factory=dict)
    status: int = 0
    errors: str = ""
    ended: bool = False

    def arrived(self, name: str, label: str) -> int:
        token = f"<{name}>".encode()
        return sum(bytes_.count(token) for bytes_ in self.heard.get(label, ()))

    def silent(self) -> int:
        """Connections to a listener that no rule names on which nobody said anything."""
        return sum(not bytes_ for bytes_ in self.heard.get("shut", ()))

    def of(self, name: str) -> str:
        """What is to be known when a test of it fails."""
        result = self.results.get(name)
        ended = "to its end" if self.ended else f"ended early, after {[*self.results][-1:]}"
        said = "nothing" if result is None else f"{result} ({os.strerror(max(0, result))})"
        return (
            f"{name} gave {said} and printed {self.said.get(name, '')!r}; status {self.status}, {ended}\n{self.errors[-2000:]}"
        )


def compiled(folder: Path) -> None:
    """The functions as a library and as a program. Raises with the compiler's own words."""
    sources = sorted(str(path) for path in (Path(__file__).parent / "native").glob("*.c"))
    for name, flags in {"native/ways.so": ["-shared", "-fPIC"], "program/ways": ["-DPROGRAM"]}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        warn = ["-D_GNU_SOURCE", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
        subprocess.run(["cc", *warn, *flags, "-o", folder / name, *sources], check=True)


@dataclass
class Course:
    """Runs functions in ``mode`` (None: bare), as ``user`` (None: the tests' own), and keeps the results by process."""

    mode: str | None
    build: Path
    bin: Path | None = None
    user: int | None = None
    far: bool = False
    """The listeners are at addresses of no loopback, in a network that is made for the run."""
    provider: str = "landlock"
    runs: dict[tuple[object, ...], Run] = field(default_factory=dict)

    def run(self, names: Sequence[str], grants: str, twins: bool = False) -> Run:
        key = (tuple(names), grants, twins)
        if key not in self.runs:
            work = partial(self._run, names, grants, twins)
            self.runs[key] = in_a_network(HOSTS[True], work) if self.far else work()
        return self.runs[key]

    @contextmanager
    def place(self) -> Iterator[Place]:
        with tempfile.TemporaryDirectory(prefix="psb-net-") as name:
            folder = Path(name).resolve()
            folder.chmod(0o755)
            environment = {"PYTHONDONTWRITEBYTECODE": "1", **({"PYSANDBOXES_NETWORK": self.mode} if self.mode else {})}
            place = Place(folder, self.provider, environment, user=self.user, **({"bin": self.bin} if self.bin else {}))
            for part in ("native/ways.so", "program/ways"):
                target = folder / part
                target.parent.mkdir()
                target.hardlink_to(self.build / part)
            (folder / "shared").mkdir()
            if self.user is not None:
                os.chown(folder, self.user, self.user)
                os.chown(folder / "shared", self.user, self.user)
            yield place

    def _run(self, names: Sequence[str], grants: str, twins: bool) -> Run:
        run = Run()
        with self.place() as place:
            folder = place.folder
            outside = Outside(folder, self.user, HOSTS[self.far])
            with victim(outside.shut, self.user) as (pid, descriptor), socket.socket() as inherited:
                inherited.connect(("127.0.0.1", outside.shut))
                inherited.send(b"<inherited>")
                paths = ("open.sock", "open.sock") if twins else ("shut.sock", "shared/exposed.sock")
                port, narrow, door = outside.shut, outside.narrow, outside.door
                if twins:
                    port, narrow, door = outside.open, outside.open, outside.granted_door
                values = (
                    *(str(folder / path).encode() for path in paths),
                    outside.abstract.encode(),
                    *(host.encode() for host in outside.hosts),
                    *(port, outside.open, outside.closed, narrow, outside.hole, door, outside.steal, pid, descriptor, TRIES),
                )
                program = RUNNER.format(
                    library=str(folder / "native/ways.so"), program=str(folder / "program/ways"), names=[*names], values=values
                )
                place.file("runner.py", program)
                lines = GRANTS + grants + (TWIN_GRANTS if twins else "")
                place.profile(
                    "".join(line for line in lines.format(**vars(outside)).splitlines(True) if SIX or "::" not in line)
                )
                command = [str(place.bin / "python"), "runner.py"] if self.mode is None else place.command("runner.py")
                self._talk(run, command, place, outside, inherited.fileno())
            outside.close()
        run.heard = outside.heard
        return run

    def _talk(self, run: Run, command: list[str], place: Place, outside: Outside, inherited: int) -> None:
        who = {"user": self.user, "group": self.user, "extra_groups": []} if self.user is not None else {}
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
                cwd=place.folder,
                env=place.environ(),
                pass_fds=[inherited],
                start_new_session=True,
                **who,  # type: ignore[call-overload]
            )
            assert process.stdin is not None and process.stdout is not None
            limit = threading.Timer(100, process.kill)  # ends the reading below, too
            limit.start()
            name = ""
            for line in process.stdout:
                words = line.split()
                match words:
                    case ["KNOCK", how, port]:
                        process.stdin.write("y\n" if outside.knock(how, int(port)) else "n\n")
                        process.stdin.flush()
                    case [begun] if begun.startswith("<<"):
                        name = begun[2:]
                        run.said[name] = ""
                    case [ended, result] if ended == f">>{name}":
                        run.results[name] = int(result)
                        outside.settle()
                        process.stdin.write("\n")
                        process.stdin.flush()
                    case ["END"]:
                        run.ended = True
                    case _:
                        run.said[name] = run.said.get(name, "") + line
            run.status = process.wait()
            limit.cancel()
            process.stdin.close()
            process.stdout.close()
            errors.seek(0)
            run.errors = errors.read()
