"""Objects that answer the guard and the call differently, and code that runs where a verdict is being found."""

from __future__ import annotations

from attack import Attack

CASES = [
    Attack(
        "read",
        "a finalizer that asks in the middle of a question",
        """
        import gc, os
        shown = os.path.abspath(WORK)
        shown += '/' + 'x' * (len(SECRET) - len(shown) - 1)
        shown = shown[:len(SECRET)]
        class Finalizer:
            def __del__(self):
                try: os.stat(shown)
                except OSError: pass
        for threshold in range(1, 25):
            for fill in range(25):
                one = Finalizer()
                one.me = one
                del one
                kept = [[] for _ in range(fill)]
                gc.set_threshold(threshold)
                try: data = os.read(os.open(SECRET, os.O_RDONLY), 99)
                except OSError: data = b''
                finally: gc.set_threshold(700)
                if data: got(data); raise SystemExit(0)
    """,
        grants="expose-rw=./work",
        before=(3, 12),
        kind="state",
        alone=True,
    ),
    Attack(
        "native",
        "an extension whose spec names another file the second time",
        """
        import _heapq, importlib, importlib.machinery, shutil, sys
        if not getattr(_heapq, '__file__', ''): absent('_heapq as a file')
        evil = WORK + '/evil.so'
        shutil.copy(_heapq.__file__, evil)
        class Spec:
            name, parent, submodule_search_locations, has_location, cached = '_heapq', '', None, True, None
            _initializing, loader_state, _set_fileattr = False, None, True
            loader = importlib.machinery.ExtensionFileLoader('_heapq', _heapq.__file__)
            reads = 0
            @property
            def origin(self):
                Spec.reads += 1
                return evil if Spec.reads == turn else _heapq.__file__
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                return Spec() if name == '_heapq' else None
        sys.meta_path.insert(0, Finder)
        for turn in range(1, 12):
            Spec.reads = 0
            sys.modules.pop('_heapq', None)
            try: importlib.import_module('_heapq')
            except OSError: pass
        if 'evil.so' in open('/proc/self/maps').read(): print('ESCAPED')
    """,
        grants="expose-rw=./work\nexpose-ro=/proc",
        kind="object",
        alone=True,
    ),
    Attack(
        "exfiltrate",
        "a port that is a number to the call alone",
        """
        import socket
        class Port:
            def __index__(self): return OPEN
        socket.socket().connect(('127.0.0.1', Port()))
        print('ESCAPED')
    """,
        grants="net=ALLOW|TCP|127.0.0.1|*|OUT\nnet=DENY|TCP|127.0.0.1|{open}|OUT",
        kind="object",
    ),
    Attack(
        "read",
        "a dir_fd that becomes a number while the path is asked",
        """
        import os
        class Late: pass
        class Path:
            def __fspath__(self):
                Late.__index__ = lambda self: os.open('.', os.O_RDONLY)
                return SECRET
        if os.stat(Path(), dir_fd=Late()).st_size: print('ESCAPED')
    """,
        kind="object",
    ),
    Attack(
        "read",
        "a dir_fd that becomes a number while the mode is asked",
        """
        import os
        class Late: pass
        class Mode:
            def __index__(self):
                Late.__index__ = lambda self: os.open('.', os.O_RDONLY)
                return os.R_OK
        if os.access(SECRET, Mode(), dir_fd=Late()): print('ESCAPED')
    """,
        kind="object",
    ),
    Attack(
        "read",
        "a mode that changes the working directory",
        """
        import os
        os.makedirs(WORK + '/a/b/c')
        up = os.path.relpath(SECRET, WORK)
        os.chdir(WORK + '/a/b/c')
        class Mode:
            def __index__(self):
                os.chdir('../../..')
                return os.R_OK
        if os.access(up, Mode()): print('ESCAPED')
    """,
        grants="expose-rw=./work",
        kind="object",
        alone=True,
    ),
    Attack(
        "read",
        "a class that has __fspath__ only after it was looked for",
        """
        import os
        class Meta(type):
            def __getattribute__(cls, name):
                if name == '__fspath__':
                    cls.__fspath__ = lambda self: SECRET
                    raise AttributeError(name)
                return super().__getattribute__(name)
        class Path(metaclass=Meta): pass
        try: os.stat(Path())
        except TypeError: pass
        hasattr(Path, '__fspath__')
        if os.stat(Path()).st_size: print('ESCAPED')
    """,
        kind="object",
    ),
    Attack(
        "read",
        "a path for ssl that fails the first time",
        """
        import ssl
        class Path:
            asked = 0
            def __fspath__(self):
                Path.asked += 1
                if Path.asked == 1: raise ValueError
                return SECRET
        context, path = ssl.create_default_context(), Path()
        for _ in range(2):
            try: context.load_cert_chain(path)
            except ssl.SSLError: print('ESCAPED')
            except ValueError: pass
    """,
        kind="object",
    ),
]
