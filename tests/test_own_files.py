"""What lies beneath an exposed folder and is not for the program: native code is held too, by a mount namespace."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from complete_mode import Place
from test_containers import run

pytestmark = pytest.mark.smoke

RULES = "python-import=*\npython-api=ALLOW:native\nexpose-rw=.\nignore=.env\nignore=./data/private/key\n"

#: Native code, a line each: what it may not do, and its neighbour that it may.
PROGRAM = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def tries(name, result): print(name, 'ok' if result >= 0 else os.strerror(ctypes.get_errno()))
def content(name):
    fd = libc.open(name.encode(), 0)
    return os.read(fd, 9) if fd >= 0 else b''
tries("write the profile", libc.open(b".py-sandboxes", 1))
print("read the profile", content(".py-sandboxes")[:6])
tries("replace it", libc.rename(b"page", b".py-sandboxes"))
tries("remove it", libc.unlink(b".py-sandboxes"))
print("hidden by name", content(".env"))
print("hidden by path", content("data/private/key"))
tries("move the folder above", libc.rename(b"data/private", b"data/public"))
tries("another name", libc.link(b".env", b"env"))
print("beside it", content("data/private/page"))
tries("write beside it", libc.open(b"data/private/page", 1))
tries("move beside it", libc.rename(b"data/page", b"data/moved"))
tries("change of mode", libc.chmod(b"data/private/page", 0o600))
tries("hidden, change of mode", libc.chmod(b".env", 0o604))
"""
HELD = """\
write the profile Read-only file system
read the profile b'python'
replace it Device or resource busy
remove it Device or resource busy
hidden by name b''
hidden by path b''
move the folder above Device or resource busy
another name Invalid cross-device link
beside it b'beside'
write beside it ok
move beside it ok
change of mode ok
hidden, change of mode Permission denied
"""


def prepare(place: Place) -> None:
    place.provider = "landlock"
    place.environment["HOME"] = str(place.folder / "data/home")  # what later starts trust lies there, and is made
    place.profile(RULES)
    place.file(".env", "s3cret")
    place.file("data/private/key", "s3cret")
    place.file("data/private/page", "beside")
    for name in ("page", "data/page"):
        place.file(name, "page")
    place.file("program.py", PROGRAM)


def unchanged(place: Place) -> None:
    assert (place.folder / ".py-sandboxes").read_text() == RULES
    for name in (".env", "data/private/key"):
        assert (place.folder / name).read_text() == "s3cret"
        assert (place.folder / name).stat().st_mode & 0o777 != 0o604
    assert (place.folder / "data/moved").exists(), "the negative control: what is not named can be moved"
    assert (place.folder / "data/home/.local/state/pysandboxes").is_dir()


@pytest.fixture
def namespaces(request: pytest.FixtureRequest) -> None:
    place = request.getfixturevalue("unprivileged" if "unprivileged" in request.fixturenames else "place")
    if "no   namespaces" in place.doctor():
        pytest.skip("no namespaces can be made here")


def test_native_code_is_held(place: Place, namespaces: None) -> None:
    prepare(place)
    done = place.run("program.py")
    assert done.stdout == HELD, done.stderr
    unchanged(place)


@pytest.mark.unprivileged
def test_native_code_of_a_user_is_held(unprivileged: Place, namespaces: None) -> None:
    prepare(unprivileged)
    for path in (unprivileged.folder, *unprivileged.folder.rglob("*")):
        os.chown(path, unprivileged.user or -1, -1)
    done = unprivileged.run("program.py")
    assert done.stdout == HELD, done.stderr
    unchanged(unprivileged)


OWNERS = "import os; print(os.stat('/').st_uid, os.stat('page').st_uid == os.getuid(), open('page').read())"


@pytest.mark.unprivileged
@pytest.mark.parametrize(
    ("rules", "network", "owner"),
    [
        ("ignore=.env\n", "", 65534),
        ("", "", 0),
        ("net=ALLOW|TCP|127.0.0.1|9|OUT\n", "", 0),
        ("net=ALLOW|TCP|127.0.0.1|9|OUT\n", "walled", 65534),
    ],
)
def test_who_owns_files(unprivileged: Place, namespaces: None, rules: str, network: str, owner: int) -> None:
    """A user namespace knows one user, and others are nobody there. None is made without need."""
    unprivileged.provider = "landlock"
    unprivileged.environment["PYSANDBOXES_NETWORK"] = network
    unprivileged.file(".env", "s3cret")
    os.chown(unprivileged.file("page", "page"), unprivileged.user or -1, -1)
    unprivileged.profile(f"expose-ro=.\n{rules}python-import=*\n")
    done = unprivileged.run("-c", OWNERS)
    assert done.stdout == f"{owner} True page\n", done.stderr


def test_bare_native_code_does_it_all(place: Place) -> None:
    prepare(place)
    done = place.bare("program.py")
    for line in (
        "write the profile ok",
        "replace it ok",
        "hidden by name b's3cret'",
        "move the folder above ok",
        "another name ok",
    ):
        assert line in done.stdout, done.stdout


def test_python_is_refused_in_words(place: Place, namespaces: None) -> None:
    prepare(place)
    done = place.run("-c", "open('.py-sandboxes', 'a')")
    assert "the profile and what it includes are never writable" in done.stderr
    done = place.run("-c", "open('.env')")
    assert "the line ignore=.env at" in done.stderr


def test_an_include_that_is_not_there_stops_the_start(place: Place) -> None:
    """Nothing can be mounted where nothing is, and the program could put rules there."""
    place.provider = "landlock"
    place.profile('expose-rw=.\ninclude "./later"\n')
    done = place.run("-c", "pass")
    assert done.returncode == 2
    assert "later is not there" in done.stderr
    assert "make it, an empty file will do" in done.stderr
    place.file("later")
    assert place.run("-c", "pass").returncode == 0


SHARED = """
import os
from multiprocessing import shared_memory
print(sorted(os.listdir("/dev/shm")))
one = shared_memory.SharedMemory(create=True, size=9, name="psb-own")
other = shared_memory.SharedMemory("psb-own")
print(other.size >= 9, os.path.exists("/dev/shm/psb-own"))
other.close()
one.unlink()
"""


def test_shared_memory_is_the_sandboxs_own(place: Place, namespaces: None) -> None:
    place.provider = "landlock"
    place.profile("python-import=*\npython-api=ALLOW:*\nexpose-rw=/dev/shm\n")
    theirs = Path(f"/dev/shm/psb-{place.folder.name}")
    theirs.write_text("the host's")
    try:
        done = place.run("-c", SHARED)
        assert done.stdout == "[]\nTrue True\n", done.stderr
        place.profile(f"python-import=*\nexpose-rw={theirs}\n")
        done = place.run("-c", f"print(open({str(theirs)!r}).read())")
        assert done.stdout == "the host's\n", "a rule for the very file is for the host's" + done.stderr
    finally:
        theirs.unlink()
    assert not Path("/dev/shm/psb-own").exists()


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("expose-rw=.\n", "the program could rewrite its own rules"),
        ("expose-ro=.\nignore=.env\n", "cannot be held by the kernel inside"),
    ],
)
def test_what_a_container_cannot_hold_does_not_start(place: Place, contained: Path, rules: str, said: str) -> None:
    prepare(place)
    place.profile(rules)
    done = run(place, contained, "-docker -drop", *place.command("-c", "print('ran')"))
    assert (done.stdout, done.returncode) == ("", 125)
    assert said in done.stderr
    assert "files of the sandbox's own would hold it, but cannot be had here" in done.stderr


def test_what_a_container_does_without_is_said(place: Place, contained: Path) -> None:
    prepare(place)
    place.profile("expose-ro=.\nignore=.env\nignore-best-effort=true\nexpose-rw=/dev/shm\npython-import=*\n")
    done = run(place, contained, "-docker -drop", *place.command("-c", "print('ran')"))
    assert (done.stdout, done.returncode) == ("ran\n", 0)
    assert "what ignore= hides is held by the Python layer only" in done.stderr
    assert "is the host's and stays there" in done.stderr


CONNECTS = """
import ctypes, os, socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20) as one:
    print(one.recv(9))
os.chmod("work/own", 0o604)
local = socket.socket(socket.AF_UNIX)
local.bind("work/s")
local.listen()
with socket.socket(socket.AF_UNIX) as two:
    two.connect("work/s")
    local.accept()[0].send(b"by a name")
    print(two.recv(9))
print(ctypes.CDLL(None).open(b".env", 0))
"""


@pytest.mark.unprivileged
@pytest.mark.parametrize("network", ["walled", "unwalled"])
def test_the_supervisor_acts_inside(unprivileged: Place, namespaces: None, network: str) -> None:
    """Who has files of its own is in a user namespace, and the supervisor is not: what it does for it works as ever."""
    unprivileged.provider = "landlock"
    unprivileged.environment["PYSANDBOXES_NETWORK"] = network
    unprivileged.file(".env", "s3cret")
    for path in (unprivileged.file("work/own"), unprivileged.folder / "work"):
        os.chown(path, unprivileged.user or -1, -1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        unprivileged.profile(
            f"expose-ro=.\nignore=.env\nexpose-rw=./work\nexpose-rw=./work/s\npython-import=*\npython-api=ALLOW:*\nnet=ALLOW|TCP|127.0.0.1|{port}|OUT\n"
        )
        unprivileged.file("program.py", CONNECTS)
        greeter = threading.Thread(target=lambda: server.accept()[0].send(b"a greeting"))
        greeter.start()
        done = unprivileged.run("program.py", str(port))
        socket.create_connection(("127.0.0.1", port)).close()
        greeter.join()
    assert done.stdout == "b'a greetin'\nb'by a name'\n-1\n", done.stderr
    assert (unprivileged.folder / "work/own").stat().st_mode & 0o777 == 0o604
