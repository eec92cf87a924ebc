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


def test_a_profile_under_a_writable_exposure_refuses_to_start_without_mounts(place: Place) -> None:
    path = place.profile("expose-rw=.\n")
    place.provider = "subprocess"
    done = place.run("-c", "print('ran')")
    assert done.stdout == "", "hardening 1"
    assert done.returncode == 2
    assert str(path.name) in done.stderr
    assert "expose-rw" in done.stderr


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("line", "wish", "read"),
    [
        ("os-sandbox=landlock\n", "subprocess", False),
        ("os-sandbox=auto\n", "none", False),
        ("", "subprocess", False),
        ("os-sandbox=${OS_SANDBOX:-auto}\n", "", False),
        ("os-sandbox=${OS_SANDBOX:-auto}\n", "landlock", False),
        ("os-sandbox=${OS_SANDBOX:-auto}\n", "subprocess", True),
    ],
)
def test_the_environment_weakens_only_a_profile_that_lets_it(
    place: Place, secret: Path, line: str, wish: str, read: bool
) -> None:
    place.environment["OS_SANDBOX"] = wish
    place.profile(NATIVE + line)
    for _ in range(2):
        done = place.run("-c", READ.format(path=str(secret)))
        assert done.stdout == ("read\n" if read else "Permission denied\n"), done.stderr
        assert ("OS_SANDBOX=subprocess in the environment takes the kernel boundary away" in done.stderr) == read, (
            "at each start"
        )


def test_the_environment_cannot_take_the_sandbox_from_a_program(place: Place) -> None:
    place.environment["OS_SANDBOX"] = "none"
    place.profile(NATIVE + "os-sandbox=${OS_SANDBOX:-auto}\n")
    done = place.run("-c", "print('ran')")
    assert (done.stdout, done.returncode) == ("", 2), done.stderr


@pytest.mark.parametrize("rule", ["", "include ./rules/more\n"])
def test_both_lines_and_the_ways_out_are_named(place: Place, rule: str) -> None:
    place.provider = "subprocess"
    place.file("rules/more", "")
    place.file("sub/x")
    path = place.profile(rule.replace("./rules/more", '"./rules/more"') + ("expose-rw=./rules\n" if rule else "expose-rw=.\n"))
    done = place.run("-c", "print('ran')")
    assert done.stdout == ""
    assert "expose-rw=" in done.stderr and "could rewrite its own rules" in done.stderr
    assert (
        ("rules/more, which" in done.stderr and f"{path}:1 includes" in done.stderr) if rule else f"{path}:1" in done.stderr
    ), done.stderr
    assert "Either expose a folder that does not hold it" in done.stderr and "--pysandboxes-config=/elsewhere/" in done.stderr


def test_a_profile_that_was_known_and_is_gone_is_an_error(place: Place) -> None:
    path = place.profile("python-import=*\n")
    assert place.run("-c", "print('ran')").stdout == "ran\n"
    path.unlink()
    done = place.run("-c", "print('ran')")
    assert done.stdout == "" and done.returncode == 2
    assert "was used on this machine before and is gone" in done.stderr
