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
