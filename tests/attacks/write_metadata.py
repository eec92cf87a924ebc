"""Change mode, owner, times and attributes."""

from __future__ import annotations

from functools import partial

from attack import Attack

write = partial(Attack, "write")

CASES: list[Attack] = [
    write(
        "chmod",
        """
        import os
        os.chmod(SHOWN + '/page', 0o777)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "chmod of what is hidden",
        """
        import os
        os.chmod(SECRET, 0o777)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "chmod by a dir_fd",
        """
        import os
        os.chmod('page', 0o777, dir_fd=os.open(SHOWN, 0))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "chmod of a folder",
        """
        import os
        os.chmod(SHOWN, 0o700)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "Path.chmod",
        """
        import pathlib
        pathlib.Path(SHOWN, 'page').chmod(0o777)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "fchmod of what may be read",
        """
        import os
        os.fchmod(os.open(SHOWN + '/page', os.O_RDONLY), 0o777)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "chmod of a descriptor that may be read",
        """
        import os
        os.chmod(os.open(SHOWN + '/page', os.O_RDONLY), 0o777)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "fchmod of a folder that may be read",
        """
        import os
        os.fchmod(os.open(SHOWN, os.O_RDONLY), 0o700)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "chmod of a descriptor's link",
        """
        import os
        d = os.open(SHOWN + '/page', os.O_RDONLY)
        os.chmod(f'/proc/self/fd/{d}', 0o777)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "chown",
        """
        import os
        os.chown(SHOWN + '/page', os.getuid(), os.getgid())
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "lchown",
        """
        import os
        os.lchown(SHOWN + '/page', os.getuid(), os.getgid())
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "fchown of what may be read",
        """
        import os
        os.fchown(os.open(SHOWN + '/page', os.O_RDONLY), os.getuid(), os.getgid())
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "chown by a dir_fd",
        """
        import os
        os.chown('page', os.getuid(), os.getgid(), dir_fd=os.open(SHOWN, 0), follow_symlinks=False)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "utime",
        """
        import os
        os.utime(SHOWN + '/page', (1, 1))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "utime of now",
        """
        import os
        os.utime(SHOWN + '/page')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "utime of a descriptor that may be read",
        """
        import os
        os.utime(os.open(SHOWN + '/page', os.O_RDONLY), (1, 1))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "utime by a dir_fd",
        """
        import os
        os.utime('page', (1, 1), dir_fd=os.open(SHOWN, 0))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "utime through a link",
        """
        import os
        os.symlink(SECRET, WORK + '/l')
        os.utime(WORK + '/l', (1, 1))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "setxattr",
        """
        import os
        os.setxattr(SHOWN + '/page', 'user.x', b'x')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "setxattr of a descriptor that may be read",
        """
        import os
        os.setxattr(os.open(SHOWN + '/page', os.O_RDONLY), 'user.x', b'x')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "removexattr",
        """
        import os
        os.removexattr(SHOWN + '/page', 'user.x')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
        plant="""
        import os
        os.setxattr(SHOWN + '/page', 'user.x', b'x')
    """,
    ),
    write(
        "copystat",
        """
        import shutil
        open(WORK + '/f', 'w').close()
        shutil.copystat(WORK + '/f', SHOWN + '/page')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "copymode",
        """
        import os, shutil
        open(WORK + '/f', 'w').close()
        os.chmod(WORK + '/f', 0o600)
        shutil.copymode(WORK + '/f', SHOWN + '/page')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
    ),
    write(
        "flags of a file by ioctl",
        """
        import fcntl, os, struct
        d = os.open(SHOWN + '/page', os.O_RDONLY)
        flags = struct.unpack('l', fcntl.ioctl(d, 0x80086601, bytes(8)))[0]
        fcntl.ioctl(d, 0x40086602, struct.pack('l', flags ^ 0x40))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="metadata",
        plant="""
        import fcntl, os
        try: fcntl.ioctl(os.open(SHOWN + '/page', os.O_RDONLY), 0x80086601, bytes(8))
        except OSError: os.remove(SHOWN + '/page')
    """,
    ),
]
