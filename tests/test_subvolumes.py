"""Trees that a file system makes by requests of its own: they work on a folder that was opened for reading, and Landlock sees
nothing of them. On btrfs, in a file that is mounted for the test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from complete_mode import Place

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("mkfs.btrfs"), reason="only root mounts a file system, and mkfs.btrfs makes it"
)
PROGRAM = """\
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
folder = libc.open(b'mount/shown', os.O_DIRECTORY)
tree = libc.open(b'mount/shown/tree', os.O_DIRECTORY)
def ioctl(fd, number, argument):
    argument = ctypes.create_string_buffer(argument, max(len(argument), 8))
    size = 1 << 30 | len(argument) << 16 if len(argument) in (8, 4096) else 0
    print(libc.ioctl(fd, size | 0x94 << 8 | number, argument), end=' ')
def named(fd, name): return struct.pack('q', fd) + name.ljust(4088, bytes(1))
ioctl(folder, 14, named(0, b'made'))
ioctl(folder, 1, named(tree, b'copied'))
ioctl(tree, 26, struct.pack('Q', 2))
"""
CHANGES = ("made", "copied")


@pytest.fixture
def mounted(place: Place) -> Iterator[Path]:
    image, mount = place.folder / "image", place.folder / "mount"
    with image.open("wb") as file:
        file.truncate(128 << 20)
    mount.mkdir()
    subprocess.run(["mkfs.btrfs", "-q", image], check=True, capture_output=True)
    done = subprocess.run(["mount", "-o", "loop", image, mount], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"it cannot be mounted here: {done.stderr}")
    try:
        (mount / "shown").mkdir()
        (mount / "own").mkdir()
        subprocess.run(["btrfs", "subvolume", "create", mount / "shown/tree"], check=True, capture_output=True)
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)


def test_negative_control(place: Place, mounted: Path) -> None:
    place.file("program.py", PROGRAM)
    done = place.bare("program.py")
    assert done.stdout == "0 0 0 ", done.stderr
    assert all((mounted / "shown" / name).is_dir() for name in CHANGES)


def test_a_folder_that_may_be_read_gets_none(place: Place, mounted: Path) -> None:
    place.provider = "landlock"
    place.profile("python-import=*\npython-api=ALLOW:native\nexpose-ro=./mount/shown\nexpose-rw=./mount/own\n")
    place.file("program.py", PROGRAM)
    done = place.run("program.py")
    assert done.stdout == "-1 -1 -1 ", done.stderr
    assert [path.name for path in (mounted / "shown").iterdir()] == ["tree"]
    (mounted / "shown/tree/page").write_text("it may be written as before")


def test_a_copy_that_shares_blocks_is_made(place: Place, mounted: Path) -> None:
    place.provider = "landlock"
    place.profile("python-import=*\npython-api=ALLOW:native\nexpose-ro=./mount/shown\nexpose-rw=./mount/own\n")
    (mounted / "shown/page").write_text("shown")
    place.file(
        "program.py",
        """\
        import fcntl, os
        with open('mount/shown/page') as source, open('mount/own/page', 'w') as to:
            import ctypes
            print(ctypes.CDLL(None).ioctl(to.fileno(), 0x40049409, source.fileno()))
        """,
    )
    done = place.run("program.py")
    assert done.stdout == "0\n", done.stderr
    assert (mounted / "own/page").read_text() == "shown"
