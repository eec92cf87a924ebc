"""A look-up is a message to whoever serves the domain: of a name that no rule names no packet leaves, however it is asked.

The programs run in a network namespace with a resolver of the test's own in it, which tells what it was asked.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

WAYS = {
    "getaddrinfo": "socket.getaddrinfo(NAME, 80)",
    "getaddrinfo of bytes": "socket.getaddrinfo(NAME.encode(), '80', type=socket.SOCK_STREAM)",
    "gethostbyname": "socket.gethostbyname(NAME)",
    "gethostbyname_ex": "socket.gethostbyname_ex(NAME)",
    "gethostbyaddr": "socket.gethostbyaddr(NAME)",
    "getfqdn": "socket.getfqdn(NAME)",
    "create_connection": "socket.create_connection((NAME, 80), 5)",
    "connect": "socket.socket().connect((NAME, 80))",
    "connect_ex": "socket.socket().connect_ex((NAME, 80))",
    "bind": "socket.socket().bind((NAME, 0))",
    "sendto": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', (NAME, 80))",
    "http": "__import__('http.client').client.HTTPConnection(NAME, 80, timeout=5).request('GET', '/')",
    "urllib": "__import__('urllib.request').request.urlopen('http://' + NAME, timeout=5)",
    "smtplib": "__import__('smtplib').SMTP(NAME, 25, timeout=5)",
    "asyncio, getaddrinfo": "asyncio.run(loops(lambda loop: loop.getaddrinfo(NAME, 80)))",
    "asyncio, connection": "asyncio.run(loops(lambda loop: asyncio.open_connection(NAME, 80)))",
    "_socket": "__import__('_socket').getaddrinfo(NAME, 80)",
}
#: The address of a name that only a reverse look-up tells.
REVERSE = {
    "getnameinfo": "socket.getnameinfo(('203.0.113.5', 80), 0)",
    "gethostbyaddr, reverse": "socket.gethostbyaddr('203.0.113.6')",
    "getfqdn, reverse": "socket.getfqdn('203.0.113.7')",
    "asyncio, getnameinfo": "asyncio.run(loops(lambda loop: loop.getnameinfo(('203.0.113.8', 80))))",
}
PROGRAM = """\
import asyncio, socket
async def loops(what):
    return await what(asyncio.get_running_loop())
for number, way in enumerate(WAYS):
    NAME = f"s3cret{number}.example.net"
    try: exec(way)
    except OSError: pass
"""
ASKED = {f"s3cret{number}.example.net" for number in range(len(WAYS))} | {f"{n}.113.0.203.in-addr.arpa" for n in (5, 6, 7, 8)}


def asked(place: Place, command: list[str]) -> set[str]:
    """The names that the resolver of a new namespace was asked for while the command ran."""
    place.file("resolv.conf", "nameserver 127.0.0.1\noptions timeout:2 attempts:1\n")
    place.file("nsswitch.conf", "hosts: dns\n")
    binds = "".join(f"mount --bind {place.folder}/{name} /etc/{name} && " for name in ("resolv.conf", "nsswitch.conf"))
    resolver = Path(__file__).parent / "resolver.py"
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
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.skipif(not shutil.which("unshare"), reason="there is no unshare(1)")
def test_no_packet_leaves_for_a_name_that_no_rule_names(place: Place) -> None:
    ways = [*WAYS.values(), *REVERSE.values()]
    place.file("program.py", f"WAYS = {ways!r}\n{PROGRAM}")
    place.profile("""\
        python-import=*
        python-api=ALLOW:threads, ALLOW:dynamic-code
        expose-ro=./program.py
        net=ALLOW|TCP|127.0.0.1|9|OUT
    """)
    bare = asked(place, [str(place.bin / "python"), "program.py"])
    assert bare >= ASKED, f"not asked without a sandbox: {ASKED - bare}"
    for place.provider in ("landlock", "subprocess"):
        assert asked(place, place.command("program.py")) == set(), place.provider
