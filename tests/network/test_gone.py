"""The supervisor is gone while native code waits for a connection: nothing goes out any more, and nobody is left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from complete_mode import Place
from outside import Outside

#: One thread waits for a connection that never stands, the other connects to where a rule allows, again and again.
PROGRAM = """\
import ctypes, os, socket, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def connect(port):
    fd = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_aton("127.0.0.1"))
    done = libc.connect(fd, address, len(address))
    if not done:
        libc.send(fd, b"<gone>", 6, 0)
    libc.close(fd)
    return done
threading.Thread(target=connect, args=({hole},), daemon=True).start()
connect({open})
print(os.getpid(), flush=True)
while True:
    connect({open})
    connect({shut})
"""


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("mode", ["walled", "unwalled"])
def test_nothing_goes_out_without_a_supervisor(place: Place, mode: str) -> None:
    (place.folder / "shared").mkdir()
    place.provider, place.environment["PYSANDBOXES_NETWORK"] = "landlock", mode
    outside = Outside(place.folder)
    try:
        rules = "".join(f"net=ALLOW|TCP|127.0.0.1|{port}|OUT\n" for port in (outside.open, outside.hole))
        place.profile(f"python-import=*\npython-api=ALLOW:native, ALLOW:threads\n{rules}")
        place.file("program.py", PROGRAM.format(open=outside.open, hole=outside.hole, shut=outside.shut))
        with subprocess.Popen(
            place.command("program.py"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            cwd=place.folder,
            env=place.environ(),
        ) as supervisor:
            assert supervisor.stdout is not None
            pid = int(supervisor.stdout.readline())
            assert pid != supervisor.pid and running(pid)
            outside.settle()
            assert outside.heard["open"], "it was connected while there was one"
            os.kill(supervisor.pid, signal.SIGKILL)
            supervisor.wait()
            until = time.monotonic() + 10
            while running(pid) and time.monotonic() < until:
                time.sleep(0.01)
            assert not running(pid), "the program outlived its supervisor"
    finally:
        outside.close()
    assert outside.heard["shut"] == []


def test_the_hole_is_one() -> None:
    """The negative control of the above: whoever connects there waits."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.settimeout(0.2)
        outcomes = [one.connect_ex(server.getsockname()) for one in waiting]
        for one in waiting:
            one.close()
    assert any(outcomes), outcomes
