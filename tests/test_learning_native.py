"""What a learning run sees of native code: files, programs and addresses that no audit event tells of, in the program and in
what it starts. ctypes plays the library that is not written in Python."""

from __future__ import annotations

import os
import re
import socket
import threading

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

LIBC = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)\n"
SEEN = "  # seen in native code"


def learned(place: Place, code: str, *args: str, status: int = 0) -> list[str]:
    """The rules that a run of the code writes, without what ctypes needs."""
    done = place.run("--learn", *args, "-c", code)
    assert done.returncode == status, done.stderr
    rules = re.findall(r"^(?:env|expose-r[ow]|net|python-\w+)=.*", (place.folder / ".py-sandboxes").read_text(), re.MULTILINE)
    return [rule for rule in rules if "ctypes" not in rule and not rule.startswith("net=DENY")]


def without_imports(rules: list[str]) -> list[str]:
    return [rule for rule in rules if not rule.startswith("python-")]


FILES = {
    "open": ("libc.close(libc.open(b'data/a.txt', os.O_RDONLY))", "expose-ro=./data"),
    "fopen": ("libc.fopen.restype = ctypes.c_void_p; libc.fopen(b'data/a.txt', b'r')", "expose-ro=./data"),
    "opendir": ("libc.opendir.restype = ctypes.c_void_p; libc.opendir(b'data')", "expose-ro=./data"),
    "openat": ("d = libc.open(b'data', os.O_DIRECTORY | os.O_PATH); libc.openat(d, b'a.txt', os.O_RDONLY)", "expose-ro=./data"),
    "in another folder": ("libc.chdir(b'data/deep'); libc.open(b'../a.txt', os.O_RDONLY)", "expose-ro=./data"),
    "by a link": ("libc.open(b'link', os.O_RDONLY)", "expose-ro=./data"),
    "creat": ("libc.close(libc.creat(b'data/b.txt', 0o600))", "expose-rw=./data"),
    "mkdir": ("libc.mkdir(b'data/deep/c', 0o700)", "expose-rw=./data/deep"),
    "unlink": ("libc.unlink(b'data/a.txt')", "expose-rw=./data"),
    "rename": ("libc.rename(b'data/a.txt', b'data/z.txt')", "expose-rw=./data"),
    "symlink": ("libc.symlink(b'nowhere', b'data/l')", "expose-rw=./data"),
    "chmod": ("libc.chmod(b'data/a.txt', 0o600)", "expose-rw=./data"),
    "truncate": ("libc.truncate(b'data/a.txt', ctypes.c_long(0))", "expose-rw=./data"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file(place: Place, name: str) -> None:
    code, rule = FILES[name]
    place.file("data/a.txt", "a")
    place.file("data/deep/b.txt", "b")
    (place.folder / "link").symlink_to("data/a.txt")
    assert without_imports(learned(place, LIBC + code)) == [rule + SEEN]


@pytest.mark.parametrize(
    "code",
    [
        "libc.open(b'data/none', os.O_RDONLY)",
        "libc.unlink(b'data/none')",
        "libc.open(b'/dev/null', os.O_RDWR)",
        "libc.open(b'data/a.txt', os.O_PATH)",
        "libc.mkdir(b'data', 0o700)",
        "libc.open(os.__file__.encode(), os.O_RDONLY)",
        "libc.open(None, os.O_RDONLY)",
    ],
)
def test_what_needs_no_rule(place: Place, code: str) -> None:
    place.file("data/a.txt", "a")
    assert without_imports(learned(place, LIBC + code)) == []


def test_a_program_that_does_nothing_teaches_nothing(place: Place) -> None:
    place.file("neighbour.py")
    assert learned(place, "pass") == []
    place.file("app.py", "import json, decimal, sqlite3, ssl, hashlib, locale, zoneinfo\nzoneinfo.ZoneInfo('Europe/Vienna')")
    done = place.run("--learn", "app.py")
    assert done.returncode == 0, done.stderr
    assert "seen in native code" not in (place.folder / ".py-sandboxes").read_text()


def test_what_python_saw_keeps_its_call_site(place: Place) -> None:
    place.file("data/a.txt", "a")
    code = "import os\nopen('data/a.txt').read()\nopen('out.txt', 'w')\nos.listdir('data')"
    rules = learned(place, code)
    assert any(rule.startswith("expose-ro=./data  # <string>:2") for rule in rules), rules
    assert not any("native" in rule for rule in rules)


def test_a_database_that_is_only_read(place: Place) -> None:
    place.file("data/none")
    make = "import sqlite3; c = sqlite3.connect('data/x.db'); c.execute('create table t(a)'); c.commit()"
    assert place.bare("-c", make).returncode == 0
    read = "import sqlite3\nprint(sqlite3.connect('data/x.db').execute('select * from t').fetchall())"
    assert [rule.split("  #")[0] for rule in without_imports(learned(place, read))] == ["expose-ro=./data"]


def test_native_code_reads_what_python_looked_at(place: Place) -> None:
    place.file("data/a.txt", "a")
    rules = learned(place, LIBC + "os.path.exists('data/a.txt')\nlibc.open(b'data/a.txt', os.O_RDONLY)")
    assert len([rule for rule in rules if rule.startswith("expose-ro=./data  #")]) == 1


def test_programs_that_a_shell_starts(place: Place) -> None:
    place.environment["OS_SANDBOX"] = "landlock"
    place.file("data/b.txt", "2\n1\n")
    code = "import subprocess; print(subprocess.check_output('cat data/b.txt | sort | head -n 1', shell=True, text=True))"
    rules = learned(place, code)
    for program in ("cat", "sort", "head"):
        rule = rf"expose-ro=/(usr/)?bin/{program}  # program that is run; seen in native code"
        assert any(re.match(rule, line) for line in rules), rules
    assert "expose-ro=./data" + SEEN in rules
    done = place.run("-c", code)
    assert (done.returncode, done.stdout) == (0, "1\n\n"), done.stderr


ENDS = {
    "os._exit": ("os._exit(3)", 3),
    "SIGKILL": ("os.kill(os.getpid(), 9)", -9),
    "abort": ("libc.abort()", -6),
    "a crash": ("ctypes.string_at(0)", -11),
    "an exec": ("os.execv('/bin/true', ['true'])", 0),
}


@pytest.mark.parametrize("name", ENDS)
def test_nothing_is_lost_at_a_sudden_end(place: Place, name: str) -> None:
    code, status = ENDS[name]
    place.file("data/a.txt", "a")
    place.file("more/b.txt", "b")
    rules = learned(place, LIBC + f"open('more/b.txt')\nlibc.open(b'data/a.txt', os.O_RDONLY)\n{code}", status=status)
    assert "expose-ro=./data" + SEEN in rules
    assert any(rule.startswith("expose-ro=./more") for rule in rules)


THREAD = "import threading\nt = threading.Thread(target={}); t.start(); t.join()"
FORK = "def forked():\n    p = os.fork()\n    if not p: look(); os._exit(0)\n    os.waitpid(p, 0)\n"
WAYS = {
    "a thread": THREAD.format("look"),
    "a fork": FORK + "forked()",
    "a fork of a thread": FORK + THREAD.format("forked"),
    "multiprocessing": "import multiprocessing as m\np = m.get_context('fork').Process(target=look); p.start(); p.join()",
}


@pytest.mark.parametrize("name", WAYS)
def test_wherever_it_runs(place: Place, name: str) -> None:
    place.file("data/a.txt", "a")
    code = LIBC + "def look(): libc.open(b'data/a.txt', os.O_RDONLY)\n" + WAYS[name]
    assert "expose-ro=./data" + SEEN in learned(place, code)


CONNECT = """
import struct
s = libc.socket(2, 1, 0)
at = struct.pack('=HHI', 2, int.from_bytes(({port}).to_bytes(2, 'big'), 'little'), 0x0100007f) + bytes(8)
print(libc.connect(s, at, 16))
"""


def test_a_connection(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=lambda: server.accept()[0].close(), daemon=True).start()
        port = server.getsockname()[1]
        rules = learned(place, LIBC + CONNECT.format(port=port))
    rule = f"net=ALLOW|TCP|127.0.0.1|{port}|OUT  # this machine; seen in native code"
    assert [line for line in rules if line.startswith("net=")] == [rule]


def test_what_a_look_up_does_by_itself_is_no_connection(place: Place) -> None:
    code = "import socket; s = socket.create_server(('127.0.0.1', 0)); c = ('localhost', s.getsockname()[1])\n"
    code += "socket.create_connection(c)"
    assert not any("native" in rule for rule in learned(place, code))


def test_a_second_run_adds_nothing(place: Place) -> None:
    place.file("data/a.txt", "a")
    code = LIBC + "libc.open(b'data/a.txt', os.O_RDONLY); libc.creat(b'data/b.txt', 0o600)\n"
    code += "import subprocess; subprocess.run('ls data | wc', shell=True)"
    learned(place, code)
    before = (place.folder / ".py-sandboxes").read_bytes()
    learned(place, code)
    assert (place.folder / ".py-sandboxes").read_bytes() == before


PARTIAL = """
import tools
from pysandboxes import sandboxes

if __name__ == "__main__":
    with sandboxes(learn=True):
        tools.look()
"""


def test_in_partial_mode(place: Place) -> None:
    place.file("data/a.txt", "a")
    place.file("more/b.txt", "b")
    place.file("app.py", PARTIAL)
    place.file(
        "tools.py",
        """
        import ctypes
        from pysandboxes import sandbox

        @sandbox
        def look():
            ctypes.CDLL(None).open(b"data/a.txt", 0)
            open("more/b.txt").close()
        """,
    )
    place.profile("os-sandbox=auto\n")
    done = place.bare("app.py")
    assert done.returncode == 0, done.stderr
    rules = (place.folder / ".py-sandboxes").read_text().splitlines()
    assert "expose-ro=./data" + SEEN in rules
    assert any(rule.startswith("expose-ro=./more  # tools.py:") for rule in rules), rules


def test_without_privileges(unprivileged: Place) -> None:
    place = unprivileged
    data = place.file("data/a.txt", "a")
    data.chmod(0o644)
    assert "expose-ro=./data" + SEEN in learned(place, LIBC + "libc.open(b'data/a.txt', os.O_RDONLY)")
    (place.folder / ".py-sandboxes").unlink()
    data.chmod(0)
    if place.user is not None:  # else the file is the tests' own user's, which the mode keeps out just as well
        os.chown(data, 0, 0)
    assert without_imports(learned(place, LIBC + "libc.open(b'data/a.txt', os.O_RDONLY)")) == [], "it was not let"
