"""A rule for an address of this machine is none for its wires: a program that chooses the device by which its packets leave has
them leave, wherever their address is. The test has a network of its own with a device that leads nowhere, and looks at it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from complete_mode import Place
from outside import SIX, in_a_network

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="only root with ip(8) makes a device")

DEVICE = "psb0"
#: A pair whose far end nobody listens at, on which nobody asks for addresses of the link first.
MADE = (
    f"link add {DEVICE} type veth peer name {DEVICE}far",
    f"link set {DEVICE} arp off up",
    f"link set {DEVICE}far up",
    f"addr add 203.0.113.77/32 dev {DEVICE}",
    *((f"-6 route add default dev {DEVICE}",) if SIX else ()),
)
LIBRARY = f"""\
import ctypes, os, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
port, index = map(int, sys.argv[1:3])
name = b'{DEVICE}'
four = struct.pack('=H', 2) + struct.pack('!H4s8x', port, bytes((127, 0, 0, 1)))
six = struct.pack('=H', 10) + struct.pack('!HI16sI', port, 0, bytes(15) + b'\\1', 0)
mapped = struct.pack('=H', 10) + struct.pack('!HI16sI', port, 0, bytes(10) + b'\\xff\\xff\\x7f\\0\\0\\1', 0)
data = ctypes.create_string_buffer(b'<wire>', 6)
iov = ctypes.create_string_buffer(struct.pack('QQ', ctypes.addressof(data), 6))
def made(family, kind=2): return libc.socket(family, kind, 0)
def chosen(fd, level, option, value):
    if libc.setsockopt(fd, level, option, value, len(value)) < 0: print(os.strerror(ctypes.get_errno()))
    return fd
def sendto(fd, to): return libc.sendto(fd, data, 6, 0, to, len(to))
def sendmsg(fd, to, level, kind, control):
    to = ctypes.create_string_buffer(to, len(to))
    control = struct.pack('=Qii', 16 + len(control), level, kind) + control
    control = ctypes.create_string_buffer(control, (len(control) + 7) // 8 * 8)
    parts = ctypes.addressof(to), len(to), ctypes.addressof(iov), 1, ctypes.addressof(control), len(control), 0
    return libc.sendmsg(fd, struct.pack('7Q', *parts), 0)
def unicast(fd): return chosen(fd, 0, 50, struct.pack('!I', index))
def soon(fd): return chosen(fd, 1, 21, struct.pack('qq', 0, 300000))
def connected(fd, to):
    libc.connect(fd, to, len(to))
    return fd
"""
#: name -> what the program does. Each reaches the wire bare, with an address of this machine.
USES = {
    "a device": "sendto(chosen(made(2), 1, 25, name), four)",
    "a device by number": "sendto(chosen(made(2), 1, 62, struct.pack('i', index)), four)",
    "the device of unicast": "sendto(unicast(made(2)), four)",
    "the device of unicast, connected": "libc.send(connected(unicast(made(2)), four), data, 6, 0)",
    "what goes with a datagram": "sendmsg(made(2), four, 0, 8, struct.pack('iII', index, 0, 0))",
    "what goes with a mapped one": "sendmsg(made(10), mapped, 41, 50, struct.pack('=16si', mapped[8:20] + bytes(4), index))",
    "a device, mapped": "sendto(chosen(made(10), 1, 25, name), mapped)",
    "the first packet of a connection": "connected(chosen(soon(made(2, 1)), 1, 25, name), four)",
}
if SIX:
    USES |= {
        "a device, IPv6": "sendto(chosen(made(10), 1, 25, name), six)",
        "the device of unicast, IPv6": "sendto(chosen(made(10), 41, 76, struct.pack('!I', index)), six)",
        "the device of a source, IPv6": "sendto(chosen(made(10), 41, 50, struct.pack('=16si', bytes(16), index)), six)",
        "what goes with a datagram, IPv6": "sendmsg(made(10), six, 41, 50, struct.pack('=16si', bytes(16), index))",
    }
RULES = """\
python-import=*
python-api=ALLOW:native
net=ALLOW|*|127.0.0.1|{port}|OUT
net=ALLOW|*|::1|{port}|OUT
"""


def device() -> None:
    for command in MADE:
        done = subprocess.run(["ip", *command.split()], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"ip {command}: {done.stderr}")


def attempt(place: Place, what: str, bare: bool) -> tuple[int, bytes, str]:
    """How many packets to the port left by the device, what arrived where it was meant to, and what the program said."""

    def work() -> tuple[int, bytes, str]:
        device()
        everything = 3
        with (
            socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(everything)) as wire,
            socket.socket(type=socket.SOCK_DGRAM) as meant,
        ):
            wire.bind((DEVICE, everything))
            meant.bind(("127.0.0.1", 0))
            port = meant.getsockname()[1]
            place.profile(RULES.format(port=port))
            place.file("program.py", LIBRARY + USES[what])
            arguments = ("program.py", str(port), str(socket.if_nametoindex(DEVICE)))
            done = (place.bare if bare else place.run)(*arguments)
            assert done.returncode == 0, done.stderr
            wire.setblocking(False)
            meant.setblocking(False)
            left, arrived = 0, b""
            with contextlib.suppress(BlockingIOError):
                while True:
                    left += port.to_bytes(2, "big") in wire.recv(2000)[20:44]
            with contextlib.suppress(BlockingIOError):
                arrived = meant.recv(99)
            return left, arrived, done.stdout + done.stderr

    return in_a_network((), work)


@pytest.mark.parametrize("what", USES)
def test_negative_control(place: Place, what: str) -> None:
    left, arrived, said = attempt(place, what, bare=True)
    assert left > 0 and arrived == b"", said


@pytest.mark.parametrize("mode", ["walled", "unwalled"])
@pytest.mark.parametrize("what", USES)
def test_nothing_leaves(place: Place, what: str, mode: str) -> None:
    place.provider, place.environment["PYSANDBOXES_NETWORK"] = "landlock", mode
    left, _, said = attempt(place, what, bare=False)
    assert left == 0, said


def test_what_goes_with_a_datagram_arrives_where_its_address_is(place: Place) -> None:
    place.provider, place.environment["PYSANDBOXES_NETWORK"] = "landlock", "unwalled"
    left, arrived, said = attempt(place, "what goes with a datagram", bare=False)
    assert (left, arrived) == (0, b"<wire>"), said


@pytest.mark.parametrize("mode", ["walled", "unwalled"])
def test_a_look_up_leaves_by_no_device(place: Place, mode: str) -> None:
    """It goes to a resolver on this machine; by a device it would go to whoever is on the wire."""
    place.provider, place.environment["PYSANDBOXES_NETWORK"] = "landlock", mode
    servers = [line.split()[1] for line in Path("/etc/resolv.conf").read_text().splitlines() if line.startswith("nameserver")]
    four = [s for s in servers if ":" not in s]
    if not four:
        pytest.skip("no name server here")
    RULE = "python-import=*\npython-api=ALLOW:native\nnet=ALLOW|TCP|name.example|443|OUT\n"

    def work() -> tuple[int, str]:
        device()
        with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)) as wire:
            wire.bind((DEVICE, 3))
            place.profile(RULE)
            server = f"server = struct.pack('=H', 2) + struct.pack('!H4s8x', 53, socket.inet_aton('{four[0]}'))\n"
            uses = "\n".join(USES[way].replace("four", "server") for way in ("a device", "what goes with a datagram"))
            place.file("program.py", LIBRARY + server + uses)
            done = place.run("program.py", "53", str(socket.if_nametoindex(DEVICE)))
            wire.setblocking(False)
            found = 0
            with contextlib.suppress(BlockingIOError):
                while True:
                    found += b"<wire>" in wire.recv(2000)
            return found, done.stdout + done.stderr

    left, said = in_a_network((), work)
    assert left == 0, said
