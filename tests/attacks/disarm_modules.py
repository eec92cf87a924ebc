"""Get a function that the guard has not seen: modules made anew, other ways to the same type, what walks find."""

from __future__ import annotations

from functools import partial

from attack import Attack

anew = partial(Attack, "disarm", kind="twin", alone=True)
walk = partial(Attack, "disarm", kind="walk", grants="python-api=ALLOW:introspection")
SHELL = "expose-ro=/bin\nexpose-ro=/usr"

CASES: list[Attack] = [
    *(
        anew(f"importlib.reload({name})", f"import importlib, {name} as m\nimportlib.reload(m)\n{use}", grants=grants)
        for name, use, grants in [
            ("posix", "m.stat(SECRET); print('ESCAPED')", ""),
            ("builtins", "got(m.open(SECRET).read())", ""),
            ("io", "got(m.open(SECRET).read())", ""),
            ("_io", "got(m.FileIO(SECRET).read())", ""),
            ("_socket", "s = m.socket(); s.connect(('127.0.0.1', PORT)); print('ESCAPED')", ""),
            ("socket", "m.create_connection(('127.0.0.1', PORT), 5); print('ESCAPED')", ""),
            ("subprocess", "m.run(['/bin/echo', 'ESCAPED'])", SHELL),
            ("_posixsubprocess", "import subprocess; subprocess.run(['/bin/echo', 'ESCAPED'])", SHELL),
            ("pathlib", "got(m.Path(SECRET).read_text())", ""),
        ]
    ),
    *(
        anew(
            f"{name} by another name",
            f"""
            import importlib.machinery as m, importlib.util as u, {name}
            file = getattr({name}, '__file__', None)
            if not file: absent('{name} is built in')
            loader = m.ExtensionFileLoader('json.{name}', file)
            other = u.module_from_spec(u.spec_from_file_location('json.{name}', file, loader=loader))
            loader.exec_module(other)
            {use}
        """,
            grants=SHELL,
        )
        for name, use in [
            ("_socket", "other.socket().connect(('127.0.0.1', PORT)); print('ESCAPED')"),
            (
                "_posixsubprocess",
                "import subprocess; subprocess._fork_exec = other.fork_exec; subprocess.run(['/bin/echo', 'ESCAPED'])",
            ),
        ]
    ),
    anew(
        "an extension opened with other flags",
        """
        import importlib.machinery as m, importlib.util as u, os, sys
        sys.setdlopenflags(os.RTLD_NOW | os.RTLD_DEEPBIND | os.RTLD_GLOBAL)
        spec = m.PathFinder.find_spec('_socket')
        if not spec: absent('_socket is built in')
        sys.modules.pop('_socket', None)
        other = u.module_from_spec(spec)
        spec.loader.exec_module(other)
        other.socket().connect(('127.0.0.1', PORT))
        print('ESCAPED')
    """,
    ),
    anew(
        "an extension copied to where the program writes",
        """
        import _socket, importlib.machinery as m, importlib.util as u, shutil
        if not getattr(_socket, '__file__', None): absent('_socket is built in')
        file = shutil.copy(_socket.__file__, WORK + '/_socket.so')
        other = u.module_from_spec(u.spec_from_file_location('_socket', file, loader=m.ExtensionFileLoader('_socket', file)))
        print('ESCAPED')
    """,
        grants="expose-rw=./work",
    ),
    anew(
        "an extension through a link in what the program writes",
        """
        import _socket, importlib.machinery as m, importlib.util as u, os
        file = getattr(_socket, '__file__', None)
        if not file: absent('_socket is built in')
        os.symlink(file, WORK + '/_other.so')
        loader = m.ExtensionFileLoader('_socket', WORK + '/_other.so')
        other = u.module_from_spec(u.spec_from_file_location('_socket', WORK + '/_other.so', loader=loader))
        loader.exec_module(other)
        other.socket().connect(('127.0.0.1', PORT))
        print('ESCAPED')
    """,
        grants="expose-rw=./work",
        kind="link",
    ),
    *(
        anew(f"{name} out of sys.modules, by {how}", code)
        for name, how, code in [
            (
                "posix",
                "BuiltinImporter",
                "import sys, importlib.machinery as m, importlib.util as u\n"
                "sys.modules.pop('posix')\nspec = m.BuiltinImporter.find_spec('posix')\nposix = u.module_from_spec(spec)\n"
                "spec.loader.exec_module(posix)\nposix.stat(SECRET); print('ESCAPED')",
            ),
            (
                "posix",
                "load_module",
                "import sys, warnings, importlib.machinery as m\nwarnings.simplefilter('ignore')\nsys.modules.pop('posix')\n"
                "m.BuiltinImporter.load_module('posix').stat(SECRET); print('ESCAPED')",
            ),
            (
                "_io",
                "import",
                "import sys\nsys.modules.pop('_io')\nimport _io\ngot(_io.open(SECRET).read())",
            ),
            (
                "_imp",
                "import",
                "import sys\nsys.modules.pop('_imp')\nimport _imp, importlib.machinery as m\n"
                "posix = _imp.create_builtin(m.ModuleSpec('posix', None))\n_imp.exec_builtin(posix)\nposix.stat(SECRET); print('ESCAPED')",
            ),
            (
                "all",
                "clear",
                "import sys\nkept = dict(sys.modules)\nsys.modules.clear(); sys.modules['sys'] = sys\n"
                "import posix\nposix.stat(SECRET); print('ESCAPED')",
            ),
            (
                "all",
                "another dict",
                "import sys\nsys.modules = dict(sys=sys)\nimport posix\nposix.stat(SECRET); print('ESCAPED')",
            ),
        ]
    ),
    anew(
        "meta_path emptied, a finder of the program's own",
        """
        import sys, importlib.machinery as m
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                return m.ModuleSpec(name, Finder)
            @staticmethod
            def create_module(spec):
                return m.BuiltinImporter.create_module(m.ModuleSpec('posix', None))
            @staticmethod
            def exec_module(module): m.BuiltinImporter.exec_module(module)
        sys.meta_path[:] = [Finder]
        import another
        another.stat(SECRET)
        print('ESCAPED')
    """,
    ),
    anew(
        "a module class that keeps what the guard puts in",
        """
        import importlib.machinery as m, os, sys, types
        class Still(types.ModuleType):
            def __setattr__(self, name, value): pass
        old = sys.modules['subprocess'] = Still('subprocess')
        sys.modules.pop('subprocess')
        import subprocess
        subprocess.__class__ = Still
        subprocess.__spec__.loader.exec_module(subprocess)
        subprocess.run(['/bin/echo', 'ESCAPED'])
    """,
        grants=SHELL,
    ),
    anew(
        "the same source as another module",
        """
        import importlib.util as u, subprocess
        spec = u.spec_from_file_location('other', subprocess.__file__)
        other = u.module_from_spec(spec)
        spec.loader.exec_module(other)
        other.run(['/bin/echo', 'ESCAPED'])
    """,
        grants=SHELL,
    ),
    anew(
        "the guard's own library by another name",
        """
        import importlib.machinery as m, importlib.util as u
        try: import pysandboxes._guard as guard
        except ImportError: guard = None
        if guard:
            loader = m.ExtensionFileLoader('x._guard', guard.__file__)
            try:
                other = u.module_from_spec(u.spec_from_file_location('x._guard', guard.__file__, loader=loader))
                loader.exec_module(other)
            except ImportError: pass
        got(open(SECRET).read())
    """,
    ),
    anew(
        "every function of the guard's module",
        """
        import sys, threading
        try: import pysandboxes._guard as guard
        except ImportError: guard = None
        for name in sorted(vars(guard) if guard else ()):
            f = getattr(guard, name)
            for args in ((), (None,), (0,), (14, 0, b'x'), ({},), (b'',)):
                if callable(f) and not isinstance(f, type):
                    try: f(*args)
                    except BaseException: pass
        got(open(SECRET).read())
    """,
    ),
    anew(
        "the guard's module replaced",
        """
        import sys, types
        for name in list(sys.modules):
            if name.startswith('pysandboxes'): sys.modules[name] = types.ModuleType(name)
        got(open(SECRET).read())
    """,
    ),
    anew(
        "the guard's exceptions replaced",
        """
        try:
            import pysandboxes._guard as guard
            for name in dir(guard):
                if isinstance(getattr(guard, name), type): setattr(guard, name, None)
        except ImportError: pass
        got(open(SECRET).read())
    """,
    ),
    anew(
        "builtins of a function of other globals",
        """
        import builtins, types
        def f(): return open(SECRET).read()
        f.__globals__['__builtins__'] = dict(vars(builtins), __import__=None, compile=None)
        got(f())
    """,
        kind="state",
    ),
    anew(
        "os monkeypatched with its twins",
        """
        import os, posix
        os.stat, os.open, os.fspath = posix.lstat, posix.open, lambda p: p
        os.stat(SECRET)
        print('ESCAPED')
    """,
        kind="state",
    ),
    # ---- types and unbound methods
    *(
        Attack("disarm", f"unbound: {name}", code, kind="twin")
        for name, code in [
            (
                "_socket's connect from the type's dict",
                "import _socket\ns = _socket.socket()\nvars(_socket.socket)['connect'](s, ('127.0.0.1', PORT)); print('ESCAPED')",
            ),
            (
                "connect_ex by SocketType",
                "import socket\ns = socket.socket()\nprint('no' if socket.SocketType.__dict__['connect_ex'](s, ('127.0.0.1', PORT)) else 'ESCAPED')",
            ),
            (
                "connect by super of a subclass",
                "import socket\nclass S(socket.socket):\n    def go(self): super().connect(('127.0.0.1', PORT)); print('ESCAPED')\nS().go()",
            ),
            (
                "a socket made by __new__ and its base's __init__",
                "import _socket\nclass S(_socket.socket):\n    def __init__(self): pass\ns = S()\n_socket.socket.__init__(s)\ns.connect(('127.0.0.1', PORT)); print('ESCAPED')",
            ),
            (
                "FileIO's __init__ from the type's dict",
                "import _io\nf = _io.FileIO.__new__(_io.FileIO)\nvars(_io.FileIO)['__init__'](f, SECRET)\ngot(f.read())",
            ),
            ("FileIO initialised twice", "import _io\nf = _io.FileIO('/dev/null')\nf.__init__(SECRET)\ngot(f.read())"),
            (
                "FileIO by a metaclass",
                "import _io\nclass M(type):\n    def __call__(c, *a):\n        self = c.__new__(c); _io.FileIO.__init__(self, *a); return self\nclass F(_io.FileIO, metaclass=M): pass\ngot(F(SECRET).read())",
            ),
            ("FileIO by copyreg", "import copyreg, _io\nf = copyreg.__newobj__(_io.FileIO)\nf.__init__(SECRET); got(f.read())"),
            ("scandir's DirEntry by the type", "import os\nnext(iter(os.scandir(HIDDEN))).stat(); print('ESCAPED')"),
            (
                "functools.partial of what was taken early",
                "import functools, os\nf = functools.partial(os.stat, SECRET)\nf(); print('ESCAPED')",
            ),
            ("method-wrapper of a builtin", "import os\nos.stat.__call__(SECRET); print('ESCAPED')"),
            ("type.__call__ of a builtin's type", "import os\ntype(os.stat).__call__(os.stat, SECRET); print('ESCAPED')"),
            (
                "a copy by copy and by pickle",
                "import copy, os, pickle\npickle.loads(pickle.dumps(copy.deepcopy(os.stat)))(SECRET); print('ESCAPED')",
            ),
            ("a bound method made by MethodType", "import os, types\ntypes.MethodType(os.stat, SECRET)(); print('ESCAPED')"),
            ("operator.call", "import operator, os\nmap(os.stat, [SECRET]).__next__(); print('ESCAPED')"),
            ("vectorcall through a sort key", "import os\n[SECRET].sort(key=os.stat); print('ESCAPED')"),
            (
                "a descriptor on a class",
                "import os\nclass C:\n    stat = staticmethod(os.stat)\nC.stat(SECRET); print('ESCAPED')",
            ),
        ]
    ),
    # ---- what introspection finds
    walk(
        "the Python function behind a shim, by gc",
        """
        import gc, subprocess, types
        for o in gc.get_objects():
            if isinstance(o, types.FunctionType) and o.__qualname__ in ('run', 'Popen.__init__') and o.__module__ == 'subprocess':
                if o.__name__ == 'run': o(['/bin/echo', 'ESCAPED'])
        subprocess.run(['/bin/echo', 'ESCAPED'])
    """,
        grants="python-api=ALLOW:introspection\n" + SHELL,
    ),
    walk(
        "what refers to a shim and what it refers to",
        """
        import gc, subprocess
        seen = [subprocess.run]
        for o in seen[:]: seen += gc.get_referents(o)
        for f in seen:
            if callable(f) and not isinstance(f, type) and getattr(f, '__name__', '') == 'run': f(['/bin/echo', 'ESCAPED'])
    """,
        grants="python-api=ALLOW:introspection\n" + SHELL,
    ),
    walk(
        "referrers of a guarded module's dict",
        """
        import gc, posix
        for o in gc.get_referrers(vars(posix)) + gc.get_referrers(posix.stat):
            f = o.get('stat') if isinstance(o, dict) else getattr(o, 'stat', None)
            if callable(f):
                try: f(SECRET); print('ESCAPED')
                except TypeError: pass
    """,
    ),
    walk(
        "builtins of the frames that run",
        """
        import sys
        frame = sys._getframe()
        while frame:
            got(frame.f_builtins['open'](SECRET).read())
            frame = frame.f_back
    """,
    ),
    Attack(
        "disarm",
        "globals of importlib's frames, by a traceback",
        """
        import sys
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None): raise ValueError(name)
        sys.meta_path.insert(0, Finder)
        try: import nosuchmodule
        except ValueError as error: tb = error.__traceback__
        finally: sys.meta_path.remove(Finder)
        imp = None
        while tb:
            imp = imp or tb.tb_frame.f_globals.get('_imp')
            tb = tb.tb_next
        import importlib.machinery as m
        made = imp.create_builtin(m.ModuleSpec('posix', None)); imp.exec_builtin(made); made.stat(SECRET)
        print('ESCAPED')
    """,
        kind="walk",
    ),
    Attack(
        "disarm",
        "the code of a guarded function in a function anew",
        """
        import subprocess, types
        f = types.FunctionType(subprocess.Popen.__init__.__code__, vars(subprocess), 'i', subprocess.Popen.__init__.__defaults__)
        f.__kwdefaults__ = subprocess.Popen.__init__.__kwdefaults__
        p = object.__new__(subprocess.Popen)
        f(p, ['/bin/echo', 'ESCAPED']); p.wait()
    """,
        grants="python-api=ALLOW:function.__new__\n" + SHELL,
        kind="walk",
    ),
]
