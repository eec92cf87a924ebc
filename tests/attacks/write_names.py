"""Make, move and remove names: folders, links, pipes."""

from __future__ import annotations

from functools import partial

from attack import Attack

write = partial(Attack, "write")

CASES: list[Attack] = [
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
]
