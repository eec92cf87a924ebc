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
    exfiltrate(
        "connect",
        """
        import socket
        socket.socket().connect(('127.0.0.1', PORT))
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "connect by IPv6",
        """
        import socket
        try: socket.socket(socket.AF_INET6).bind(('::1', 0))
        except OSError as e: absent('IPv6') if e.errno in (97, 99) else None
        socket.socket(socket.AF_INET6).connect(('::1', PORT))
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "octal spelling",
        """
        import socket
        socket.socket().connect(('0177.0.0.1', PORT))
        print('ESCAPED')
    """,
        kind="spelling",
    ),
    exfiltrate(
        "hexadecimal spelling",
        """
        import socket
        socket.socket().connect(('0x7f.1', PORT))
        print('ESCAPED')
    """,
        kind="spelling",
    ),
    exfiltrate(
        "two parts",
        """
        import socket
        socket.socket().connect(('127.1', PORT))
        print('ESCAPED')
    """,
        kind="spelling",
    ),
    exfiltrate(
        "unspecified address",
        """
        import socket
        socket.socket().connect(('0.0.0.0', PORT))
        print('ESCAPED')
    """,
        kind="spelling",
    ),
    exfiltrate(
        "mapped in hexadecimal",
        """
        import socket
        socket.socket(socket.AF_INET6).connect(('::ffff:7f00:1', PORT))
        print('ESCAPED')
    """,
        kind="spelling",
    ),
    exfiltrate(
        "bytes host",
        """
        import socket
        socket.socket().connect((b'127.0.0.1', PORT))
        print('ESCAPED')
    """,
        kind="spelling",
    ),
    exfiltrate(
        "bytearray host",
        """
        import socket
        socket.socket().connect((bytearray(b'127.0.0.1'), PORT))
        print('ESCAPED')
    """,
        kind="spelling",
    ),
    exfiltrate(
        "wide digits",
        """
        import socket
        socket.socket().connect(('127.0.0.' + chr(0xff11), PORT))
        print('ESCAPED')
    """,
        kind="spelling",
    ),
    exfiltrate(
        "a name of the hosts file",
        """
        import socket
        socket.socket().connect(('localhost', PORT))
        print('ESCAPED')
    """,
        kind="spelling",
    ),
    exfiltrate(
        "another port than the one that is granted",
        """
        import socket
        socket.socket().connect(('127.0.0.1', PORT))
        print('ESCAPED')
    """,
        kind="spelling",
        grants="net=ALLOW|TCP|127.0.0.1|{open}|OUT",
    ),
    exfiltrate(
        "the granted port by another protocol",
        """
        import socket
        socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', OPEN))
        print('ESCAPED')
    """,
        kind="spelling",
        grants="net=ALLOW|TCP|127.0.0.1|{open}|OUT",
    ),
    exfiltrate(
        "bind where only going out is granted",
        """
        import socket
        socket.socket().bind(('127.0.0.1', 0))
        print('ESCAPED')
    """,
        grants="net=ALLOW|TCP|127.0.0.1|{open}|OUT",
    ),
    exfiltrate(
        "listen after a connect that failed",
        """
        import socket
        s = socket.socket()
        s.connect_ex(('127.0.0.1', 1))
        s.listen()
        print('ESCAPED')
    """,
        kind="state",
        grants="net=ALLOW|TCP|127.0.0.1|1|OUT",
    ),
    exfiltrate(
        "MPTCP",
        """
        import socket
        try: s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
        except OSError as e: absent('MPTCP') if e.errno == 93 else None
        s.connect(('127.0.0.1', PORT))
        print('ESCAPED')
    """,
        kind="twin",
    ),
    exfiltrate(
        "a raw socket",
        """
        import os, socket
        if os.geteuid(): absent('only root may')
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).sendto(bytes(8), ('127.0.0.1', 0))
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "a packet socket",
        """
        import os, socket
        if os.geteuid(): absent('only root may')
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "a netlink socket",
        """
        import socket
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "udp connect and send",
        """
        import socket
        s = socket.socket(type=socket.SOCK_DGRAM)
        s.connect(('127.0.0.1', PORT))
        s.send(b'x')
        print('ESCAPED')
    """,
        kind="twin",
    ),
    exfiltrate(
        "udp with flags",
        """
        import socket
        socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', 0, ('127.0.0.1', PORT))
        print('ESCAPED')
    """,
        kind="twin",
    ),
    exfiltrate(
        "fast open",
        """
        import socket
        s = socket.socket()
        s.sendto(b'x', socket.MSG_FASTOPEN, ('127.0.0.1', PORT))
        print('ESCAPED')
    """,
        kind="twin",
    ),
    exfiltrate(
        "_socket connect_ex",
        """
        import _socket
        print('ESCAPED' if _socket.socket().connect_ex(('127.0.0.1', PORT)) == 0 else 'no')
    """,
        kind="twin",
    ),
    exfiltrate(
        "the method of the type",
        """
        import _socket, socket
        _socket.socket.connect(socket.socket(), ('127.0.0.1', PORT))
        print('ESCAPED')
    """,
        kind="twin",
    ),
    exfiltrate(
        "a subclass that lies about its family",
        """
        import socket
        class S(socket.socket):
            family = socket.AF_UNIX
            type = socket.SOCK_DGRAM
        S(socket.AF_INET, socket.SOCK_STREAM).connect(('127.0.0.1', PORT))
        print('ESCAPED')
    """,
        kind="object",
    ),
    exfiltrate(
        "fromfd with another family",
        """
        import socket
        s = socket.socket()
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM, fileno=s.detach()).connect(('127.0.0.1', PORT))
        print('ESCAPED')
    """,
        kind="descriptor",
    ),
    exfiltrate(
        "a socket that was duplicated",
        """
        import socket
        socket.socket().dup().connect(('127.0.0.1', PORT))
        print('ESCAPED')
    """,
        kind="descriptor",
    ),
    exfiltrate(
        "an address that answers differently",
        """
        import socket
        class P(int):
            def __index__(self): return PORT
        socket.socket().connect(('127.0.0.1', P(PORT)))
        print('ESCAPED')
    """,
        kind="object",
    ),
    exfiltrate(
        "a local socket",
        """
        import socket
        socket.socket(socket.AF_UNIX).connect(SOCKET)
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "a local socket by bytes",
        """
        import socket
        socket.socket(socket.AF_UNIX).connect(SOCKET.encode())
        print('ESCAPED')
    """,
        kind="spelling",
    ),
    exfiltrate(
        "a local socket, connect_ex",
        """
        import socket
        print('ESCAPED' if socket.socket(socket.AF_UNIX).connect_ex(SOCKET) == 0 else 'no')
    """,
        kind="twin",
    ),
    exfiltrate(
        "a local socket through a link",
        """
        import os, socket
        os.symlink(SOCKET, WORK + '/l')
        socket.socket(socket.AF_UNIX).connect(WORK + '/l')
        print('ESCAPED')
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    exfiltrate(
        "an abstract socket",
        """
        import socket
        socket.socket(socket.AF_UNIX).connect(ABSTRACT)
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "an abstract socket by bytes",
        """
        import socket
        socket.socket(socket.AF_UNIX).connect(ABSTRACT.encode())
        print('ESCAPED')
    """,
        kind="spelling",
    ),
    exfiltrate(
        "an abstract name of one's own",
        """
        import socket
        socket.socket(socket.AF_UNIX).bind(chr(0) + 'psb' + WORK)
        print('ESCAPED')
    """,
    ),
    exfiltrate(
        "the log of the machine",
        """
        import syslog
        syslog.syslog('s3cret')
        print('ESCAPED')
    """,
        kind="native",
    ),
    # A sandbox reaches the sockets that it has made itself, by their paths: somebody else's socket takes the place of one.
    *(
        exfiltrate(
            name,
            f"""
            import os, socket
            made = socket.socket(socket.AF_UNIX)
            {code}
            one = socket.socket(socket.AF_UNIX)
            one.connect(WORK + '/in/own')
            print('ESCAPED')
        """,
            kind="link",
            grants="expose-rw=./work",
            plant="import os\nfor d in ('in', 'out'): os.mkdir(WORK + '/' + d)\nos.link(SOCKET, WORK + '/out/own')",
        )
        for name, code in {
            "another's socket renamed to an own name": "made.bind(WORK + '/in/own'); os.rename(WORK + '/out/own', WORK + '/in/own')",
            "another's socket linked to an own name": "made.bind(WORK + '/in/own'); os.remove(WORK + '/in/own'); "
            "os.link(WORK + '/out/own', WORK + '/in/own')",
            "another's socket renamed by a dir_fd": "made.bind(WORK + '/in/own'); d = os.open(WORK + '/out', os.O_PATH); "
            "os.replace('own', WORK + '/in/own', src_dir_fd=d)",
            "the folder of another's socket renamed to that of an own": "made.bind(WORK + '/in/own'); "
            "os.rename(WORK + '/in', WORK + '/was'); os.rename(WORK + '/out', WORK + '/in')",
        }.items()
    ),
    # The functions of _socket ask the "idna" codec for the bytes that are looked up; a program can put one of its own there.
    *(
        exfiltrate(
            f"a codec for names that leads elsewhere, {name}",
            f"""
            import codecs, encodings, socket
            def elsewhere(name, errors='strict'): return b'localhost', len(name)
            encodings._cache['idna'] = codecs.CodecInfo(elsewhere, None, name='idna')
            class Name(str): pass
            {code}
        """,
            grants="net=ALLOW|*|192.0.2.1|*|OUT",
            kind="object",
            alone=True,
        )
        for name, code in {
            "connect": "socket.socket().connect((Name('192.0.2.1'), PORT)); print('ESCAPED')",
            "connect_ex": "print('ESCAPED' if socket.socket().connect_ex((Name('192.0.2.1'), PORT)) == 0 else 'no')",
            "sendto": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', (Name('192.0.2.1'), PORT)); print('ESCAPED')",
            "sendmsg": "socket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, (Name('192.0.2.1'), PORT)); print('ESCAPED')",
            "getaddrinfo": "print('ESCAPED' if '127.0.0.1' in str(socket.getaddrinfo('192.0.2.1', PORT)) else 'no')",
            "gethostbyname": "print('ESCAPED' if socket.gethostbyname('192.0.2.1') == '127.0.0.1' else 'no')",
            "gethostbyname_ex": "print('ESCAPED' if '127.0.0.1' in socket.gethostbyname_ex('192.0.2.1')[2] else 'no')",
        }.items()
    ),
]
