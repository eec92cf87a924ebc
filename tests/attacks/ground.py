"""The ground on which attacks run: files to reach, somebody who listens, and processes that run many payloads one by one.

Most payloads share a process with others of the same grants: a runner imports one module a payload and says when each begins
and ends. That a refusal of one does not hide the escape of another is seen by the negative control, which runs the same way.
Whether files were changed or a packet arrived is looked up outside, whatever a payload prints.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import textwrap
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from attack import Attack
from complete_mode import Place

PRELUDE = """\
SECRET, HIDDEN, WORK, SHOWN, PORT, OPEN, SOCKET, LETTERS, ABSTRACT, VICTIM = {values}
def got(data):
    text = data.decode('latin-1') if isinstance(data, (bytes, bytearray, memoryview)) else str(data)
    print('ESCAPED' if 's3cret' in text else 'no')
def absent(why):
    print('ABSENT', why)
    raise SystemExit(0)
print('{begun}')
"""
#: The first thing that a payload prints: one that was never let in has not been held.
BEGUN = "<payload>"

#: Imports the payloads that it is given; what one raises says how that one ended.
RUNNER = """\
import sys
say, quiet = sys.stdout, BaseException
for name in {names}:
    say.write(f'\\n<<{{name}}\\n'); say.flush()
    try:
        __import__(name)
        ended = 'to its end'
    except quiet as error:
        ended = f'{{type(error).__name__}}: {{error}}'
    say.write('\\n>>' + name + ' ' + ended.replace('\\n', ' ') + '\\n'); say.flush()
"""


@dataclass
class Result:
    """How one payload went."""

    out: str
    """What it printed; "" where it was not reached."""
    ended: str
    """Its exception, or that it came to its end; "" where neither happened."""
    changed: list[str]
    """What it changed where it had no right to."""
    process: str
    """How the process ended, and its standard error."""
    status: int
    arrived: list[str]
    """What the listeners received in the run, of whichever payload."""
    killed: bool
    """The victim has ended: a payload may not see that it has reached its aim."""

    @property
    def begun(self) -> bool:
        return BEGUN in self.out

    @property
    def escaped(self) -> bool:
        return "ESCAPED" in self.out or bool(self.changed) or self.killed


class Listeners:
    """Somebody who listens on two ports, at two paths and at an abstract name, and says what arrived where no rule allows it."""

    def __init__(self, folder: Path) -> None:
        self.arrived: list[str] = []
        self.path = str(folder / "listen")
        self.letters = str(folder / "letters")
        self.abstract = f"psb-{os.getpid()}-{os.urandom(6).hex()}"
        self.sockets: list[tuple[str, socket.socket]] = []
        self.port = self.ports("port")
        self.open = self.ports("open")
        for what, address in (("path", self.path), ("abstract", "\0" + self.abstract)):
            local = socket.socket(socket.AF_UNIX)
            local.bind(address)
            local.listen(64)
            self.sockets.append((what, local))
        box = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        box.bind(self.letters)
        self.sockets.append(("letters", box))
        for path in (self.path, self.letters):
            Path(path).chmod(0o777)
        self.stop, stopped = socket.socketpair()
        self.thread = threading.Thread(target=self.accept, args=(stopped,))
        self.thread.start()

    def ports(self, what: str) -> int:
        """One port number on both loopback addresses, TCP and UDP."""
        wanted = [(f, a, t) for t in (socket.SOCK_STREAM, socket.SOCK_DGRAM) for f, a in FAMILIES]
        for _ in range(50):
            with contextlib.ExitStack() as stack:
                port, made = 0, []
                try:
                    for family, address, kind in wanted:
                        made.append(stack.enter_context(socket.socket(family, kind)))
                        made[-1].bind((address, port))
                        port = made[-1].getsockname()[1]
                        if kind == socket.SOCK_STREAM:
                            made[-1].listen(64)
                except OSError:  # taken in one of them: try another number
                    continue
                stack.pop_all()
                self.sockets += [(what, one) for one in made]
                return port
        raise AssertionError("no port is free on every loopback address")

    def accept(self, stopped: socket.socket) -> None:
        import selectors

        selector = selectors.DefaultSelector()
        selector.register(stopped, selectors.EVENT_READ)
        for what, one in self.sockets:
            one.setblocking(False)
            selector.register(one, selectors.EVENT_READ, what)
        while True:
            for key, _ in selector.select():
                if key.fileobj is stopped:
                    stopped.close()
                    selector.close()
                    return
                one = key.fileobj
                assert isinstance(one, socket.socket)
                with contextlib.suppress(OSError):
                    if one.type == socket.SOCK_STREAM:
                        one.accept()[0].close()
                    else:
                        one.recv(9)
                    if key.data != "open":
                        self.arrived.append(f"{key.data} {one.family.name} {one.type.name}")

    def close(self) -> None:
        self.stop.close()
        self.thread.join()
        for _, one in self.sockets:
            one.close()


def _families() -> list[tuple[socket.AddressFamily, str]]:
    found = [(socket.AF_INET, "127.0.0.1")]
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        found.append((socket.AF_INET6, "::1"))
    except OSError:
        pass
    return found


FAMILIES = _families()


def state(ground: Path, name: str) -> dict[str, str]:
    """What a payload may not change: an owner, a mode, times, links, content or attributes show in the ctime."""
    found = {}
    for folder in (ground / "hidden" / name, ground / "shown" / name):
        for path in (folder, *sorted(folder.rglob("*"))) if folder.exists() else ():
            known = path.lstat()
            content = path.read_bytes().hex() if path.is_file() and not path.is_symlink() else ""
            found[str(path.relative_to(ground))] = f"{known.st_mode:o} {known.st_ctime_ns} {content}"
    return found


@dataclass
class Ground:
    """Runs payloads bare (``provider`` None) or sandboxed, as the tests' own user or as ``user``, and keeps the results."""

    bin: Path | None = None
    user: int | None = None
    results: dict[tuple[str | None, tuple[Attack, ...]], dict[Attack, Result]] = field(default_factory=dict)

    def result(self, attack: Attack, provider: str | None, among: Sequence[Attack]) -> Result:
        """The result of one payload; those of ``among`` that can share its process run with it."""
        batch = (attack,)
        if attack.shared:
            batch = tuple(a for a in among if a.shared and (a.objective, a.grants) == (attack.objective, attack.grants))
        key = (provider, batch)
        if key not in self.results:
            self.results[key] = self.run(batch, provider)
        return self.results[key][attack]

    @contextlib.contextmanager
    def place(self, provider: str | None) -> Iterator[Place]:
        with tempfile.TemporaryDirectory(prefix="psb-") as folder:
            if self.user is not None:
                os.chown(folder, self.user, self.user)
            bin = {"bin": self.bin} if self.bin else {}
            # A loader that claims to be the standard library would leave its code in the interpreter's own __pycache__.
            environment = {"SECRET_TOKEN": "s3cret", "PYTHONDONTWRITEBYTECODE": "1"}
            place = Place(Path(folder), provider, environment, user=self.user, **bin)
            yield place

    def run(self, batch: tuple[Attack, ...], provider: str | None) -> dict[Attack, Result]:
        names = {attack: f"payload_{number}" for number, attack in enumerate(batch)}
        with self.place(provider) as place:
            listeners = Listeners(place.folder)
            victim = subprocess.Popen(
                ["/bin/sleep", "600"],
                cwd="/",
                env={"SECRET_TOKEN": "s3cret"},
                start_new_session=True,
                **({"user": self.user, "group": self.user, "extra_groups": []} if self.user is not None else {}),
            )
            try:
                for attack, name in names.items():
                    self.prepare(place, attack, name, listeners, victim.pid)
                alone = not batch[0].shared
                main = "payload_0" if alone else "runner"
                place.file("payloads/runner.py", RUNNER.format(names=[*names.values()]))
                place.profile(
                    f"python-import={batch[0].imports}\nunenv=SECRET_TOKEN\nexpose-ro=./payloads\n"
                    + batch[0].grants.replace("{open}", str(listeners.open))
                    + "\n"
                )
                if self.user is not None:
                    own(place.folder, self.user)
                if planting := [name for attack, name in names.items() if attack.plant]:
                    planted = place.bare("-c", "".join(f"exec(open('plant/{name}.py').read(), {{}})\n" for name in planting))
                    assert planted.returncode == 0, planted.stderr
                shutil.rmtree(place.folder / "plant", ignore_errors=True)
                before = {attack: state(place.folder, name) for attack, name in names.items()}
                run = place.bare if provider is None else place.run
                # In a session of its own: a signal for a process group meets none of the tests'.
                if batch[0].first:
                    learn = ["--learn"] if batch[0].learns and provider is not None else []
                    earlier = run(*learn, "payloads/first.py", timeout=20, start_new_session=True)
                    assert not learn or earlier.returncode == 0, earlier.stderr
                done = run(f"payloads/{main}.py", timeout=20 if alone else 90, start_new_session=True)
                after = {attack: state(place.folder, name) for attack, name in names.items()}
                killed = victim.poll() is not None
            finally:
                victim.kill()
                victim.wait()
                listeners.close()
            parts = {"payload_0": (done.stdout, "with the process")} if alone else sections(done.stdout)
            process = f"status {done.returncode}\n{done.stderr}"
            return {
                attack: Result(
                    *parts.get(name, ("", "")),
                    changed=sorted(f for f in before[attack] | after[attack] if before[attack].get(f) != after[attack].get(f)),
                    process=process,
                    status=done.returncode,
                    arrived=listeners.arrived,
                    killed=killed,
                )
                for attack, name in names.items()
            }

    @staticmethod
    def prepare(place: Place, attack: Attack, name: str, listeners: Listeners, victim: int) -> None:
        secret = place.file(f"hidden/{name}/key", "s3cret")
        work = f"work/{name}"
        place.file(f"shown/{name}/page", "shown")
        (place.folder / work).mkdir(parents=True)
        values = (
            *(str(secret), str(secret.parent), work, f"shown/{name}"),
            *(listeners.port, listeners.open, listeners.path, listeners.letters, "\0" + listeners.abstract, victim),
        )
        prelude = PRELUDE.format(values=values, begun=BEGUN)
        place.file(f"payloads/{name}.py", prelude + textwrap.dedent(attack.code).strip() + "\n")
        if attack.first:
            place.file("payloads/first.py", prelude + textwrap.dedent(attack.first).strip() + "\n")
        if attack.plant:
            place.file(f"plant/{name}.py", prelude + textwrap.dedent(attack.plant).strip() + "\n")


def own(folder: Path, user: int) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


def sections(out: str) -> dict[str, tuple[str, str]]:
    """What each payload of a runner printed, and how it ended."""
    found = {}
    for part in out.split("\n<<")[1:]:
        name, _, rest = part.partition("\n")
        printed, _, end = rest.partition(f"\n>>{name} ")
        found[name] = (printed, end.strip())
    return found
