"""Write by a library that opens files for its caller."""

from __future__ import annotations

from functools import partial

from attack import Attack

write = partial(Attack, "write")

CASES: list[Attack] = [
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
]
