"""Signals while a program connects: what it is told is what happened, as bare."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from complete_mode import Place

#: A signal every half millisecond; its handler has no SA_RESTART, as none of Python's has.
PROGRAM = """\
import signal, socket
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
heard = false = 0
for turn in range(600):
    with socket.socket() as s:
        s.settimeout((None, 20)[turn % 2])
        s.connect(("127.0.0.1", {port}))
        try:
            heard += s.recv(2) == b"hi"
        except OSError:
            false += 1
signal.setitimer(signal.ITIMER_REAL, 0)
print(heard, false)
"""


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:

        def greet() -> None:
            while True:
                try:
                    connection = server.accept()[0]
                except OSError:
                    return
                with connection:
                    connection.sendall(b"hi")

        thread = threading.Thread(target=greet)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("mode", ["walled", "unwalled"])
def test_no_connection_that_never_was(place: Place, port: int, mode: str) -> None:
    place.provider = "landlock"
    place.profile(f"python-import=*\npython-api=ALLOW:*\nnet=ALLOW|TCP|127.0.0.1|{port}|OUT\n")
    place.environment["PYSANDBOXES_NETWORK"] = mode
    done = place.run("-c", PROGRAM.format(port=port), timeout=60)
    assert done.stdout == "600 0\n", done.stderr
