"""Change, create or remove what no rule lets be written: what is hidden, and what is shown read only."""

from __future__ import annotations

from functools import partial

from attack import Attack

write = partial(Attack, "write")

CASES: list[Attack] = [
    write("open for writing", "open(SECRET, 'w').write('x')", grants="expose-rw=./work\nexpose-ro=./shown"),
    write("open for appending", "open(SHOWN + '/page', 'a').write('x')", grants="expose-rw=./work\nexpose-ro=./shown"),
    write("open for both", "open(SHOWN + '/page', 'r+').write('x')", grants="expose-rw=./work\nexpose-ro=./shown"),
    write("open exclusively", "open(SHOWN + '/new', 'x')", grants="expose-rw=./work\nexpose-ro=./shown"),
    write(
        "bytes path",
        """
        import os
        open(os.fsencode(SHOWN + '/page'), 'wb')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="spelling",
    ),
    write(
        "os.open that truncates without a right to write",
        """
        import os
        os.open(SHOWN + '/page', os.O_RDONLY | os.O_TRUNC)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="spelling",
    ),
    write(
        "os.open that creates without a right to write",
        """
        import os
        os.open(SHOWN + '/new', os.O_RDONLY | os.O_CREAT)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="spelling",
    ),
    write(
        "os.open of the fourth access mode",
        """
        import os
        os.open(SHOWN + '/new', os.O_CREAT | 3)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="spelling",
    ),
    write(
        "O_TMPFILE linked in",
        """
        import os
        d = os.open(SHOWN, os.O_TMPFILE | os.O_RDWR)
        os.link(f'/proc/self/fd/{d}', 'new', src_dir_fd=d, dst_dir_fd=os.open(SHOWN, 0))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="descriptor",
    ),
    write(
        "O_TMPFILE of a writable folder linked into another",
        """
        import os
        d = os.open(WORK, os.O_TMPFILE | os.O_RDWR)
        os.link(f'/proc/self/fd/{d}', 'new', src_dir_fd=d, dst_dir_fd=os.open(SHOWN, 0))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="descriptor",
    ),
    write(
        "posix.open",
        """
        import posix
        posix.open(SHOWN + '/new', posix.O_CREAT | posix.O_WRONLY)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="twin",
    ),
    write(
        "_io.FileIO",
        """
        import _io
        _io.FileIO(SHOWN + '/new', 'w')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="twin",
    ),
    write(
        "_pyio.open",
        """
        import _pyio
        _pyio.open(SHOWN + '/page', 'w').close()
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="twin",
    ),
    write(
        "an opener",
        """
        import os
        open('x', 'w', opener=lambda p, f: os.open(SHOWN + '/page', f)).write('x')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="twin",
    ),
    write(
        "write_text",
        """
        import pathlib
        pathlib.Path(SHOWN, 'page').write_text('x')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="twin",
    ),
    write(
        "touch",
        """
        import pathlib
        pathlib.Path(SHOWN, 'new').touch()
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="twin",
    ),
    write(
        "truncate",
        """
        import os
        os.truncate(SHOWN + '/page', 0)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
    ),
    write(
        "truncate by bytes",
        """
        import os
        os.truncate(os.fsencode(SHOWN + '/page'), 1)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="spelling",
    ),
    write(
        "mkdir",
        """
        import os
        os.mkdir(SHOWN + '/new')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
    ),
    write(
        "mkdir by a dir_fd",
        """
        import os
        os.mkdir('new', dir_fd=os.open(SHOWN, os.O_RDONLY))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="descriptor",
    ),
    write(
        "mkdir behind a dir_fd",
        """
        import os
        os.mkdir(os.path.relpath(HIDDEN, WORK) + '/new', dir_fd=os.open(WORK, os.O_RDONLY))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="descriptor",
    ),
    write(
        "makedirs",
        """
        import os
        os.makedirs(SHOWN + '/a/b')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
    ),
    write(
        "remove",
        """
        import os
        os.remove(SHOWN + '/page')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
    ),
    write(
        "unlink by a dir_fd",
        """
        import os
        os.unlink('page', dir_fd=os.open(SHOWN, os.O_RDONLY))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="descriptor",
    ),
    write(
        "rmdir",
        """
        import os
        os.rmdir(SHOWN + '/empty')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        plant="""
        import os
        os.mkdir(SHOWN + '/empty')
    """,
    ),
    write(
        "removedirs",
        """
        import os
        os.removedirs(SHOWN + '/empty')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        plant="""
        import os
        os.mkdir(SHOWN + '/empty')
    """,
    ),
    write(
        "rename away",
        """
        import os
        os.rename(SHOWN + '/page', SHOWN + '/other')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
    ),
    write(
        "rename into",
        """
        import os
        open(WORK + '/f', 'w').close()
        os.rename(WORK + '/f', SHOWN + '/page')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="link",
    ),
    write(
        "rename out of",
        """
        import os
        os.rename(SHOWN + '/page', WORK + '/page')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="link",
    ),
    write(
        "replace by descriptors",
        """
        import os
        open(WORK + '/f', 'w').close()
        os.replace('f', 'page', src_dir_fd=os.open(WORK, 0), dst_dir_fd=os.open(SHOWN, 0))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="descriptor",
    ),
    write(
        "link into",
        """
        import os
        open(WORK + '/f', 'w').close()
        os.link(WORK + '/f', SHOWN + '/new')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="link",
    ),
    write(
        "link out of, then write",
        """
        import os
        os.link(SHOWN + '/page', WORK + '/h')
        open(WORK + '/h', 'w').write('x')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="link",
    ),
    write(
        "symlink into",
        """
        import os
        os.symlink('x', SHOWN + '/new')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="link",
    ),
    write(
        "symlink by a dir_fd",
        """
        import os
        os.symlink('x', 'new', dir_fd=os.open(SHOWN, 0))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="descriptor",
    ),
    write(
        "write through a link",
        """
        import os
        os.symlink(os.path.abspath(SHOWN + '/page'), WORK + '/l')
        open(WORK + '/l', 'w').write('x')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="link",
    ),
    write(
        "create through a dangling link",
        """
        import os
        os.symlink(os.path.abspath(SHOWN + '/new'), WORK + '/l')
        open(WORK + '/l', 'w').write('x')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="link",
    ),
    write(
        "write through a folder's link",
        """
        import os
        os.symlink(HIDDEN, WORK + '/l')
        open(WORK + '/l/new', 'w').write('x')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="link",
    ),
    write(
        "create behind dot dot of a link",
        """
        import os
        os.makedirs(WORK + '/a')
        os.symlink(HIDDEN, WORK + '/l')
        open(WORK + '/l/../' + os.path.basename(HIDDEN) + '/new', 'w')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="link",
    ),
    write(
        "a link that was there before",
        "open(WORK + '/l', 'w').write('x')",
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="link",
        plant="""
        import os
        os.symlink(SECRET, WORK + '/l')
    """,
    ),
    write(
        "mkfifo",
        """
        import os
        os.mkfifo(SHOWN + '/new')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
    ),
    write(
        "mknod of a file",
        """
        import os
        os.mknod(SHOWN + '/new', 0o100600)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
    ),
    write(
        "mknod by a dir_fd",
        """
        import os
        os.mknod('new', 0o100600, dir_fd=os.open(SHOWN, 0))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="descriptor",
    ),
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
    write(
        "copyfile",
        """
        import shutil
        open(WORK + '/f', 'w').close()
        shutil.copyfile(WORK + '/f', SHOWN + '/page')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "copytree",
        """
        import os, shutil
        os.mkdir(WORK + '/d')
        shutil.copytree(WORK + '/d', SHOWN + '/new')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "rmtree",
        """
        import shutil
        shutil.rmtree(SHOWN)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "move",
        """
        import shutil
        shutil.move(SHOWN + '/page', WORK + '/page')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "make_archive",
        """
        import shutil
        shutil.make_archive(SHOWN + '/a', 'tar', WORK)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "tar names with dots",
        """
        import io, os, tarfile
        b = io.BytesIO()
        with tarfile.open(fileobj=b, mode='w') as t: t.addfile(tarfile.TarInfo(os.path.relpath(SHOWN, WORK) + '/new'))
        b.seek(0)
        tarfile.open(fileobj=b).extractall(WORK, **({'filter': 'fully_trusted'} if hasattr(tarfile, 'fully_trusted_filter') else {}))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "zip into",
        """
        import io, zipfile
        b = io.BytesIO()
        with zipfile.ZipFile(b, 'w') as z: z.writestr('new', 'x')
        zipfile.ZipFile(b).extractall(SHOWN)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "NamedTemporaryFile",
        """
        import tempfile
        tempfile.NamedTemporaryFile(dir=SHOWN, delete=False)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "mkdtemp",
        """
        import tempfile
        tempfile.mkdtemp(dir=SHOWN)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "logging.FileHandler",
        """
        import logging
        logging.FileHandler(SHOWN + '/new')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "RotatingFileHandler",
        """
        import logging.handlers
        h = logging.handlers.RotatingFileHandler(SHOWN + '/page', maxBytes=1, backupCount=1, delay=True)
        h.doRollover()
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "fileinput in place",
        """
        import fileinput
        with fileinput.input(SHOWN + '/page', inplace=True) as f:
            for line in f: pass
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "sqlite",
        """
        import sqlite3
        sqlite3.connect(SHOWN + '/new').execute('create table t(x)')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "sqlite by a URI",
        """
        import os, sqlite3
        sqlite3.connect(f'file:{os.path.abspath(SHOWN)}/new?mode=rwc', uri=True).execute('create table t(x)')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "sqlite backup",
        """
        import sqlite3
        sqlite3.connect(':memory:').backup(sqlite3.connect(SHOWN + '/new'))
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "dbm.dumb",
        """
        import dbm.dumb
        dbm.dumb._Database(SHOWN + '/new', 0o600, 'n').close()
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "ElementTree.write",
        """
        import xml.etree.ElementTree as t
        t.ElementTree(t.Element('a')).write(SHOWN + '/new')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "wave",
        """
        import wave
        wave.open(SHOWN + '/new', 'wb')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "gzip",
        """
        import gzip
        gzip.open(SHOWN + '/new', 'w')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "zipapp",
        """
        import os, zipapp
        os.mkdir(WORK + '/d')
        open(WORK + '/d/__main__.py', 'w').close()
        zipapp.create_archive(WORK + '/d', SHOWN + '/new')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "py_compile",
        """
        import py_compile
        open(WORK + '/m.py', 'w').close()
        py_compile.compile(WORK + '/m.py', cfile=SHOWN + '/new.pyc', doraise=True)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "the cache of an import",
        """
        import importlib, os, sys
        open(WORK + '/m.py', 'w').close()
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.path.abspath(SHOWN)
        from importlib.machinery import SourceFileLoader
        SourceFileLoader('m', os.path.abspath(WORK + '/m.py')).get_code('m')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
        alone=True,
    ),
    write(
        "set_data of a loader",
        """
        from importlib.machinery import SourceFileLoader
        SourceFileLoader('m', 'x').set_data(SHOWN + '/new', b'x')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "the profiler's statistics",
        """
        import cProfile
        p = cProfile.Profile()
        p.create_stats()
        p.dump_stats(SHOWN + '/new')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "a snapshot of tracemalloc",
        """
        import tracemalloc
        tracemalloc.start()
        try: tracemalloc.take_snapshot().dump(SHOWN + '/new')
        finally: tracemalloc.stop()
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="library",
    ),
    write(
        "the key log of TLS",
        """
        import ssl
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).keylog_filename = SHOWN + '/new'
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="native",
    ),
    write(
        "the history of readline",
        """
        import importlib.util
        if not importlib.util.find_spec('readline'): absent('readline')
        import readline
        readline.write_history_file(SHOWN + '/new')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="native",
    ),
    write(
        "the history of readline, its default",
        """
        import importlib.util, os
        if not importlib.util.find_spec('readline'): absent('readline')
        import readline
        os.environ['HOME'] = os.path.abspath(SHOWN)
        readline.add_history('x')
        readline.write_history_file()
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="native",
        layer="os",
        alone=True,
    ),
    write(
        "the history of readline, appended to its default",
        """
        import importlib.util, os
        if not importlib.util.find_spec('readline'): absent('readline')
        import readline
        os.environ['HOME'] = os.path.abspath(HIDDEN)
        readline.add_history('x')
        readline.append_history_file(1)
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="native",
        layer="os",
        alone=True,
        plant="open(HIDDEN + '/.history', 'w').close()",
    ),
    write(
        "a local socket's path",
        """
        import socket
        socket.socket(socket.AF_UNIX).bind(SHOWN + '/new')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
    ),
    write(
        "a local socket through a folder's link",
        """
        import os, socket
        os.symlink(HIDDEN, WORK + '/l')
        socket.socket(socket.AF_UNIX).bind(WORK + '/l/new')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="link",
    ),
    write(
        "a file mapped to be written",
        """
        import mmap, os
        d = os.open(SHOWN + '/page', os.O_RDWR)
        mmap.mmap(d, 5)[0:1] = b'x'
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="descriptor",
    ),
    write(
        "a descriptor opened again to write",
        """
        import os
        d = os.open(SHOWN + '/page', os.O_RDONLY)
        open(f'/proc/self/fd/{d}', 'w').write('x')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="descriptor",
    ),
    write(
        "a descriptor opened again through dev",
        """
        import os
        d = os.open(SHOWN + '/page', os.O_RDONLY)
        open(f'/dev/fd/{d}', 'w').write('x')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="descriptor",
    ),
    write(
        "dot dot in a path",
        """
        import os
        open(WORK + '/../../' + SHOWN + '/new', 'w')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="spelling",
    ),
    write(
        "a str subclass",
        """
        class S(str):
            def __fspath__(self): return WORK + '/x'
        open(S(SHOWN + '/new'), 'w').close()
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="object",
    ),
    write(
        "a PathLike that changes its mind",
        """
        import os
        class P:
            n = 0
            def __fspath__(self):
                P.n += 1
                return WORK + '/x' if P.n % 2 else SHOWN + '/new'
        for _ in range(4): open(P(), 'w').close()
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="object",
    ),
    write(
        "mkdir of a PathLike that changes its mind",
        """
        import os
        class P:
            n = 0
            def __fspath__(self):
                P.n += 1
                return WORK + f'/d{P.n}' if P.n % 2 else SHOWN + '/new'
        for _ in range(4): os.mkdir(P())
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="object",
    ),
    write(
        "chdir, then by name",
        """
        import os
        os.chdir(SHOWN)
        open('new', 'w')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="state",
        alone=True,
    ),
    write(
        "fchdir, then by name",
        """
        import os
        os.fchdir(os.open(SHOWN, os.O_RDONLY))
        open('new', 'w')
    """,
        grants="expose-rw=./work\nexpose-ro=./shown",
        kind="state",
        alone=True,
    ),
    write(
        "a folder's link swapped for a folder",
        """
        import os, threading
        os.mkdir(WORK + '/d')
        def swap():
            for n in range(4000):
                os.symlink(HIDDEN, WORK + '/t') if n % 2 else os.mkdir(WORK + '/t')
                os.rename(WORK + '/d', WORK + f'/o{n}')
                os.rename(WORK + '/t', WORK + '/d')
        t = threading.Thread(target=swap)
        t.start()
        while t.is_alive():
            try: open(WORK + '/d/new', 'w').close()
            except OSError: pass
        t.join()
    """,
        grants="expose-rw=./work\npython-api=ALLOW:threads",
        kind="race",
        alone=True,
        layer="os",
    ),
]
