"""Read a file by an odd spelling of its path, by descriptors and by /proc."""

from __future__ import annotations

from functools import partial

from attack import Attack

read = partial(Attack, "read")

CASES: list[Attack] = [
    read(
        "dot dot",
        """
        import os
        got(open(os.path.join(os.getcwd(), '..', os.path.relpath(SECRET, '..'))).read())
    """,
    ),
    read(
        "chdir",
        """
        import os
        os.chdir(HIDDEN)
        got(open(os.path.basename(SECRET)).read())
    """,
        alone=True,
    ),
    read(
        "dir_fd",
        """
        import os
        d = os.open(HIDDEN, os.O_PATH)
        got(os.read(os.open(os.path.basename(SECRET), 0, dir_fd=d), 99))
    """,
    ),
    read("proc self root", "got(open('/proc/self/root' + SECRET).read())"),
    read(
        "dot dot through what is not there in the text",
        """
        import os
        os.makedirs(WORK + '/a/b')
        os.symlink('a/b', WORK + '/l')
        rel = os.path.relpath(SECRET, WORK + '/a')
        got(open(WORK + '/l/../' + rel).read())
    """,
        kind="spelling",
        grants="expose-rw=./work",
    ),
    read("a path of 4000 letters", "got(open('/' + './' * 1990 + SECRET).read())", kind="spelling"),
    read(
        "proc self cwd",
        """
        import os
        got(open('/proc/self/cwd/' + os.path.relpath(SECRET)).read())
    """,
        kind="spelling",
    ),
    read("proc thread-self root", "got(open('/proc/thread-self/root' + SECRET).read())", kind="spelling"),
    read(
        "proc pid root",
        """
        import os
        got(open(f'/proc/{os.getpid()}/root' + SECRET).read())
    """,
        kind="spelling",
    ),
    read(
        "proc self task root",
        """
        import os
        got(open(f'/proc/self/task/{os.getpid()}/root' + SECRET).read())
    """,
        kind="spelling",
    ),
    read(
        "root of the parent",
        """
        import os
        if os.stat(f'/proc/{os.getppid()}').st_uid != os.getuid(): absent('the parent is not ours')
        got(open(f'/proc/{os.getppid()}/root' + SECRET).read())
    """,
        kind="spelling",
    ),
    read("root of another process", "got(open(f'/proc/{VICTIM}/root' + SECRET).read())", kind="spelling"),
    read("cwd of another process", "got(open(f'/proc/{VICTIM}/cwd' + SECRET).read())", kind="spelling"),
    read(
        "str subclass with __fspath__",
        """
        class S(str):
            def __fspath__(self): return SECRET
        got(open(S(WORK + '/x')).read() if S('a').__fspath__() and not open(WORK + '/x', 'w').close() else '')
        import os
        got(open(os.fspath(S.__fspath__(S('x')))).read())
    """,
        kind="object",
        grants="expose-rw=./work",
    ),
    read(
        "PathLike of bytes",
        """
        class P:
            def __fspath__(self): return SECRET.encode()
        got(open(P()).read())
    """,
        kind="object",
    ),
    read(
        "PathLike that gives a str subclass",
        """
        class S(str): pass
        class P:
            def __fspath__(self): return S(SECRET)
        got(open(P()).read())
    """,
        kind="object",
    ),
    read(
        "os.open of a PathLike that changes its mind",
        """
        import os
        class P:
            n = 0
            def __fspath__(self):
                P.n += 1
                return WORK + '/ok' if P.n % 2 else SECRET
        open(WORK + '/ok', 'w').write('x')
        for _ in range(4):
            got(os.read(os.open(P(), os.O_RDONLY), 99))
    """,
        kind="object",
        grants="expose-rw=./work",
    ),
    read(
        "stat of a PathLike that changes its mind",
        """
        import os
        class P:
            n = 0
            def __fspath__(self):
                P.n += 1
                return WORK if P.n % 2 else SECRET
        for _ in range(4):
            if os.stat(P()).st_size == 6: print('ESCAPED')
    """,
        kind="object",
        grants="expose-rw=./work",
    ),
    read(
        "flags that answer differently",
        """
        import os
        class F(int):
            def __index__(self): return os.O_RDONLY
            def __and__(self, other): return os.O_WRONLY
        got(os.read(os.open(SECRET, F(os.O_RDONLY)), 99))
    """,
        kind="object",
    ),
    read(
        "memoryview as path",
        """
        import os, warnings
        warnings.simplefilter('ignore')
        os.stat(memoryview(os.fsencode(SECRET)))
        print('ESCAPED')
    """,
        kind="object",
        before=(3, 12),
    ),
    read(
        "opener that is a descriptor",
        """
        import os
        d = os.open(SECRET, os.O_RDONLY)
        got(open(d, closefd=False).read())
    """,
        kind="descriptor",
    ),
    read(
        "O_PATH and proc self fd",
        """
        import os
        d = os.open(SECRET, os.O_PATH)
        got(open(f'/proc/self/fd/{d}').read())
    """,
        kind="descriptor",
    ),
    read(
        "O_PATH and dev fd",
        """
        import os
        d = os.open(SECRET, os.O_PATH)
        got(open(f'/dev/fd/{d}').read())
    """,
        kind="descriptor",
    ),
    read(
        "dir_fd that is the root",
        """
        import os
        d = os.open('/', os.O_PATH)
        got(os.read(os.open(SECRET[1:], os.O_RDONLY, dir_fd=d), 99))
    """,
        kind="descriptor",
    ),
    read(
        "an absolute path with a dir_fd",
        """
        import os
        d = os.open(WORK, os.O_RDONLY)
        got(os.read(os.open(SECRET, os.O_RDONLY, dir_fd=d), 99))
    """,
        kind="descriptor",
        grants="expose-rw=./work",
    ),
    read(
        "dot dot behind a dir_fd",
        """
        import os
        d = os.open(WORK, os.O_RDONLY)
        got(os.read(os.open(os.path.relpath(SECRET, WORK), os.O_RDONLY, dir_fd=d), 99))
    """,
        kind="descriptor",
        grants="expose-rw=./work",
    ),
    read(
        "dir_fd as a keyword with a PathLike",
        """
        import os, pathlib
        d = os.open(WORK, os.O_RDONLY)
        got(os.read(os.open(path=pathlib.Path(os.path.relpath(SECRET, WORK)), flags=0, dir_fd=d), 99))
    """,
        kind="descriptor",
        grants="expose-rw=./work",
    ),
    read(
        "a descriptor's link, relative to proc",
        """
        import os
        d = os.open('/proc/self/fd', os.O_RDONLY)
        e = os.open(SECRET, os.O_PATH)
        got(os.read(os.open(str(e), os.O_RDONLY, dir_fd=d), 99))
    """,
        kind="descriptor",
    ),
    read(
        "fchdir",
        """
        import os
        os.fchdir(os.open(HIDDEN, os.O_PATH))
        got(open('key').read())
    """,
        kind="descriptor",
        alone=True,
    ),
    read(
        "chdir to the root",
        """
        import os
        os.chdir('/')
        got(open(SECRET[1:]).read())
    """,
        kind="descriptor",
        alone=True,
    ),
    read(
        "chdir through a link",
        """
        import os
        os.symlink(HIDDEN, WORK + '/l')
        os.chdir(WORK + '/l')
        got(open('key').read())
    """,
        kind="descriptor",
        alone=True,
        grants="expose-rw=./work",
    ),
    read(
        "chdir of a folder that is moved",
        """
        import os
        os.makedirs(WORK + '/a/b/c')
        rel = os.path.relpath(SECRET, WORK + '/b')
        base = os.path.abspath(WORK)
        os.chdir(WORK + '/a/b/c')
        os.rename(base + '/a/b', base + '/b')
        got(open('../' + rel).read())
    """,
        kind="descriptor",
        alone=True,
        grants="expose-rw=./work",
    ),
    read(
        "chroot",
        """
        import os
        if os.geteuid(): absent('only root may')
        os.chroot(HIDDEN)
        got(open('/key').read())
    """,
        kind="descriptor",
        alone=True,
    ),
]
