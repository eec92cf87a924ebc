"""Who may bind may listen on what it has bound, and on nothing else."""

from __future__ import annotations

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

CODE = """
import socket
def listens(s, *address):
    try:
        if address: s.bind(address)
        s.listen()
        return s
    except OSError as e: print(type(e).__name__)
def talk(server):
    client = socket.create_connection(server.getsockname()[:2])
    client.sendall(b'x'); print(server.accept()[0].recv(1))
"""


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
def test_what_was_bound_by_a_grant(place: Place, provider: str) -> None:
    place.provider = provider
    place.profile("python-import=*\nnet=ALLOW|TCP|127.0.0.1|0|IN\nnet=ALLOW|TCP|localhost|0|IN\nnet=ALLOW|TCP|127.0.0.1|*|OUT")
    code = (
        CODE
        + """
talk(listens(socket.socket(), '127.0.0.1', 0))
talk(listens(socket.socket(), 'localhost', 0))
talk(socket.create_server(('127.0.0.1', 0)))
s = socket.socket(); s.bind(('127.0.0.1', 0)); talk(listens(socket.socket(fileno=s.detach())))
s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.connect_ex(('127.0.0.1', 1)) > 0); listens(s)
"""
    )
    bare, done = place.bare("-c", code), place.run("-c", code)
    assert bare.stdout == "b'x'\n" * 4 + "True\n"
    assert done.stdout == bare.stdout, done.stderr


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
def test_what_was_not(place: Place, provider: str) -> None:
    place.provider = provider
    place.profile("python-import=*\nnet=ALLOW|TCP|127.0.0.1|1|IN\nnet=ALLOW|TCP|127.0.0.1|*|OUT")
    code = (
        CODE
        + """
listens(socket.socket())
s = socket.socket(); s.connect_ex(('127.0.0.1', 1)); listens(s)
"""
    )
    assert place.bare("-c", code).stdout == ""
    done = place.run("-c", code)
    assert done.stdout == "RuleSocketConnectionRefusedError\n" * 2, done.stderr
