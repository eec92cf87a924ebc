"""Read and write by SQL: the C library opens what a statement names, and no event tells."""

from __future__ import annotations

from functools import partial

from attack import Attack

BASE = """
import sqlite3
base = sqlite3.connect(HIDDEN + '/base.db')
base.execute("create table t(a)")
base.execute("insert into t values ('s3cret')")
base.commit()
"""
read = partial(Attack, "read", plant=BASE, kind="native")
write = partial(Attack, "write", kind="native")

CASES: list[Attack] = [
    read(
        "ATTACH",
        """
        import sqlite3
        c = sqlite3.connect(':memory:')
        c.execute('attach ? as x', (HIDDEN + '/base.db',))
        got(c.execute('select a from x.t').fetchall())
    """,
    ),
    read(
        "ATTACH of a URI",
        """
        import sqlite3
        c = sqlite3.connect('file::memory:', uri=True)
        c.execute('attach ? as x', ('file://localhost' + HIDDEN + '/b%61se.db?mode=ro&immutable=1&vfs=unix-none',))
        got(c.execute('select a from x.t').fetchall())
    """,
    ),
    read(
        "ATTACH by executescript in a thread",
        """
        import sqlite3, threading
        def work():
            c = sqlite3.connect(':memory:')
            c.executescript(f"attach '{HIDDEN}/base.db' as x; create table y as select a from x.t")
            got(c.execute('select a from y').fetchall())
        t = threading.Thread(target=work)
        t.start(); t.join()
    """,
        grants="python-api=ALLOW:threads",
    ),
    read(
        "ATTACH of a link",
        """
        import os, sqlite3
        os.symlink(HIDDEN + '/base.db', WORK + '/link')
        c = sqlite3.connect(':memory:')
        c.execute('attach ? as x', (WORK + '/link',))
        got(c.execute('select a from x.t').fetchall())
    """,
        grants="expose-rw=./work",
    ),
    read(
        "ATTACH after a look at the file",
        """
        import os, sqlite3, threading
        c = sqlite3.connect(WORK + '/own.db')
        c.execute('create table t(a)'); c.commit()
        link, over = WORK + '/swapped', []
        def swap():
            while not over:
                for aim in (os.path.realpath(WORK) + '/own.db', HIDDEN + '/base.db'):
                    try: os.symlink(aim, link + '.new'); os.replace(link + '.new', link)
                    except OSError: pass
        t = threading.Thread(target=swap)
        t.start()
        for _ in range(3000):
            c = sqlite3.connect(':memory:')
            try:
                c.execute('attach ? as x', (f'file:{link}?mode=ro',))
                seen = c.execute('select a from x.t').fetchall()
            except sqlite3.Error: continue
            if seen: got(seen); break
        over.append(1); t.join()
    """,
        grants="expose-rw=./work\npython-api=ALLOW:threads",
        kind="race",
        alone=True,
    ),
    read(
        "a connection of a path object",
        """
        import pathlib, _sqlite3
        got(_sqlite3.Connection(pathlib.Path(HIDDEN, 'base.db')).execute('select a from t').fetchall())
    """,
        kind="object",
    ),
    read(
        "a path object that changes its mind",
        """
        import _sqlite3
        class P:
            n = 0
            def __fspath__(self):
                P.n += 1
                return WORK + '/own.db' if P.n % 2 else HIDDEN + '/base.db'
        for _ in range(4):
            try: got(_sqlite3.Connection(P()).execute('select a from t').fetchall())
            except _sqlite3.OperationalError: pass
    """,
        grants="expose-rw=./work",
        kind="object",
    ),
    read(
        "a connection made again",
        """
        import sqlite3
        c = sqlite3.connect(':memory:')
        class P:
            def __fspath__(self): return HIDDEN + '/base.db'
        c.__init__(P())
        got(c.execute('select a from t').fetchall())
    """,
        kind="object",
    ),
    write(
        "VACUUM INTO",
        """
        import os, sqlite3
        c = sqlite3.connect(':memory:')
        c.execute('create table t(a)'); c.commit()
        try: c.execute('vacuum into ?', (HIDDEN + '/made.db',))
        finally:
            if os.path.exists(HIDDEN + '/made.db'): print('ESCAPED')
    """,
    ),
    write(
        "ATTACH creates",
        """
        import os, sqlite3
        c = sqlite3.connect(':memory:')
        try: c.execute('attach ? as x', (HIDDEN + '/attached.db',)); c.execute('create table x.t(a)'); c.commit()
        finally:
            if os.path.exists(HIDDEN + '/attached.db'): print('ESCAPED')
    """,
    ),
    write(
        "what is exposed for reading",
        """
        import sqlite3
        c = sqlite3.connect(WORK + '/base.db')
        c.execute('insert into t values (1)'); c.commit()
        print('ESCAPED')
    """,
        plant="import sqlite3\nc = sqlite3.connect(WORK + '/base.db')\nc.execute('create table t(a)')\nc.commit()",
        grants="expose-ro=./work",
    ),
]
