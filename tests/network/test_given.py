"""Sockets that a program is started with: a service's, whose standard input they are. No rule lets the program use the network,
and nothing that it could make would reach anybody; with these it reaches nobody either, but whom they are connected to."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from complete_mode import Place

LIBRARY = """\
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
port, name = int(sys.argv[1]), sys.argv[2].encode()
inet = struct.pack('=H', 2) + struct.pack('!H4s8x', port, bytes((127, 0, 0, 1)))
local = struct.pack('=H', 1) + name + bytes(1)
to = inet if sys.argv[3] == 'inet' else local
data = ctypes.create_string_buffer(b'<given>', 7)
iov = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(data), 7))
address = ctypes.create_string_buffer(to, len(to))
header = struct.pack('QQQQQQQ', ctypes.addressof(address), len(to), ctypes.addressof(iov), 1, 0, 0, 0)
"""
#: name -> family, kind, what the program does with it.
USES = {
    "datagrams by sendto": (socket.AF_INET, socket.SOCK_DGRAM, "libc.sendto(0, data, 7, 0, to, len(to))"),
    "datagrams by sendmsg": (socket.AF_INET, socket.SOCK_DGRAM, "libc.sendmsg(0, header, 0)"),
    "datagrams by sendmmsg": (
        socket.AF_INET,
        socket.SOCK_DGRAM,
        "libc.sendmmsg(0, ctypes.create_string_buffer(header + bytes(8), 64), 1, 0)",
    ),
    "datagrams by connect": (socket.AF_INET, socket.SOCK_DGRAM, "libc.connect(0, to, len(to)); libc.send(0, data, 7, 0)"),
    "local datagrams by sendto": (socket.AF_UNIX, socket.SOCK_DGRAM, "libc.sendto(0, data, 7, 0, to, len(to))"),
    "local datagrams by sendmsg": (socket.AF_UNIX, socket.SOCK_DGRAM, "libc.sendmsg(0, header, 0)"),
    "a connection": (socket.AF_INET, socket.SOCK_STREAM, "libc.connect(0, to, len(to)); libc.send(0, data, 7, 0)"),
    "a connection by what is sent": (socket.AF_INET, socket.SOCK_STREAM, "libc.sendto(0, data, 7, 0x20000000, to, len(to))"),
    "a connection by what is sent, by sendmsg": (socket.AF_INET, socket.SOCK_STREAM, "libc.sendmsg(0, header, 0x20000000)"),
    "a local connection": (socket.AF_UNIX, socket.SOCK_STREAM, "libc.connect(0, to, len(to)); libc.send(0, data, 7, 0)"),
}


class Others:
    """Who listens outside: at a port by TCP and UDP, and at a path by streams and datagrams."""

    def __init__(self, folder: Path) -> None:
        self.stream, self.datagrams = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        self.stream.bind(("127.0.0.1", 0))
        self.port = self.stream.getsockname()[1]
        self.datagrams.bind(("127.0.0.1", self.port))
        self.local, self.letters = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.path = folder / "s"
        self.local.bind(str(self.path))
        self.letters.bind(f"{self.path}.d")
        self.all = (self.stream, self.datagrams, self.local, self.letters)
        for one in (self.stream, self.local):
            one.listen()

    def heard(self) -> bytes:
        """What has arrived; the program has ended, so that nothing is on its way."""
        out = b""
        for one in self.all:
            one.setblocking(False)
            try:
                if one.type == socket.SOCK_DGRAM:
                    out += one.recv(99)
                else:
                    with one.accept()[0] as connection:
                        connection.settimeout(5)
                        out += connection.recv(99) + b"(connected)"
            except BlockingIOError:
                pass
        return out


@pytest.fixture
def others() -> Iterator[Others]:
    with tempfile.TemporaryDirectory(prefix="psb-given-") as name, ExitStack() as stack:
        Path(name).chmod(0o755)
        found = Others(Path(name))
        for one in found.all:
            stack.enter_context(one)
        yield found


def attempt(place: Place, others: Others, what: str, bare: bool) -> tuple[bytes, str]:
    family, kind, use = USES[what]
    place.file("program.py", LIBRARY + use)
    path = f"{others.path}.d" if kind == socket.SOCK_DGRAM else str(others.path)
    arguments = ["program.py", str(others.port), path, "inet" if family == socket.AF_INET else "local"]
    with socket.socket(family, kind) as given:
        done = (place.bare if bare else place.run)(*arguments, stdin=given)
    assert done.returncode == 0, done.stderr
    return others.heard(), done.stderr


@pytest.mark.parametrize("what", USES)
def test_negative_control(place: Place, others: Others, what: str) -> None:
    heard, errors = attempt(place, others, what, bare=True)
    assert b"<given>" in heard, errors


@pytest.mark.parametrize("rules", ["", "net=ALLOW|TCP|127.0.0.1|9|OUT\n"], ids=["no network", "another port"])
@pytest.mark.parametrize("mode", ["walled", "unwalled"])
@pytest.mark.parametrize("what", USES)
def test_it_reaches_nobody(place: Place, others: Others, what: str, mode: str, rules: str) -> None:
    place.provider, place.environment["PYSANDBOXES_NETWORK"] = "landlock", mode
    place.profile("python-import=*\npython-api=ALLOW:native\n" + rules)
    heard, errors = attempt(place, others, what, bare=False)
    assert heard == b"", errors


@pytest.mark.parametrize("mode", ["walled", "unwalled"])
def test_who_has_connected_is_answered(place: Place, mode: str) -> None:
    place.provider, place.environment["PYSANDBOXES_NETWORK"] = "landlock", mode
    place.profile("python-import=*\n")
    place.file("program.py", "import os\nos.write(0, os.read(0, 9) + b' back')")
    for ours, theirs in (socket.socketpair(), socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)):
        with ours, theirs:
            ours.send(b"there")
            done = place.run("program.py", stdin=theirs)
            ours.settimeout(5)
            assert ours.recv(99) == b"there back", done.stderr


def test_a_service_whose_connection_it_has_is_not_reached_anew(place: Place, others: Others) -> None:
    """The sandbox holds a socket that is bound to the service's file, as it holds its own."""
    place.provider = "landlock"
    place.profile("python-import=*\npython-api=ALLOW:native\n")
    place.file(
        "program.py",
        LIBRARY + "s = libc.socket(1, 1, 0)\nprint(libc.connect(s, to, len(to)), ctypes.get_errno())\nlibc.send(s, data, 7, 0)",
    )
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(others.path))
        with others.local.accept()[0] as connection:
            arguments = ("program.py", str(others.port), str(others.path), "local")
            assert place.bare(*arguments, stdin=connection).stdout == "0 0\n"
            assert b"<given>" in others.heard(), "the negative control"
            done = place.run(*arguments, stdin=connection)
    assert done.stdout == "-1 111\n", done.stderr
    assert others.heard() == b""
