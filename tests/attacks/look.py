"""Learn of a file that no rule exposes: that it is there, its name, its size, its times."""

from __future__ import annotations

from functools import partial

from attack import Attack

look = partial(Attack, "read")

CASES: list[Attack] = [
    look(
        "posix.access",
        """
        import posix
        print('ESCAPED' if posix.access(SECRET, 0) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "posix.lstat",
        """
        import posix
        posix.lstat(SECRET)
        print('ESCAPED')
    """,
        kind="metadata",
    ),
    look(
        "genericpath",
        """
        import genericpath
        print('ESCAPED' if genericpath.getsize(SECRET) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "posix.listdir",
        """
        import posix
        print('ESCAPED' if 'key' in posix.listdir(HIDDEN) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "posix.scandir",
        """
        import posix
        print('ESCAPED' if [e for e in posix.scandir(HIDDEN) if e.name == 'key'] else 'no')
    """,
        kind="metadata",
    ),
    look(
        "listdir of no descriptor",
        """
        import os
        print('ESCAPED' if 'hidden' in os.listdir(-1) else 'no')
    """,
        kind="descriptor",
    ),
    look(
        "scandir of no descriptor",
        """
        import os
        print('ESCAPED' if 'hidden' in [e.name for e in os.scandir(-1)] else 'no')
    """,
        kind="descriptor",
    ),
    look(
        "access",
        """
        import os
        print('ESCAPED' if os.access(SECRET, os.F_OK) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "access of effective ids",
        """
        import os
        print('ESCAPED' if os.access(SECRET, os.R_OK, effective_ids=True) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "lexists",
        """
        import os
        print('ESCAPED' if os.path.lexists(SECRET) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "isdir",
        """
        import os
        print('ESCAPED' if os.path.isdir(HIDDEN) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "samefile",
        """
        import os
        print('ESCAPED' if os.path.samefile(SECRET, SECRET) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "statvfs",
        """
        import os
        os.statvfs(HIDDEN)
        print('ESCAPED')
    """,
        kind="metadata",
    ),
    look(
        "pathconf",
        """
        import os
        os.pathconf(HIDDEN, 'PC_NAME_MAX')
        print('ESCAPED')
    """,
        kind="metadata",
    ),
    look(
        "getxattr",
        """
        import os, errno
        try: os.getxattr(SECRET, 'user.x')
        except OSError as e: print('ESCAPED' if e.errno in (errno.ENODATA, errno.ENOTSUP) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "listxattr",
        """
        import os
        os.listxattr(SECRET)
        print('ESCAPED')
    """,
        kind="metadata",
    ),
    look(
        "readlink",
        """
        import os
        got(os.readlink(HIDDEN + '/link'))
    """,
        kind="metadata",
        plant="""
        import os
        os.symlink('s3cret-target', HIDDEN + '/link')
    """,
    ),
    look(
        "readlink of bytes",
        """
        import os
        got(os.readlink(os.fsencode(HIDDEN + '/link')))
    """,
        kind="metadata",
        plant="""
        import os
        os.symlink('s3cret-target', HIDDEN + '/link')
    """,
    ),
    look(
        "realpath",
        """
        import os
        got(os.path.realpath(HIDDEN + '/link'))
    """,
        kind="metadata",
        plant="""
        import os
        os.symlink('s3cret-target', HIDDEN + '/link')
    """,
    ),
    look(
        "realpath strict",
        """
        import os
        os.path.realpath(SECRET, strict=True)
        print('ESCAPED')
    """,
        kind="metadata",
    ),
    look(
        "Path.exists",
        """
        import pathlib
        print('ESCAPED' if pathlib.Path(SECRET).exists() else 'no')
    """,
        kind="metadata",
    ),
    look(
        "Path.owner",
        """
        import pathlib
        pathlib.Path(SECRET).owner()
        print('ESCAPED')
    """,
        kind="metadata",
    ),
    look(
        "Path.resolve",
        """
        import pathlib
        pathlib.Path(SECRET).resolve(strict=True)
        print('ESCAPED')
    """,
        kind="metadata",
    ),
    look(
        "errno of mkdir",
        """
        import os, errno
        try: os.mkdir(HIDDEN)
        except OSError as e: print('ESCAPED' if e.errno == errno.EEXIST else 'no')
    """,
        kind="metadata",
    ),
    look(
        "errno of an exclusive open",
        """
        import os, errno
        try: os.open(SECRET, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except OSError as e: print('ESCAPED' if e.errno == errno.EEXIST else 'no')
    """,
        kind="metadata",
    ),
    look(
        "errno of rmdir",
        """
        import os, errno
        try: os.rmdir(HIDDEN)
        except OSError as e: print('ESCAPED' if e.errno == errno.ENOTEMPTY else 'no')
    """,
        kind="metadata",
    ),
    look(
        "errno beneath a file",
        """
        import os, errno
        try: os.stat(SECRET + '/x')
        except OSError as e: print('ESCAPED' if e.errno == errno.ENOTDIR else 'no')
    """,
        kind="metadata",
    ),
    look(
        "errno of a rename onto it",
        """
        import os, errno
        open(WORK + '/f', 'w').close()
        try: os.rename(WORK + '/f', HIDDEN)
        except OSError as e: print('ESCAPED' if e.errno == errno.EISDIR else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work",
    ),
    look(
        "disk_usage",
        """
        import shutil
        shutil.disk_usage(HIDDEN)
        print('ESCAPED')
    """,
        kind="metadata",
    ),
    look(
        "dbm.whichdb",
        """
        import dbm
        print('ESCAPED' if dbm.whichdb(SECRET) == '' else 'no')
    """,
        kind="metadata",
    ),
    look(
        "fwalk",
        """
        import os
        print('ESCAPED' if any('key' in f for _, _, f, _ in os.fwalk(HIDDEN)) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "fwalk by dir_fd",
        """
        import os
        d = os.open(WORK, os.O_RDONLY)
        print('ESCAPED' if any('key' in f for _, _, f, _ in os.fwalk(os.path.relpath(HIDDEN, WORK), dir_fd=d)) else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work",
    ),
    look(
        "Path.iterdir",
        """
        import pathlib
        print('ESCAPED' if list(pathlib.Path(HIDDEN).iterdir()) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "Path.rglob",
        """
        import pathlib
        print('ESCAPED' if list(pathlib.Path(HIDDEN).rglob('k*')) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "Path.glob of the name itself",
        """
        import pathlib
        print('ESCAPED' if list(pathlib.Path(HIDDEN).glob('key')) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "Path.walk",
        """
        import pathlib
        print('ESCAPED' if list(pathlib.Path(HIDDEN).walk()) else 'no')
    """,
        kind="metadata",
        since=(3, 12),
    ),
    look(
        "glob of the name itself",
        """
        import glob
        print('ESCAPED' if glob.glob(SECRET) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "glob under root_dir",
        """
        import glob
        print('ESCAPED' if glob.glob('*', root_dir=HIDDEN) else 'no')
    """,
        kind="metadata",
    ),
    look(
        "glob through a link",
        """
        import glob, os
        os.symlink(HIDDEN, WORK + '/l')
        print('ESCAPED' if glob.glob(WORK + '/l/*') else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work",
    ),
    look(
        "glob for a character of the name",
        """
        import glob, os
        print('ESCAPED' if glob.glob(os.path.dirname(HIDDEN) + '/*/k?y') else 'no')
    """,
        kind="metadata",
    ),
]
