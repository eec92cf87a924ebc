"""A small internet for a test: ``zone.py FOLDER USER COMMAND...``, in network and mount namespaces that ``unshare`` has made.
The command runs as that user, by number, or as who is here where it is ``-``.

The machine has public addresses on its loopback device, with servers that say who they are, and a name server, the only one,
which knows the names of TABLE. It prints the names that it was asked for as its last line.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

#: Where servers listen, on SERVED ports. The last two are inside.
ADDRESSES = [
    "93.184.216.34",
    "93.184.216.35",
    "93.184.216.36",
    "93.184.216.37",
    "93.184.216.38",
    "198.51.100.7",
    "10.0.0.5",
    "169.254.169.254",
]
SERVED = (8443, 9000)
#: The n-th answer of a name that changes is the n-th of its addresses ("": it has none yet); the last one stays.
TABLE = {
    "www.example.com": ["93.184.216.34"],
    "deep.down.example.com": ["93.184.216.35"],
    "trap.example.com": ["10.0.0.5"],
    "cloud.example.com": ["169.254.169.254"],
    "db.corp.example": ["198.51.100.7"],
    "moves.example.org": ["93.184.216.36", "93.184.216.37"],
    "late.example.org": ["", "93.184.216.37"],
    "s3cret.evil.test": ["93.184.216.34"],
}
#: More than a message of 512 bytes holds.
CROWD = [f"198.51.101.{n}" for n in range(60)]
RESOLV = "nameserver 93.184.216.35\nnameserver 198.51.100.7\nsearch corp.example\noptions timeout:2 attempts:2\n"


def request(interface: str, address: str) -> bytes:
    """A struct ifreq with an address."""
    return struct.pack("16sH2s4s24x", interface.encode(), socket.AF_INET, b"", socket.inet_aton(address))


def machine(folder: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running
        for number, address in enumerate(ADDRESSES):
            fcntl.ioctl(one, 0x8916, request(f"lo:{number}", address))  # SIOCSIFADDR
            fcntl.ioctl(one, 0x891C, request(f"lo:{number}", "255.255.255.255"))  # SIOCSIFNETMASK
    for name, text in {
        "resolv.conf": RESOLV,
        "nsswitch.conf": "hosts: files dns\n",
        "hosts": "127.0.0.1 localhost\n93.184.216.38 listed.example.com\n",
    }.items():
        (folder / name).write_text(text)
        subprocess.run(["mount", "--bind", folder / name, f"/etc/{name}"], check=True)


def serve(address: str, port: int) -> None:
    listener = socket.create_server((address, port), backlog=100)

    def run() -> None:
        while True:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(f"{address} {port}".encode())

    threading.Thread(target=run, daemon=True).start()


def name_in(question: bytes) -> tuple[str, int]:
    """The name, and where what follows it begins."""
    labels, at = [], 12
    while at < len(question) and question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode("latin-1"))
        at += 1 + question[at]
    return ".".join(labels).lower(), at + 1


def answers(server: socket.socket, asked: list[str]) -> None:
    times: dict[str, int] = {}
    while True:
        question, where = server.recvfrom(4096)
        name, end = name_in(question)
        asked.append(name)
        (kind,) = struct.unpack_from("!H", question, end)
        found = []
        if kind == 1 and name in TABLE:
            which = min(times.get(name, 0), len(TABLE[name]) - 1)
            times[name] = times.get(name, 0) + 1
            found = [at for at in TABLE[name][which : which + 1] if at]
        elif kind == 1 and name == "crowd.example.com":
            found = CROWD
        code = 0x8180 if found or (kind != 1 and name in TABLE) else 0x8183
        records = [b"\xc0\x0c" + struct.pack("!2HIH", 1, 1, 1, 4) + socket.inet_aton(address) for address in found]
        head = question[:2] + struct.pack("!5H", code, 1, len(found), 0, 0)
        server.sendto(head + question[12 : end + 4] + b"".join(records), where)


def main() -> int:
    machine(Path(sys.argv[1]))
    for address in ADDRESSES:
        for port in SERVED:
            serve(address, port)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("93.184.216.35", 53))
    asked: list[str] = []
    threading.Thread(target=answers, args=(server, asked), daemon=True).start()
    user = {} if sys.argv[2] == "-" else {"user": int(sys.argv[2]), "group": int(sys.argv[2]), "extra_groups": []}
    done = subprocess.run(sys.argv[3:], stdin=subprocess.DEVNULL, timeout=90, env=dict(os.environ), **user)
    print(json.dumps(asked), flush=True)
    return done.returncode


raise SystemExit(main())
