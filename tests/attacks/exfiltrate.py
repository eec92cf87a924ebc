"""Send data away: the network, local sockets, names."""

from __future__ import annotations

from functools import partial

from attack import Attack

exfiltrate = partial(Attack, "exfiltrate")

CASES: list[Attack] = [
    exfiltrate(
        "create_connection",
        """
        import socket
        socket.create_connection(('127.0.0.1', PORT), 5)
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "connect_ex",
        """
        import socket
        print('ESCAPED' if socket.socket().connect_ex(('127.0.0.1', PORT)) == 0 else 'no')
    """,
    ),
    exfiltrate(
        "mapped address",
        """
        import socket
        s = socket.socket(socket.AF_INET6)
        s.connect(('::ffff:127.0.0.1', PORT))
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "decimal spelling",
        """
        import socket
        socket.socket().connect(('2130706433', PORT))
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "empty host",
        """
        import socket
        socket.socket().connect(('', PORT))
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "_socket",
        """
        import _socket
        _socket.socket().connect(('127.0.0.1', PORT))
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "http.client",
        """
        import http.client
        http.client.HTTPConnection('127.0.0.1', PORT, timeout=5).connect()
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "asyncio",
        """
        import asyncio
        async def f():
            await asyncio.open_connection('127.0.0.1', PORT)
            print('ESCAPED')
        asyncio.run(f())
    """,
    ),
    exfiltrate(
        "udp",
        """
        import socket
        socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "sendmsg",
        """
        import socket
        socket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('127.0.0.1', PORT))
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "listen",
        """
        import socket
        s = socket.socket()
        s.bind(('127.0.0.1', 0))
        s.listen()
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "listen without bind",
        """
        import socket
        s = socket.socket()
        s.listen()
        print('ESCAPED')
    """,
    ),
]
