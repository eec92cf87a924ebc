"""A name is a message to whoever serves its domain: native code cannot send one that no rule allows, nor a query of its own.

The programs run in a network namespace of the test's, whose only resolver tells what it was asked (``../resolver.py``).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from complete_mode import Place

MODES = ("walled", "unwalled")

#: How native code asks for NAME. ``query(name, type)`` makes a DNS message; SERVER is the resolver's address.
WAYS = {
    "getaddrinfo": "libc.getaddrinfo(NAME, None, None, ctypes.byref(ctypes.c_void_p()))",
    "gethostbyname": "libc.gethostbyname(NAME)",
    "res_query, TXT": "res_query(16)",
    "res_query, NULL": "res_query(10)",
    "res_query, ANY": "res_query(255)",
    "sendto": "udp(send(query(NAME, 1)))",
    "connect and send": "udp(lambda fd: libc.connect(fd, SERVER, len(SERVER)) or libc.send(fd, query(NAME, 1), 40, 0))",
    "TXT by sendto": "udp(send(query(NAME, 16)))",
    "another class": "udp(send(query(NAME, 1, 3)))",
    "upper case and long labels": "udp(send(query(NAME.upper()[:8] + b'.' + b'.'.join([b'x' * 63] * 2) + b'.example.net', 1)))",
    "a message that is no query": "udp(send(query(NAME, 1, 1, 0x8580) + b'and more'))",
}
PROGRAM = """\
import ctypes, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
SERVER = struct.pack('=H', socket.AF_INET) + struct.pack('!H4s8x', 53, socket.inet_aton('127.0.0.1'))
def query(name, kind, klass=1, flags=0x100):
    labels = b''.join(bytes([len(l)]) + l for l in name.split(b'.')) + bytes(1)
    return struct.pack('!6H', 7, flags, 1, 0, 0, 0) + labels + struct.pack('!2H', kind, klass)
def udp(act):
    fd = libc.socket(socket.AF_INET, socket.SOCK_DGRAM, 0)
    act(fd)
    libc.close(fd)
def send(message):
    return lambda fd: libc.sendto(fd, message, len(message), 0, SERVER, len(SERVER))
def res_query(kind):
    for library in (libc, ctypes.CDLL('libresolv.so.2')):
        for name in ('res_query', '__res_query'):
            if ask := getattr(library, name, None):
                return ask(NAME, 1, kind, ctypes.create_string_buffer(4096), 4096)
for number, way in enumerate({ways!r}):
    NAME = b's3cret%02d.example.net' % number
    eval(way)
print('END')
"""


def heard(place: Place, command: list[str]) -> tuple[set[int], str]:
    """The numbers of the ways whose name came to the resolver of a new namespace while the command ran, and its output."""
    place.file("resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    place.file("nsswitch.conf", "hosts: dns\n")
    binds = "".join(f"mount --bind {place.folder}/{name} /etc/{name} && " for name in ("resolv.conf", "nsswitch.conf"))
    resolver = Path(__file__).parent.parent / "resolver.py"
    inside = ["sh", "-c", binds + 'exec "$@"', "sh", sys.executable, str(resolver), *command]
    done = subprocess.run(
        ["unshare", "--map-root-user", "--net", "--mount", *inside],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=place.folder,
        env=place.environ(),
    )
    if not done.stdout and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip(f"no namespaces can be made here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    *out, names = done.stdout.splitlines()
    asked = {name.lower().partition(".")[0] for name in json.loads(names)}
    return {int(name.removeprefix("s3cret")) for name in asked if name.startswith("s3cret")}, "\n".join(out) + done.stderr


@pytest.fixture
def arranged(place: Place) -> Iterator[Place]:
    if not shutil.which("unshare"):
        pytest.skip("there is no unshare(1)")
    place.file("ask.py", PROGRAM.format(ways=[*WAYS.values()]))
    place.provider = "landlock"
    yield place


def test_negative_control(arranged: Place) -> None:
    numbers, out = heard(arranged, [str(arranged.bin / "python"), "ask.py"])
    assert numbers == set(range(len(WAYS))), (
        f"{[[*WAYS][n] for n in range(len(WAYS)) if n not in numbers]} do not work bare: {out}"
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rules", ["net=ALLOW|TCP|127.0.0.9|80|OUT", "net=ALLOW|*|allowed.test|*|OUT"], ids=["address", "name"])
def test_no_query_leaves_for_a_name_that_no_rule_names(arranged: Place, mode: str, rules: str) -> None:
    arranged.environment["PYSANDBOXES_NETWORK"] = mode
    arranged.profile(f"python-import=*\npython-api=ALLOW:native, ALLOW:builtins.eval\n{rules}\n")
    numbers, out = heard(arranged, arranged.command("ask.py"))
    assert "END" in out, out
    assert not numbers, f"{[[*WAYS][n] for n in sorted(numbers)]} sent a name out: {out}"
