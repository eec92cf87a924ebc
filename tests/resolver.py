"""Runs a command in a network of its own, whose only resolver this is: ``resolver.py COMMAND...``, in namespaces that
``unshare`` has made. It knows no name, and prints, as its last line, those that it was asked for."""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import subprocess
import sys
import threading


def name_in(question: bytes) -> str:
    labels, at = [], 12
    while at < len(question) and question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode("latin-1"))
        at += 1 + question[at]
    return ".".join(labels)


def answer(resolver: socket.socket, asked: set[str]) -> None:
    while True:
        question, where = resolver.recvfrom(4096)
        asked.add(name_in(question))
        # the question again, as a response: recursion is available, there is no such name
        resolver.sendto(question[:2] + b"\x81\x83" + question[4:6] + bytes(6) + question[12:], where)


def main() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:  # the loopback interface is down at first
        fcntl.ioctl(one, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running
    resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    resolver.bind(("127.0.0.1", 53))
    asked: set[str] = set()
    threading.Thread(target=answer, args=(resolver, asked), daemon=True).start()
    done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, timeout=60)
    print(json.dumps(sorted(asked)), flush=True)
    return done.returncode


raise SystemExit(main())
