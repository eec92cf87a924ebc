"""See names that are hidden, and what links lead to."""

from __future__ import annotations

from functools import partial

from attack import Attack

look = partial(Attack, "read")

CASES: list[Attack] = [
    look(
        "scandir through a link",
        """
        import os
        os.symlink(HIDDEN, WORK + '/l')
        print('ESCAPED' if list(os.scandir(WORK + '/l')) else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work",
    ),
    look(
        "what a link leads to",
        """
        import os
        os.symlink(HIDDEN, WORK + '/l')
        print('ESCAPED' if [e for e in os.scandir(WORK) if e.is_dir()] else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work",
    ),
    look(
        "what a link leads to, relative to a descriptor",
        """
        import os
        os.symlink(HIDDEN, WORK + '/l')
        d = os.open(WORK, os.O_RDONLY)
        print('ESCAPED' if [e for e in os.scandir(d) if e.is_dir()] else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work",
    ),
    look(
        "samefile of a link",
        """
        import os
        os.symlink(SECRET, WORK + '/l')
        print('ESCAPED' if os.path.samefile(WORK + '/l', WORK + '/l') else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work",
    ),
    look(
        "a name that was hidden, listdir",
        """
        import os
        print('ESCAPED' if 'a.hid' in os.listdir(WORK) else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work\nignore=*.hid\nignore-best-effort=true",
        plant="""
        open(WORK + '/a.hid', 'w').write('s3cret')
        open(WORK + '/b.txt', 'w').write('plain')
    """,
    ),
    look(
        "a name that was hidden, listdir of a descriptor",
        """
        import os
        print('ESCAPED' if 'a.hid' in os.listdir(os.open(WORK, os.O_RDONLY)) else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work\nignore=*.hid\nignore-best-effort=true",
        plant="""
        open(WORK + '/a.hid', 'w').write('s3cret')
        open(WORK + '/b.txt', 'w').write('plain')
    """,
    ),
    look(
        "a name that was hidden, scandir",
        """
        import os
        print('ESCAPED' if 'a.hid' in [e.name for e in os.scandir(WORK)] else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work\nignore=*.hid\nignore-best-effort=true",
        plant="""
        open(WORK + '/a.hid', 'w').write('s3cret')
        open(WORK + '/b.txt', 'w').write('plain')
    """,
    ),
    look(
        "a name that was hidden, walk",
        """
        import os
        print('ESCAPED' if 'a.hid' in [f for _, _, fs in os.walk(WORK) for f in fs] else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work\nignore=*.hid\nignore-best-effort=true",
        plant="""
        open(WORK + '/a.hid', 'w').write('s3cret')
        open(WORK + '/b.txt', 'w').write('plain')
    """,
    ),
    look(
        "a name that was hidden, glob",
        """
        import glob
        print('ESCAPED' if glob.glob(WORK + '/*.hid') else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work\nignore=*.hid\nignore-best-effort=true",
        plant="""
        open(WORK + '/a.hid', 'w').write('s3cret')
        open(WORK + '/b.txt', 'w').write('plain')
    """,
    ),
    look(
        "a name that was hidden, iterdir",
        """
        import pathlib
        print('ESCAPED' if 'a.hid' in [p.name for p in pathlib.Path(WORK).iterdir()] else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work\nignore=*.hid\nignore-best-effort=true",
        plant="""
        open(WORK + '/a.hid', 'w').write('s3cret')
        open(WORK + '/b.txt', 'w').write('plain')
    """,
    ),
    look(
        "a name that was hidden, stat",
        """
        import os
        print('ESCAPED' if os.path.exists(WORK + '/a.hid') else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work\nignore=*.hid\nignore-best-effort=true",
        plant="""
        open(WORK + '/a.hid', 'w').write('s3cret')
        open(WORK + '/b.txt', 'w').write('plain')
    """,
    ),
    look(
        "a name that was hidden, DirEntry.stat",
        """
        import os
        print('ESCAPED' if [e for e in os.scandir(WORK) if e.name == 'a.hid' and e.stat().st_size] else 'no')
    """,
        kind="metadata",
        grants="expose-rw=./work\nignore=*.hid\nignore-best-effort=true",
        plant="""
        open(WORK + '/a.hid', 'w').write('s3cret')
        open(WORK + '/b.txt', 'w').write('plain')
    """,
    ),
]
