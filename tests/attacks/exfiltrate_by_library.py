"""Send by a library that connects for its caller, and by look-ups."""

from __future__ import annotations

from functools import partial

from attack import Attack

exfiltrate = partial(Attack, "exfiltrate")

CASES: list[Attack] = [
    exfiltrate(
        "a look-up",
        """
        import socket
        socket.getaddrinfo('localhost', 80)
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "gethostbyname",
        """
        import socket
        socket.gethostbyname('localhost')
        print('ESCAPED')
    """,
        kind="twin",
    ),
    exfiltrate(
        "gethostbyname_ex",
        """
        import socket
        socket.gethostbyname_ex('localhost')
        print('ESCAPED')
    """,
        kind="twin",
    ),
    exfiltrate(
        "gethostbyaddr",
        """
        import socket
        socket.gethostbyaddr('127.0.0.1')
        print('ESCAPED')
    """,
        kind="twin",
    ),
    exfiltrate(
        "getnameinfo",
        """
        import socket
        socket.getnameinfo(('127.0.0.1', 80), 0)
        print('ESCAPED')
    """,
        kind="twin",
    ),
    exfiltrate(
        "a look-up by _socket",
        """
        import _socket
        _socket.getaddrinfo('localhost', 80)
        print('ESCAPED')
    """,
        kind="twin",
    ),
    exfiltrate(
        "a look-up by asyncio",
        """
        import asyncio
        async def f(): return await asyncio.get_running_loop().getaddrinfo('localhost', 80)
        asyncio.run(f())
        print('ESCAPED')
    """,
        kind="library",
        grants="python-api=ALLOW:threads",
    ),
    exfiltrate(
        "asyncio sock_connect",
        """
        import asyncio, socket
        async def f():
            s = socket.socket()
            s.setblocking(False)
            await asyncio.get_running_loop().sock_connect(s, ('127.0.0.1', PORT))
            print('ESCAPED')
        asyncio.run(f())
    """,
        kind="library",
    ),
    exfiltrate(
        "asyncio datagrams",
        """
        import asyncio
        async def f():
            t, _ = await asyncio.get_running_loop().create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=('127.0.0.1', PORT))
            t.sendto(b'x')
            print('ESCAPED')
        asyncio.run(f())
    """,
        kind="library",
    ),
    exfiltrate(
        "asyncio server",
        """
        import asyncio
        async def f():
            await asyncio.start_server(print, '127.0.0.1', 0)
            print('ESCAPED')
        asyncio.run(f())
    """,
        kind="library",
    ),
    exfiltrate(
        "asyncio local",
        """
        import asyncio
        async def f():
            await asyncio.open_unix_connection(SOCKET)
            print('ESCAPED')
        asyncio.run(f())
    """,
        kind="library",
    ),
    exfiltrate(
        "create_server",
        """
        import socket
        socket.create_server(('127.0.0.1', 0))
        print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "socketserver",
        """
        import socketserver
        socketserver.TCPServer(('127.0.0.1', 0), None)
        print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "multiprocessing listener",
        """
        from multiprocessing.connection import Listener
        Listener(('127.0.0.1', 0))
        print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "SocketHandler",
        """
        import logging.handlers
        logging.handlers.SocketHandler('127.0.0.1', PORT).makeSocket()
        print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "SysLogHandler",
        """
        import logging.handlers
        logging.handlers.SysLogHandler(SOCKET).socket.getpeername()
        print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "DatagramHandler",
        """
        import logging.handlers
        h = logging.handlers.DatagramHandler('127.0.0.1', PORT)
        h.send(b'x')
        print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "ssl",
        """
        import socket, ssl
        c = ssl._create_unverified_context()
        try: c.wrap_socket(socket.socket()).connect(('127.0.0.1', PORT))
        except (ssl.SSLError, ConnectionResetError): pass
        print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "urllib",
        """
        import http.client, urllib.request
        try: urllib.request.urlopen(f'http://127.0.0.1:{PORT}', timeout=5)
        except (http.client.RemoteDisconnected, ConnectionResetError): print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "ftplib",
        """
        import ftplib
        try: ftplib.FTP().connect('127.0.0.1', PORT, 5)
        except (EOFError, ConnectionResetError): print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "smtplib",
        """
        import smtplib
        try: smtplib.SMTP('127.0.0.1', PORT, timeout=5)
        except (smtplib.SMTPServerDisconnected, ConnectionResetError): print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "poplib",
        """
        import poplib
        try: poplib.POP3('127.0.0.1', PORT, 5)
        except (poplib.error_proto, ConnectionResetError): print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "imaplib",
        """
        import imaplib
        try: imaplib.IMAP4('127.0.0.1', PORT, 5)
        except (imaplib.IMAP4.abort, ConnectionResetError): print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "xmlrpc",
        """
        import http.client, xmlrpc.client
        try: xmlrpc.client.ServerProxy(f'http://127.0.0.1:{PORT}').x()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError): print('ESCAPED')
    """,
        kind="library",
    ),
    exfiltrate(
        "get_server_certificate",
        """
        import ssl
        try: ssl.get_server_certificate(('127.0.0.1', PORT), timeout=5)
        except (ssl.SSLError, ConnectionResetError): print('ESCAPED')
    """,
        kind="library",
    ),
]
