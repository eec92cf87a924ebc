"""Local datagram sockets of a program's own, in a folder that it may write (somebody else's: attacks/exfiltrate_local.py)."""

from __future__ import annotations

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

CODE = """
import os, socket
os.chdir('work')
def box(name):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(name)
    return s
a, b = box('a'), box(os.path.abspath('b'))
a.sendto(b'one', 'b'); print(b.recvfrom(9))
b.sendmsg([b'tw', b'o'], [], 0, 'a'); print(a.recvmsg(9)[::3])
c = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
c.connect('a'); c.send(b'three'); print(a.recvfrom(9)[0])
one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
one.send(b'four'); print(two.recv(9))
os.unlink('a')
try: b.sendto(b'five', 'a')
except OSError as e: print(type(e), e.errno)
"""


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
@pytest.mark.parametrize("grants", ["", "net=ALLOW|UDP|127.0.0.1|9|OUT"], ids=["no network", "datagrams"])
def test_as_bare(place: Place, provider: str, grants: str) -> None:
    place.provider = provider
    place.profile("python-import=*\nexpose-rw=./work\n" + grants)
    (place.folder / "work").mkdir()
    bare = place.bare("-c", CODE)
    for name in "ab":
        (place.folder / "work" / name).unlink(missing_ok=True)
    assert bare.returncode == 0, bare.stderr
    done = place.run("-c", CODE)
    assert (done.returncode, done.stdout) == (0, bare.stdout), done.stderr


REFUSED = """
import socket
from pysandboxes import sandbox_denials
def tried(make):
    try: make()
    except OSError as e: print(type(e).__name__, e.errno, any('expose-rw=./sockets/' in d for d in sandbox_denials(e)))
tried(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC))
tried(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
socket.socketpair()
"""


@pytest.mark.parametrize("grants", ["", "python-api=ALLOW:process-exec"], ids=["", "exec"])
def test_refused_with_the_line_to_add(place: Place, grants: str) -> None:
    line = "expose-rw=./sockets/"
    place.profile("python-import=*\n" + grants)
    done = place.run("-c", REFUSED)
    assert done.stdout.splitlines() == ["PermissionError 13 True"] * 2, done.stderr
    assert line in done.stderr
    place.profile(f"python-import=*\n{grants}\n{line}\n")
    assert place.run("-c", REFUSED).stdout == ""
