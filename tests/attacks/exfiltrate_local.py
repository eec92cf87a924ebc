"""Send to a local datagram socket of somebody else. The profile exposes a folder in which one's own may be bound."""

from __future__ import annotations

from typing import Literal

from attack import Attack

GRANTS = "python-api=ALLOW:native\nexpose-rw=./work\nexpose-ro=./shown"

#: ``name`` is a sockaddr_un, ``message`` a msghdr of one byte to it.
NATIVE = """\
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
s = libc.socket(1, 2, 0)
path = os.fsencode(LETTERS) + b'\\0'
name = ctypes.create_string_buffer(struct.pack('H', 1) + path, 2 + len(path))
byte = ctypes.create_string_buffer(b'x')
vector = ctypes.create_string_buffer(struct.pack('PN', ctypes.addressof(byte), 1), 16)
message = struct.pack('PIPNPNI', ctypes.addressof(name), 2 + len(path), ctypes.addressof(vector), 1, 0, 0, 0)
message = message.ljust(56, b'\\0')
def sent(result): print('ESCAPED' if result >= 0 else 'no')
"""


def sends(
    name: str,
    code: str,
    kind: str = "direct",
    *,
    grants: str = "python-import=socket\nexpose-rw=./work",
    layer: Literal["python", "os"] = "python",
) -> Attack:
    return Attack("exfiltrate", f"local datagrams, {name}", code, kind=kind, grants=grants, layer=layer)


def native(name: str, code: str, kind: str = "native") -> Attack:
    return sends(f"{name}, by native code", NATIVE + code, kind, grants=GRANTS, layer="os")


PYTHON = "import os, socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"

CASES: list[Attack] = [
    sends("sendto", PYTHON + "s.sendto(b'x', LETTERS)\nprint('ESCAPED')"),
    sends("by bytes", PYTHON + "s.sendto(b'x', LETTERS.encode())\nprint('ESCAPED')", "spelling"),
    sends("a relative path", PYTHON + "s.sendto(b'x', os.path.relpath(LETTERS))\nprint('ESCAPED')", "spelling"),
    sends(
        "through a link",
        PYTHON + "os.symlink(LETTERS, WORK + '/to-letters')\ns.sendto(b'x', WORK + '/to-letters')\nprint('ESCAPED')",
        "link",
    ),
    sends("sendmsg", PYTHON + "s.sendmsg([b'x'], [], 0, LETTERS)\nprint('ESCAPED')", "twin"),
    sends("connect", PYTHON + "s.connect(LETTERS)\ns.send(b'x')\nprint('ESCAPED')", "twin"),
    sends("connect_ex", PYTHON + "print('ESCAPED' if s.connect_ex(LETTERS) == 0 else 'no')", "twin"),
    sends(
        "_socket",
        "import _socket\n_socket.socket(1, 2).sendto(b'x', LETTERS)\nprint('ESCAPED')",
        "twin",
        grants="python-import=_socket\nexpose-rw=./work",
    ),
    sends(
        "from one of a pair",
        "import socket\na, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\na.sendto(b'x', LETTERS)\nprint('ESCAPED')",
        "twin",
    ),
    sends(
        "from one that is bound inside",
        PYTHON + "s.bind(WORK + '/bound')\ns.sendto(b'x', LETTERS)\nprint('ESCAPED')",
        "state",
    ),
    native("sendto", "sent(libc.sendto(s, b'x', 1, 0, name, len(name)))"),
    native("sendmsg", "sent(libc.sendmsg(s, message, 0))"),
    native("sendmmsg", "sent(libc.sendmmsg(s, ctypes.create_string_buffer(message + bytes(8), 64), 1, 0) - 1)"),
    native("connect", "sent(libc.connect(s, name, len(name)))"),
    native(
        "from one of a pair",
        "pair = (ctypes.c_int * 2)()\nlibc.socketpair(1, 2, 0, pair)\nsent(libc.sendto(pair[0], b'x', 1, 0, name, len(name)))",
    ),
    native("from a raw one", "sent(libc.sendto(libc.socket(1, 3, 0), b'x', 1, 0, name, len(name)))", "twin"),
    native(
        "through a link",
        "os.symlink(LETTERS, WORK + '/by-link')\nl = struct.pack('H', 1) + os.fsencode(WORK) + b'/by-link\\0'\nsent(libc.sendto(s, b'x', 1, 0, l, len(l)))",
        "link",
    ),
    native(
        "an address that changes",
        """
import threading, time

own = libc.socket(1, 2, 0)
at = os.fsencode(os.path.abspath(WORK + '/raced'))
inside = struct.pack('H', 1) + at + b'\\0'
outside = bytes(name)
longest = max(len(inside), len(outside))
libc.bind(own, inside, len(inside))
libc.fcntl(own, 4, 0o4000)
libc.fcntl(s, 4, 0o4000)
where = ctypes.create_string_buffer(inside.ljust(longest, b'\\0'), longest)
until = time.monotonic() + 0.5
def flip():
    while time.monotonic() < until:
        where.raw = outside.ljust(longest, b'\\0')
        where.raw = inside.ljust(longest, b'\\0')
t = threading.Thread(target=flip)
t.start()
rest = ctypes.create_string_buffer(9)
while t.is_alive():
    before = libc.sendto(s, b'x', 1, 0, where, longest)
    if before >= 0 and libc.recv(own, rest, 9, 0) < 0: print('ESCAPED')
t.join()
""",
        "race",
    ),
]
