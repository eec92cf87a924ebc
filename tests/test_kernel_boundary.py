"""What the Python layer cannot hold: native code. Under landlock the kernel does; under subprocess nothing does, and the
start says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from complete_mode import Place

NATIVE = "python-api=ALLOW:native\npython-import=*\n"
READ = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.open({path!r}.encode(), 0)
print('read' if fd >= 0 else os.strerror(ctypes.get_errno()))
"""


@pytest.fixture
def secret(place: Place) -> Path:
    path = place.file("secret/key", "s3cret")
    path.chmod(0o644)
    return path


@pytest.mark.smoke
def test_landlock_holds_a_read_by_libc(place: Place, secret: Path) -> None:
    place.provider = "landlock"
    place.profile(NATIVE)
    done = place.run("-c", READ.format(path=str(secret)))
    assert done.stdout == "Permission denied\n", done.stderr


@pytest.mark.smoke
def test_subprocess_does_not_and_says_so(place: Place, secret: Path) -> None:
    place.provider = "subprocess"
    place.profile(NATIVE)
    done = place.run("-c", READ.format(path=str(secret)))
    assert done.stdout == "read\n", done.stderr
    assert "no kernel boundary" in done.stderr or "no boundary" in done.stderr, done.stderr


def test_what_is_exposed_is_read_by_libc_too(place: Place, secret: Path) -> None:
    place.provider = "landlock"
    place.profile(NATIVE + "expose-ro=./secret\n")
    assert place.run("-c", READ.format(path=str(secret))).stdout == "read\n"


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("exec", "libc.execv(b'/bin/true', (ctypes.c_char_p * 2)(b'true', None))"),
        ("fork", "libc.fork()"),
        ("inet socket", "libc.socket(2, 1, 0)"),
        ("raw socket", "libc.socket(2, 3, 1)"),
        ("packet socket", "libc.socket(17, 3, 0)"),
        ("vsock", "libc.socket(40, 1, 0)"),
        ("ptrace", "libc.ptrace(16, 1, 0, 0)"),
        ("unshare", "libc.unshare(0x10000000)"),
        ("mount", "libc.mount(b'none', b'/', b'tmpfs', 0, None)"),
        ("io_uring", "libc.syscall(425, 1, ctypes.byref(ctypes.create_string_buffer(120)))"),
        ("bpf", "libc.syscall(321, 0, 0, 0)"),
        ("keyctl", "libc.syscall(250, 0, 0)"),
        ("terminal injection", "libc.ioctl(0, 0x5412, ctypes.byref(ctypes.c_char(b'x')))"),
    ],
)
def test_landlock_refuses_to_native_code(place: Place, what: str, code: str) -> None:
    place.provider = "landlock"
    place.profile(NATIVE)
    libc = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)"
    done = place.run("-c", f"{libc}\nrc = {code}\nprint(rc, ctypes.get_errno() in (1, 13, 38, 97))")
    assert done.stdout == "-1 True\n", f"{what}: {done.stdout}{done.stderr}"


@pytest.mark.unprivileged
def test_landlock_holds_without_privilege(unprivileged: Place) -> None:
    secret = unprivileged.file("secret/key", "s3cret")
    secret.chmod(0o644)
    unprivileged.provider = "landlock"
    unprivileged.profile(NATIVE)
    done = unprivileged.run("-c", READ.format(path=str(secret)))
    assert done.stdout == "Permission denied\n", done.stderr
    unprivileged.provider = "subprocess"
    done = unprivileged.run("-c", READ.format(path=str(secret)))
    assert done.stdout == "read\n", done.stderr


def test_a_profile_under_a_writable_exposure_refuses_to_start(place: Place) -> None:
    path = place.profile("expose-rw=.\n")
    place.provider = "landlock"
    done = place.run("-c", "print('ran')")
    assert done.stdout == "", "hardening 1"
    assert done.returncode == 2
    assert str(path.name) in done.stderr
    assert "expose-rw" in done.stderr
