"""Read a file by a link that leads to it."""

from __future__ import annotations

from functools import partial

from attack import Attack

read = partial(Attack, "read")

CASES: list[Attack] = [
    read(
        "symlink",
        """
        import os
        os.symlink(SECRET, WORK + '/link')
        got(open(WORK + '/link').read())
    """,
        grants="expose-rw=./work",
    ),
    read(
        "hard link",
        """
        import os
        os.link(SECRET, WORK + '/hard')
        got(open(WORK + '/hard').read())
    """,
        grants="expose-rw=./work",
    ),
    read(
        "rename out",
        """
        import os
        os.rename(SECRET, WORK + '/moved')
        data = open(WORK + '/moved').read()
        os.rename(WORK + '/moved', SECRET)
        got(data)
    """,
        grants="expose-rw=./work",
    ),
    read(
        "hard link to where a link leads",
        """
        import os
        os.symlink(SECRET, WORK + '/link')
        d = os.open(WORK, os.O_RDONLY)
        os.link('link', 'hard', src_dir_fd=d, dst_dir_fd=d)
        got(open(WORK + '/hard').read())
    """,
        grants="expose-rw=./work",
    ),
    read(
        "no-follow with a slash",
        """
        import os
        os.symlink(HIDDEN, WORK + '/link')
        d = os.open(WORK + '/link/', os.O_RDONLY | os.O_NOFOLLOW)
        print('ESCAPED' if 'key' in os.listdir(d) else 'no')
    """,
        grants="expose-rw=./work",
    ),
    read(
        "lstat with a slash",
        """
        import os
        os.symlink(HIDDEN, WORK + '/link')
        os.lstat(WORK + '/link/')
        print('ESCAPED')
    """,
        grants="expose-rw=./work",
    ),
    read(
        "a link that was there before",
        "got(open(WORK + '/l').read())",
        kind="link",
        grants="expose-rw=./work",
        plant="""
        import os
        os.symlink(SECRET, WORK + '/l')
    """,
    ),
    read(
        "a folder's link that was there before",
        "got(open(WORK + '/l/key').read())",
        kind="link",
        grants="expose-rw=./work",
        plant="""
        import os
        os.symlink(HIDDEN, WORK + '/l')
    """,
    ),
    read(
        "a link to a link",
        """
        import os
        os.symlink(SECRET, WORK + '/a')
        os.symlink('a', WORK + '/b')
        got(open(WORK + '/b').read())
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    read(
        "a link with dots",
        """
        import os
        os.symlink(os.path.relpath(SECRET, WORK), WORK + '/a')
        got(open(WORK + '/a').read())
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    read(
        "a link to proc self root",
        """
        import os
        os.symlink('/proc/self/root' + SECRET, WORK + '/a')
        got(open(WORK + '/a').read())
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    read(
        "a link to a descriptor",
        """
        import os
        d = os.open(SECRET, os.O_PATH)
        os.symlink(f'/proc/self/fd/{d}', WORK + '/a')
        got(open(WORK + '/a').read())
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    read(
        "a link that is made by pathlib",
        """
        import pathlib
        l = pathlib.Path(WORK, 'l')
        l.symlink_to(SECRET)
        got(l.read_text())
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    read(
        "a hard link by pathlib",
        """
        import pathlib
        l = pathlib.Path(WORK, 'l')
        l.hardlink_to(SECRET)
        got(l.read_text())
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    read(
        "a hard link to a link of its own",
        """
        import os
        os.symlink(SECRET, WORK + '/l')
        os.link(WORK + '/l', WORK + '/h', follow_symlinks=True)
        got(open(WORK + '/h').read())
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    read(
        "the folder renamed into reach",
        """
        import os
        os.rename(HIDDEN, WORK + '/h')
        try: got(open(WORK + '/h/key').read())
        finally: os.rename(WORK + '/h', HIDDEN)
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    read(
        "a tar file that holds a link",
        """
        import io, tarfile
        b = io.BytesIO()
        with tarfile.open(fileobj=b, mode='w') as t:
            i = tarfile.TarInfo('l')
            i.type, i.linkname = tarfile.SYMTYPE, SECRET
            t.addfile(i)
        b.seek(0)
        tarfile.open(fileobj=b).extractall(WORK, **({'filter': 'fully_trusted'} if hasattr(tarfile, 'fully_trusted_filter') else {}))
        got(open(WORK + '/l').read())
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    read(
        "copytree through a link",
        """
        import os, shutil
        os.symlink(HIDDEN, WORK + '/l')
        shutil.copytree(WORK + '/l', WORK + '/c')
        got(open(WORK + '/c/key').read())
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    read(
        "make_archive",
        """
        import shutil, zipfile
        got(zipfile.ZipFile(shutil.make_archive(WORK + '/a', 'zip', HIDDEN)).read('key'))
    """,
        kind="link",
        grants="expose-rw=./work",
    ),
    read(
        "a link that is swapped, open",
        """
        import os, threading
        open(WORK + '/ok', 'w').write('plain')
        os.symlink('ok', WORK + '/l')
        def swap():
            for n in range(4000):
                os.symlink(SECRET if n % 2 else 'ok', WORK + '/t')
                os.replace(WORK + '/t', WORK + '/l')
        t = threading.Thread(target=swap)
        t.start()
        while t.is_alive():
            try: data = open(WORK + '/l').read()
            except OSError: continue
            if 's3cret' in data:
                print('ESCAPED')
                break
        t.join()
    """,
        grants="expose-rw=./work\npython-api=ALLOW:threads",
        alone=True,
        kind="race",
        layer="os",
    ),
    read(
        "a link that is swapped, os.open",
        """
        import os, threading
        open(WORK + '/ok', 'w').write('plain')
        os.symlink('ok', WORK + '/l')
        def swap():
            for n in range(4000):
                os.symlink(SECRET if n % 2 else 'ok', WORK + '/t')
                os.replace(WORK + '/t', WORK + '/l')
        t = threading.Thread(target=swap)
        t.start()
        while t.is_alive():
            try: data = os.read(os.open(WORK + '/l', os.O_RDONLY), 9).decode()
            except OSError: continue
            if 's3cret' in data:
                print('ESCAPED')
                break
        t.join()
    """,
        grants="expose-rw=./work\npython-api=ALLOW:threads",
        alone=True,
        kind="race",
        layer="os",
    ),
    # ignore= hides by a path, and a folder above it takes all that it holds to another one.
    *(
        read(
            name,
            f"""
            import os, shutil
            {code}
            got(open(WORK + '/x/sub/key').read())
        """,
            kind="link",
            grants="expose-rw=./work\nignore=./work/*/deep/sub/key\nignore-best-effort=true",
            plant="import os\nos.makedirs(WORK + '/deep/sub')\nopen(WORK + '/deep/sub/key', 'w').write('s3cret')",
        )
        for name, code in {
            "the folder of a hidden file renamed": "os.rename(WORK + '/deep', WORK + '/x')",
            "the folder of a hidden file renamed by shutil.move": "shutil.move(WORK + '/deep', WORK + '/x')",
            "the folder of a hidden file renamed after it was judged": "os.utime(WORK + '/deep')\n            "
            "d = os.open(WORK, os.O_PATH)\n            os.replace('deep', 'x', src_dir_fd=d, dst_dir_fd=d)",
            "the inner folder of a hidden file renamed": "os.mkdir(WORK + '/x'); os.rename(WORK + '/deep/sub', WORK + '/x/sub')",
        }.items()
    ),
]
