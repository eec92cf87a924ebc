"""Read a file that no rule exposes, or learn of it."""

from __future__ import annotations

from functools import partial

from attack import Attack

read = partial(Attack, "read")

CASES: list[Attack] = [
    read(
        "open",
        """
        data = open(SECRET).read()
        got(data)
    """,
    ),
    read(
        "bytes path",
        """
        import os
        got(open(os.fsencode(SECRET), 'rb').read())
    """,
    ),
    read(
        "os.open",
        """
        import os
        got(os.read(os.open(SECRET, os.O_RDONLY), 99))
    """,
    ),
    read(
        "pathlib",
        """
        import pathlib
        got(pathlib.Path(SECRET).read_text())
    """,
    ),
    read(
        "io.FileIO",
        """
        import io
        got(io.FileIO(SECRET).read())
    """,
    ),
    read(
        "_io.open_code",
        """
        import io
        got(io.open_code(SECRET).read())
    """,
    ),
    read(
        "opener",
        """
        import os
        got(open('x', opener=lambda p, f: os.open(SECRET, f)).read())
    """,
    ),
    read(
        "shutil",
        """
        import shutil
        shutil.copy(SECRET, WORK + '/copy')
        got(open(WORK + '/copy').read())
    """,
        grants="expose-rw=./work",
    ),
    read(
        "fspath that changes its mind",
        """
        class P:
            n = 0
            def __fspath__(self):
                P.n += 1
                return WORK + '/ok' if P.n == 1 else SECRET
        open(WORK + '/ok', 'w').write('x')
        import _io
        for _ in range(3):
            if b's3cret' in _io.FileIO(P()).read(): print('ESCAPED')
    """,
        grants="expose-rw=./work",
    ),
    read(
        "str subclass",
        """
        class S(str):
            def __str__(self): return WORK + '/ok'
            def __fspath__(self): return WORK + '/ok'
        got(open(S(SECRET)).read())
    """,
        grants="expose-rw=./work",
    ),
    read(
        "linecache",
        """
        import linecache
        got(''.join(linecache.getlines(SECRET)))
    """,
    ),
    read(
        "fileinput",
        """
        import fileinput
        got(''.join(fileinput.input([SECRET])))
    """,
    ),
    read(
        "stat",
        """
        import os
        os.stat(SECRET)
        print('ESCAPED')
    """,
    ),
    read(
        "exists",
        """
        import os
        print('ESCAPED' if os.path.exists(SECRET) else 'no')
    """,
    ),
    read(
        "posix twin",
        """
        import posix
        posix.stat(SECRET)
        print('ESCAPED')
    """,
    ),
    read(
        "listdir",
        """
        import os
        print('ESCAPED' if 'key' in os.listdir(HIDDEN) else 'no')
    """,
    ),
    read(
        "scandir",
        """
        import os
        print('ESCAPED' if 'key' in [e.name for e in os.scandir(HIDDEN)] else 'no')
    """,
    ),
    read(
        "walk",
        """
        import os
        print('ESCAPED' if any('key' in f for _, _, f in os.walk(HIDDEN)) else 'no')
    """,
    ),
    read(
        "glob",
        """
        import glob, os
        print('ESCAPED' if glob.glob(HIDDEN + '/*') else 'no')
    """,
    ),
    read(
        "sqlite",
        """
        import sqlite3
        sqlite3.connect('file:' + SECRET + '?mode=ro', uri=True)
        print('ESCAPED')
    """,
    ),
    read(
        "dir_fd beside an exposed folder",
        """
        import os
        d = os.open(WORK, os.O_RDONLY)
        rel = os.path.relpath(SECRET, WORK)
        deep = WORK + '/' + 'x/' * (rel.count('..') + 3)
        os.makedirs(deep); os.chdir(deep)
        got(os.read(os.open(rel, 0, dir_fd=d), 99))
    """,
        grants="expose-rw=./work",
        alone=True,
    ),
    read(
        "dir_fd by __index__",
        """
        import os
        class I:
            def __init__(self, n): self.n = n
            def __index__(self): return self.n
        d = os.open(WORK, os.O_RDONLY)
        rel = os.path.relpath(SECRET, WORK)
        deep = WORK + '/' + 'x/' * (rel.count('..') + 3)
        os.makedirs(deep); os.chdir(deep)
        os.stat(rel, dir_fd=I(d))
        print('ESCAPED')
    """,
        grants="expose-rw=./work",
        alone=True,
    ),
    read(
        "lstat with a dot",
        """
        import os
        os.symlink(HIDDEN, WORK + '/link')
        os.lstat(WORK + '/link/.')
        print('ESCAPED')
    """,
        grants="expose-rw=./work",
    ),
    read(
        "stat by a link",
        """
        import os
        os.symlink(SECRET, WORK + '/link')
        os.stat(WORK + '/link')
        print('ESCAPED')
    """,
        grants="expose-rw=./work",
    ),
    read(
        "chmod by a link",
        """
        import os
        os.symlink(SECRET, WORK + '/link')
        os.chmod(WORK + '/link', 0o644)
        print('ESCAPED')
    """,
        grants="expose-rw=./work",
    ),
    read(
        "bytearray path",
        """
        import os, warnings
        warnings.simplefilter('ignore')
        os.stat(bytearray(os.fsencode(SECRET)))
        print('ESCAPED')
    """,
        before=(3, 12),
    ),
    read(
        "DirEntry",
        """
        import os
        os.symlink(SECRET, WORK + '/link')
        for e in os.scandir(WORK):
            if e.is_file() and e.stat().st_size: print('ESCAPED')
    """,
        grants="expose-rw=./work",
    ),
    read(
        "sqlite URI",
        """
        import sqlite3
        sqlite3.connect('file://localhost' + SECRET[:-1] + '%79?x=mode=memory&mode=ro', uri=True)
        print('ESCAPED')
    """,
    ),
    read(
        "ssl",
        """
        import ssl
        try: ssl.create_default_context().load_cert_chain(SECRET)
        except ssl.SSLError: print('ESCAPED')
    """,
    ),
    read(
        "decoder of certificates",
        """
        import _ssl
        try: _ssl._test_decode_cert(SECRET)
        except _ssl.SSLError as e: print('ESCAPED' if 'decoding' in str(e) else 'no')
    """,
        kind="native",
    ),
    read(
        "io.open",
        """
        import io
        got(io.open(SECRET).read())
    """,
        kind="twin",
    ),
    read(
        "_io.open",
        """
        import _io
        got(_io.open(SECRET).read())
    """,
        kind="twin",
    ),
    read(
        "_io.FileIO",
        """
        import _io
        got(_io.FileIO(SECRET).readall())
    """,
        kind="twin",
    ),
    read(
        "_pyio.open",
        """
        import _pyio
        got(_pyio.open(SECRET).read())
    """,
        kind="twin",
    ),
    read(
        "_pyio.FileIO",
        """
        import _pyio
        got(_pyio.FileIO(SECRET).readall())
    """,
        kind="twin",
    ),
    read(
        "posix.open",
        """
        import posix
        got(posix.read(posix.open(SECRET, posix.O_RDONLY), 99))
    """,
        kind="twin",
    ),
    read(
        "FileIO initialised again",
        """
        import io
        f = io.FileIO(WORK + '/x', 'w')
        f.__init__(SECRET)
        got(f.read())
    """,
        kind="twin",
        grants="expose-rw=./work",
    ),
    read(
        "os.fdopen",
        """
        import os
        got(os.fdopen(os.open(SECRET, os.O_RDONLY)).read())
    """,
        kind="twin",
    ),
    read(
        "mmap",
        """
        import mmap, os
        d = os.open(SECRET, os.O_RDONLY)
        got(mmap.mmap(d, 0, prot=mmap.PROT_READ)[:])
    """,
        kind="twin",
    ),
    read(
        "sendfile",
        """
        import os
        source = os.open(SECRET, os.O_RDONLY)
        r, w = os.pipe()
        os.sendfile(w, source, 0, 99)
        got(os.read(r, 99))
    """,
        kind="twin",
    ),
    read(
        "bytes with a NUL",
        """
        try: data = open(SECRET + chr(0)).read()
        except ValueError: data = open(SECRET).read()
        got(data)
    """,
        kind="spelling",
    ),
    read("double slash", "got(open('/' + SECRET).read())", kind="spelling"),
    read(
        "dots inside",
        """
        import os
        got(open(SECRET.replace('/key', '/./././key')).read())
    """,
        kind="spelling",
    ),
]
