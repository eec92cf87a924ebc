"""Attack the descriptors that the guard and the supervisor talk over."""

from __future__ import annotations

from functools import partial

from attack import Attack

channel = partial(Attack, "channel")

CASES: list[Attack] = [
    channel(
        "close every descriptor",
        """
        import os
        os.closerange(3, 4096)
        open(SECRET).read()
        print('ESCAPED')
    """,
        alone=True,
    ),
    channel(
        "dup2 over the question socket",
        """
        import os, socket
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for fd in range(3, 1100):
            try: os.fstat(fd)
            except OSError: continue
            if fd not in (a.fileno(), b.fileno()): os.dup2(b.fileno(), fd)
        a.send(bytes([0x97, 2, 0xc3, 0, 0, 0xa0, 0xc0, 0xc0]) * 1)
        open(SECRET).read()
        print('ESCAPED')
    """,
        alone=True,
    ),
    channel(
        "an answer left for the guard",
        r"""
        import os, struct
        bin = lambda b: bytes([0xc4, len(b)]) + b
        ok = os.fsencode(os.__file__)
        for n in range(1, 9):
            for fd in range(3, 1100):
                try: os.write(fd, b'\x95\xd3' + struct.pack('>q', n) + b'\xa4file' + bin(ok) + b'\xc2\xa4open')
                except OSError: pass
            try: print('ESCAPED' if 's3cret' in open(SECRET).read() else 'no')
            except OSError: pass
    """,
    ),
]
