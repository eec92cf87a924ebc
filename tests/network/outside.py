"""Who stands outside the sandbox: listeners at ports that rules name and at ports that none does, somebody who knocks at
what the sandbox opens, and a process of the same user that has a connection."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import random
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

#: host, another, by IPv6; whether they are far. The far ones are addresses for documentation (RFC 5737, 3849).
HOSTS = {False: ("127.0.0.1", "127.0.0.2", "::1"), True: ("203.0.113.1", "203.0.113.2", "2001:db8:5::1")}
#: And what the machine has besides, nearer to other machines: packets to them come from it.
OWN6 = "2001:db8::77"
GROUP = "239.255.77.77"
BROADCAST = "127.255.255.255"
#: The names that are no path under which a way may listen, by its number.
ABSTRACT = {
    "named": (socket.SOCK_STREAM, "\0psb-ways-{}-1"),
    "packets": (socket.SOCK_SEQPACKET, "\0psb-ways-{}-5"),
    "unnamed": (socket.SOCK_STREAM, "\0{:05x}"),
}


def _six() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


SIX = _six()


def in_a_network(hosts: tuple[str, ...], work: Callable[[], T]) -> T:
    """Does the work in a network namespace of its own, to whose loopback device the hosts are given: they are far for
    whoever has another network, and nothing leaves the machine. Skips where none can be made."""
    with ThreadPoolExecutor(1) as thread:  # the namespace is the thread's, and that of what it starts
        made = thread.submit(_new_network, hosts).result()
        if made:
            pytest.skip(f"no network namespace can be made here: {os.strerror(made)}")
        return thread.submit(work).result()


def _new_network(hosts: tuple[str, ...]) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x40000000) < 0:  # CLONE_NEWNET
        return ctypes.get_errno()
    with socket.socket(type=socket.SOCK_DGRAM) as four:
        fcntl.ioctl(four, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running
        for number, host in enumerate(hosts):
            if ":" not in host:
                address = struct.pack("16sHH4s8x", b"lo:%d" % (number + 1), socket.AF_INET, 0, socket.inet_aton(host))
                fcntl.ioctl(four, 0x8916, address)  # SIOCSIFADDR
    if SIX:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as six:
            for host in (*hosts, OWN6):
                if ":" in host:
                    fcntl.ioctl(six, 0x8916, struct.pack("16sIi", socket.inet_pton(socket.AF_INET6, host), 128, 1))
                    for _ in range(500):  # the kernel takes its time until it is there
                        with socket.socket(socket.AF_INET6) as probe, contextlib.suppress(OSError):
                            probe.bind((host, 0))
                            break
                        time.sleep(0.01)
            # in6_rtmsg (linux/ipv6_route.h): everything by lo, as a machine with IPv6 has a way everywhere; by a route that
            # is local, since others do not lead there, and of packets that are to go on
            everywhere = (bytes(16), bytes(16), bytes(16), 1, 0, 0, 1, 0, 0x80000001, 1)
            fcntl.ioctl(six, 0x890B, struct.pack("16s16s16sIHHIqIi", *everywhere))  # SIOCADDRT
    return 0


class Outside:
    """What begins with ``?`` is sent back. ``heard`` is what else arrived, by the label of the listener: ``shut`` (no rule
    names it), ``open`` (one does), ``steal``.

    Everything is on this machine's loopback interface or a local path.
    """

    def __init__(self, folder: Path, user: int | None = None, hosts: tuple[str, ...] = HOSTS[False]) -> None:
        self.hosts = hosts
        self.heard: dict[str, list[bytes]] = defaultdict(list)
        self.selector = selectors.DefaultSelector()
        self.made: list[socket.socket] = []
        self.shut = self.port("shut")
        self.open = self.port("open")
        self.narrow = self.port("open", hosts={self.hosts[0]: "open", self.hosts[1]: "shut"})
        self.closed, self.door, self.granted_door = (self.reserved(hold) for hold in (True, False, False))
        self.steal = self.shared()
        self.hole = self.full()
        for name, label in (
            ("shut.sock", "shut"),
            ("shared/exposed.sock", "shut"),
            ("shared/granted.sock", "open"),
            ("open.sock", "open"),
        ):
            self.local(str(folder / name), label)
        self.abstract = f"psb-{os.getpid()}-{os.urandom(6).hex()}"
        self.local("\0" + self.abstract, "shut", datagram=False)
        if user is not None:
            for path in folder.rglob("*.sock*"):
                os.chown(path, user, user)
        self.talk, self.told = socket.socketpair()
        self.quiet = threading.Event()
        self.selector.register(self.told, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self._listen)
        self.thread.start()

    def close(self) -> None:
        """Ends the listening once everything that has arrived is heard."""
        self.talk.close()
        self.thread.join()

    def settle(self) -> None:
        """Waits until everything that has arrived is heard: a full queue would lose what comes next."""
        self.quiet.clear()
        self.talk.send(b"?")
        self.quiet.wait(10)

    # ---- listeners

    def port(self, label: str, hosts: dict[str, str] | None = None) -> int:
        """One port number with TCP and UDP listeners on several addresses."""
        everywhere = hosts is None
        hosts = hosts or dict.fromkeys((*HOSTS[False], *self.hosts), label)
        for _ in range(50):
            with contextlib.ExitStack() as stack:
                port, made = random.randrange(20000, 30000), []
                try:
                    for host, heard_as in hosts.items():
                        if ":" in host and not SIX:
                            continue
                        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                            one = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind))
                            one.bind((host, port))
                            made.append((one, heard_as))
                    for host in (BROADCAST, GROUP) if everywhere else ():
                        one = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
                        one.bind((host, port))
                        made.append((one, label))
                        if host == GROUP:
                            membership = struct.pack("4s4si", socket.inet_aton(GROUP), bytes(4), socket.if_nametoindex("lo"))
                            one.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
                except OSError as error:
                    why = error  # taken on one of them: try another number
                    continue
                stack.pop_all()
            for one, heard_as in made:
                self._hear(one, heard_as)
            return port
        raise AssertionError(f"no port is free on every address: {why}")

    def _hear(self, one: socket.socket, label: str) -> None:
        if one.type == socket.SOCK_STREAM:
            one.listen(4096)
        one.setblocking(False)
        self.made.append(one)
        self.selector.register(one, selectors.EVENT_READ, label)

    def reserved(self, hold: bool) -> int:
        """A port where nobody listens; held, so that nobody will."""
        for _ in range(50):
            one = socket.socket()
            try:
                one.bind(("127.0.0.1", port := random.randrange(20000, 30000)))
            except OSError:
                one.close()
                continue
            if hold:
                self.made.append(one)
            else:
                one.close()
            return port
        raise AssertionError("no port is free")

    def shared(self) -> int:
        """A port whose listeners let others share it."""
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tcp.bind(("127.0.0.1", self.reserved(False)))
            udp.bind(tcp.getsockname())
            self._hear(tcp.dup(), "steal")
            self._hear(udp.dup(), "steal")
            return tcp.getsockname()[1]

    def full(self) -> int:
        """A port where somebody listens whose queue is full, so that whoever connects is not answered."""
        server = socket.socket()
        server.bind((self.hosts[0], self.reserved(False)))
        server.listen(0)
        self.made.append(server)
        for _ in range(3):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(server.getsockname())
            self.made.append(one)
        port: int = server.getsockname()[1]
        return port

    def local(self, path: str, label: str, datagram: bool = True) -> None:
        one = socket.socket(socket.AF_UNIX)
        one.bind(path)
        self._hear(one, label)
        if datagram:
            two = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            two.bind(path + ".d")
            self._hear(two, label)
            for name in (path, path + ".d"):
                Path(name).chmod(0o777)

    def _listen(self) -> None:
        connections: dict[socket.socket, tuple[str, bytearray]] = {}
        ending, asked = False, False
        while (events := self.selector.select(0.05 if ending else 0.01 if asked else None)) or not ending:
            if asked and not events:
                asked = False
                self.quiet.set()
            for key, _ in events:
                one = key.fileobj
                assert isinstance(one, socket.socket)
                if one is self.told:
                    asked = bool(one.recv(1))
                    if not asked:
                        ending = True
                        self.selector.unregister(one)
                        one.close()
                elif one in connections:
                    label, bytes_so_far = connections[one]
                    try:
                        data = one.recv(4096)
                    except OSError:
                        data = b""
                    if data.startswith(b"?"):
                        one.setblocking(True)
                        with contextlib.suppress(OSError):
                            one.sendall(data)
                        one.setblocking(False)
                    else:
                        bytes_so_far += data
                    if not data:
                        self.heard[label].append(bytes(bytes_so_far))
                        self.selector.unregister(one)
                        one.close()
                        del connections[one]
                else:
                    with contextlib.suppress(OSError):
                        if one.type == socket.SOCK_DGRAM:
                            data, sender = one.recvfrom(65536)
                            if data.startswith(b"?"):
                                one.sendto(data, sender)
                            else:
                                self.heard[key.data].append(data)
                        else:
                            connection = one.accept()[0]
                            connection.setblocking(False)
                            connections[connection] = (key.data, bytearray())
                            self.selector.register(connection, selectors.EVENT_READ)
        for connection, (label, bytes_so_far) in connections.items():
            self.heard[label].append(bytes(bytes_so_far))
            connection.close()
        for one in self.made:
            one.close()
        self.selector.close()

    # ---- knocking

    def knock(self, how: str, port: int) -> bool:
        """Whether a byte could be put in at a port of this machine: ``tcp4``, ``udp6``, ``many4`` (forty times), ``group4``; or
        at a local name of that number: ``named``, ``packets``, ``unnamed``."""
        if how in ABSTRACT:
            kind, name = ABSTRACT[how]
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, kind) as one:
                one.connect(name.format(port))
                return one.send(b"K") == 1
            return False
        family, host = (socket.AF_INET6, "::1") if how.endswith("6") else (socket.AF_INET, "127.0.0.1")
        try:
            for _ in range(40 if how.startswith("many") else 1):
                with socket.socket(family, socket.SOCK_STREAM if how[0] in "tm" else socket.SOCK_DGRAM) as one:
                    one.settimeout(2)
                    if how == "group4":
                        lo = struct.pack("4s4si", bytes(4), socket.inet_aton(host), socket.if_nametoindex("lo"))
                        one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, lo)
                        host = GROUP
                    one.connect((host, port))
                    one.send(b"K")
        except OSError:
            return False
        return True


@contextlib.contextmanager
def victim(port: int, user: int | None) -> Iterator[tuple[int, int]]:
    """A process outside, of the same user, that has a connection to the port: its number and the descriptor's."""
    program = (
        "import socket, sys\n"
        f"one = socket.create_connection(('127.0.0.1', {port}))\n"
        "one.send(b'<victim>')\nprint(one.fileno(), flush=True)\nsys.stdin.read()\n"
    )
    who = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
    python = "/usr/bin/python3" if user is not None else sys.executable
    process = subprocess.Popen(
        [python, "-I", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
        start_new_session=True,
        **who,  # type: ignore[call-overload]
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield process.pid, int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(10)
        process.stdout.close()
