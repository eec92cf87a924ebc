"""Run a string by way of the import system."""

from __future__ import annotations

from functools import partial

from attack import Attack

text = partial(Attack, "string")

CASES: list[Attack] = [
    text(
        "loader with data of its own",
        """
        import importlib.machinery as m, importlib.util as u, sys
        class L(m.SourceFileLoader):
            def get_data(self, path): return b"print('ESC' + 'APED')"
            def path_stats(self, path): raise OSError
        class F:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == 'other': return u.spec_from_loader(name, L(name, '/x.py'))
        sys.meta_path.insert(0, F)
        import other
    """,
        kind="text",
        alone=True,
    ),
    text(
        "inspect loader",
        """
        import importlib.abc, importlib.util as u, sys
        class L(importlib.abc.InspectLoader):
            def get_source(self, name): return "print('ESC' + 'APED')"
            def is_package(self, name): return False
        class F:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == 'other': return u.spec_from_loader(name, L())
        sys.meta_path.insert(0, F)
        import other
    """,
        kind="text",
        alone=True,
    ),
    text(
        "source_to_code within an import",
        """
        import importlib.machinery as m, importlib.util as u, sys
        class L(m.SourceFileLoader):
            def get_code(self, name): return m.SourceFileLoader.source_to_code(self, b"print('ESC' + 'APED')", 'x')
        class F:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == 'other': return u.spec_from_loader(name, L(name, '/x.py'))
        sys.meta_path.insert(0, F)
        import other
    """,
        kind="text",
    ),
    text(
        "sourceless loader",
        """
        import importlib.machinery as m, importlib.util as u, sys, marshal
        def f(): print('ESC' 'xxxx')
        data = marshal.dumps(f.__code__).replace(b'ESCxxxx', b'ESCAPED')
        class L(m.SourcelessFileLoader):
            def get_data(self, path): return u.MAGIC_NUMBER + bytes(12) + data
        class F:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == 'other': return u.spec_from_loader(name, L(name, '/x.pyc'))
        sys.meta_path.insert(0, F)
        import other
    """,
        kind="text",
        alone=True,
    ),
    text(
        "exec as a loader's method",
        """
        import importlib.util as u, sys
        class M(type(sys)):
            __getitem__ = __setitem__ = None
        src = "print('ESC' + 'APED')"
        class L:
            create_module = staticmethod(lambda spec: None)
            exec_module = staticmethod(lambda m: None)
        import functools
        L.exec_module = functools.partial(exec, src, {})
        class X:
            def __new__(cls, *a): return 0
        class F:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == 'other': return u.spec_from_loader(name, L())
        L.exec_module = staticmethod(lambda m, e=exec: e(src))
        sys.meta_path.insert(0, F)
        import other
    """,
        kind="text",
        alone=True,
    ),
    text(
        "exec called by importlib itself",
        """
        import importlib.util as u, sys, functools
        src = "print('ESC' + 'APED')"
        class L:
            create_module = staticmethod(lambda spec: None)
            exec_module = staticmethod(exec)
        class M(str): pass
        class F:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == 'other':
                    s = u.spec_from_loader(name, L()); s._initializing = False
                    L.create_module = staticmethod(lambda spec: M(src))
                    return s
        sys.meta_path.insert(0, F)
        try: import other
        except (AttributeError, TypeError, ImportError): pass
    """,
        kind="text",
        alone=True,
    ),
    text(
        "exec by a finder's method",
        """
        import sys
        class F: find_spec = staticmethod(exec)
        class N(str): pass
        import importlib
        sys.meta_path.insert(0, F)
        try: importlib.import_module("print('ESC' + 'APED')")
        except BaseException: pass
    """,
        kind="text",
        alone=True,
    ),
    text(
        "eval by a path hook",
        """
        import sys, importlib
        sys.path_hooks.insert(0, eval)
        sys.path.insert(0, "print('ESC' + 'APED')")
        try: import nothing_at_all
        except BaseException: pass
    """,
        kind="text",
        alone=True,
    ),
    text(
        "exec by a path hook",
        """
        import sys
        sys.path_hooks.insert(0, exec)
        sys.path.insert(0, "print('ESC' + 'APED')")
        try: import nothing_at_all
        except BaseException: pass
    """,
        kind="text",
        alone=True,
    ),
    text(
        "exec in the standard library's key",
        """
        import functools
        sorted(["print('ESC' + 'APED')"], key=exec)
    """,
        kind="text",
    ),
    text(
        "get_code that returns text",
        """
        import importlib.machinery as m, importlib.util as u, sys
        class L(m.SourceFileLoader):
            def get_code(self, name): return "print('ESC' + 'APED')"
        class F:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == 'other': return u.spec_from_loader(name, L(name, '/x.py'))
        sys.meta_path.insert(0, F)
        import other
    """,
        kind="text",
        alone=True,
    ),
    text(
        "get_code that returns a compiled annotation",
        """
        import importlib.machinery as m, importlib.util as u, sys, typing
        c = typing.ForwardRef("print('ESC' + 'APED')").__forward_code__
        class L(m.SourceFileLoader):
            def get_code(self, name): return c
        class F:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == 'other': return u.spec_from_loader(name, L(name, '/x.py'))
        sys.meta_path.insert(0, F)
        import other
    """,
        kind="text",
        alone=True,
    ),
    text(
        "importlib's file reader replaced",
        """
        import importlib._bootstrap_external as e, sys
        class B:
            def __init__(self, f): self.f = f
            def __enter__(self): return self
            def __exit__(self, *a): pass
            def read(self): return b"print('ESC' + 'APED')"
        class IO:
            open_code = staticmethod(B); FileIO = B
        def fail(*a): raise ImportError
        import sys; sys.dont_write_bytecode = True; e._io = IO; e._classify_pyc = fail
        import colorsys
    """,
        kind="text",
        alone=True,
    ),
    text(
        "importlib's unmarshaller replaced",
        """
        import importlib._bootstrap_external as e, os, sys, typing
        library = os.path.dirname(os.__file__)
        unread = [n[:-3] for n in ('colorsys.py', 'statistics.py', 'cmd.py', 'calendar.py', 'quopri.py')
                  if n[:-3] not in sys.modules and os.path.exists(e.cache_from_source(library + '/' + n))]
        c = typing.ForwardRef("print('ESC' + 'APED')").__forward_code__
        class M:
            loads = staticmethod(lambda *a: c)
        e.marshal = M
        __import__(unread[0])
    """,
        kind="text",
        alone=True,
    ),
    text(
        "importlib's compiler replaced",
        """
        import importlib._bootstrap_external as e, typing
        c = typing.ForwardRef("print('ESC' + 'APED')").__forward_code__
        def fail(*a): raise ImportError
        e._classify_pyc = fail
        e.SourceLoader.source_to_code = lambda *a, **k: c
        e.SourceLoader.set_data = lambda *a, **k: None
        import colorsys
    """,
        kind="text",
        alone=True,
    ),
    text(
        "frozen importer's helper replaced",
        """
        import importlib._bootstrap as b, importlib.util as u, typing, sys
        c = typing.ForwardRef("print('ESC' + 'APED')").__forward_code__
        class I:
            def __getattr__(self, n): return getattr(real, n)
            def get_frozen_object(self, *a): return c
        real = b._imp; b._imp = I()
        s = b.FrozenImporter.find_spec('__hello__')
        sys.modules.pop('__hello__', None)
        import __hello__
    """,
        kind="text",
        alone=True,
    ),
    text(
        "zipimport's reader replaced",
        """
        import zipfile, zipimport, sys
        with zipfile.ZipFile(WORK + '/x.zip', 'w') as z: z.writestr('zipped.py', 'x = 1')
        sys.path.insert(0, WORK + '/x.zip')
        zipimport._get_data = lambda archive, entry: b"print('ESC' + 'APED')"
        import zipped
    """,
        grants="expose-rw=./work",
        kind="text",
        alone=True,
        gap="what zipimport reads from an archive is not compared with it",
    ),
    text(
        "exec by importlib",
        """
        import importlib._bootstrap as b
        b._call_with_frames_removed(exec, "print('ESC' + 'APED')")
    """,
    ),
    text(
        "loader",
        """
        from importlib.machinery import SourceFileLoader
        exec(SourceFileLoader.source_to_code(SourceFileLoader('x', 'x'), b"print('ESC' + 'APED')", 'x'))
    """,
    ),
]
