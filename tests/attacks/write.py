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
