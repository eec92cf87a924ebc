"""Turn text or data into code. (Named so since a code.py would stand before the module of that name.)"""

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
        "map",
        """
        list(map(exec, ["print('ESC' + 'APED')"]))
    """,
        kind="text",
    ),
    text(
        "by a descriptor",
        """
        class C:
            f = property(exec)
        class S(str):
            f = property(exec)
        S("print('ESC' + 'APED')").f
    """,
        kind="text",
    ),
    text(
        "by __getattr__ of a module",
        """
        import sys
        m = type(sys)('x'); m.__getattr__ = exec
        getattr(m, "print('ESC' + 'APED')", 0)
    """,
        kind="text",
    ),
    text(
        "by __missing__",
        """
        class D(dict): __missing__ = staticmethod(exec)
        try: D()["print('ESC' + 'APED')"]
        except KeyError: pass
    """,
        kind="text",
    ),
    text(
        "by re.sub",
        """
        import re
        re.sub('.*', lambda m: exec(m.group(0)) or '', "print('ESC' + 'APED')")
    """,
        kind="text",
    ),
    text(
        "by partial in asyncio",
        """
        import asyncio
        loop = asyncio.new_event_loop()
        loop.call_soon(exec, "print('ESC' + 'APED')", {})
        loop.call_soon(loop.stop); loop.run_forever()
    """,
        kind="text",
    ),
    text(
        "by timer of sched",
        """
        import sched
        s = sched.scheduler(); s.enter(0, 0, exec, ("print('ESC' + 'APED')", {})); s.run()
    """,
        kind="text",
    ),
    text(
        "by functools.reduce",
        """
        import functools
        functools.reduce(exec, ["print('ESC' + 'APED')", {}])
    """,
        kind="text",
    ),
    text(
        "by a signal handler that is exec",
        """
        import signal, os
        class N(int): pass
        signal.signal(signal.SIGALRM, lambda *a: exec("print('ESC' + 'APED')"))
        signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause()
    """,
        kind="text",
        alone=True,
    ),
    text(
        "code.InteractiveInterpreter",
        """
        import code
        code.InteractiveInterpreter().runsource("print('ESC' + 'APED')")
    """,
        kind="text",
    ),
    text(
        "code.InteractiveConsole",
        """
        import code
        code.InteractiveConsole().push("print('ESC' + 'APED')")
    """,
        kind="text",
    ),
    text(
        "code.interact",
        """
        import code
        lines = iter(["print('ESC' + 'APED')"])
        def read(p):
            try: return next(lines)
            except StopIteration: raise EOFError
        code.interact(readfunc=read)
    """,
        kind="text",
    ),
    text(
        "codeop",
        """
        import codeop, types
        c = codeop.compile_command("print('ESC' + 'APED')")
        types.FunctionType(c, {'print': print})()
    """,
        kind="text",
    ),
    text(
        "marshal",
        """
        import marshal, importlib.util
        def f(): print('ESC' + 'APED')
        g = type(f)(marshal.loads(marshal.dumps(f.__code__)), globals()); g()
    """,
        kind="text",
    ),
    text(
        "types.CodeType",
        """
        def f(): return 'x'
        c = f.__code__
        import sys
        args = [c.co_argcount, c.co_posonlyargcount, c.co_kwonlyargcount, c.co_nlocals, c.co_stacksize, c.co_flags, c.co_code, (None, 'ESCAPED'), c.co_names, c.co_varnames, c.co_filename, c.co_name, c.co_qualname, c.co_firstlineno, c.co_linetable, c.co_exceptiontable]
        f.__code__ = type(c)(*args)
        print(f())
    """,
        kind="text",
    ),
    text(
        "code.replace by copy",
        """
        import copy
        def f(): return 'x'
        f.__code__ = copy.replace(f.__code__, co_consts=(None, 'ESCAPED'))
        print(f())
    """,
        since=(3, 13),
        kind="text",
    ),
    text(
        "FunctionType with other globals",
        """
        import types
        def f(): return flag
        print(types.FunctionType(f.__code__, dict(flag='ESCAPED'))())
    """,
        kind="text",
    ),
    text(
        "cProfile",
        """
        import cProfile
        cProfile.run("print('ESC' + 'APED')")
    """,
        kind="text",
        alone=True,
    ),
    text(
        "profile",
        """
        import profile
        profile.run("print('ESC' + 'APED')")
    """,
        kind="text",
        alone=True,
    ),
    text(
        "bdb",
        """
        import bdb
        bdb.Bdb().run("print('ESC' + 'APED')", {})
    """,
        kind="text",
        alone=True,
    ),
    text(
        "doctest",
        """
        import doctest
        def f():
            '''
            >>> print('ESC' + 'APED')
            '''
        doctest.run_docstring_examples(f, {}, verbose=True)
    """,
        kind="text",
        alone=True,
    ),
    text(
        "typing.get_type_hints",
        """
        import typing
        class C: x: "print('ESC' + 'APED')"
        try: typing.get_type_hints(C)
        except Exception: pass
    """,
        kind="text",
    ),
    text(
        "ForwardRef",
        """
        import typing
        try: typing.ForwardRef("print('ESC' + 'APED')")._evaluate(globals(), globals(), recursive_guard=frozenset())
        except TypeError: typing.ForwardRef("print('ESC' + 'APED')")._evaluate(globals(), globals(), frozenset())
    """,
        kind="text",
    ),
    text(
        "inspect.get_annotations",
        """
        import inspect
        class C: x: "print('ESC' + 'APED')"
        inspect.get_annotations(C, eval_str=True)
    """,
        kind="text",
        alone=True,
    ),
    text(
        "inspect.signature",
        """
        import inspect
        def f(x: "print('ESC' + 'APED')"): pass
        inspect.signature(f, eval_str=True)
    """,
        kind="text",
        alone=True,
    ),
    text(
        "logging.config handlers",
        r"""
        import logging.config
        open(WORK + '/c', 'w').write("[loggers]\nkeys=root\n[handlers]\nkeys=h\n[formatters]\nkeys=\n[logger_root]\nhandlers=h\n[handler_h]\nclass=logging.NullHandler\nargs=(print('ESC' + 'APED'),)\n")
        try: logging.config.fileConfig(WORK + '/c')
        except TypeError: pass
    """,
        grants="expose-rw=./work",
        kind="text",
    ),
    text(
        "pickle reduce",
        """
        import pickle
        class C:
            def __reduce__(self): return exec, ("print('ESC' + 'APED')",)
        pickle.loads(pickle.dumps(C()))
    """,
        kind="text",
    ),
    text(
        "pickle in Python",
        """
        import pickle
        class C:
            def __reduce__(self): return print, ("ESCAPED",)
        pickle._Unpickler(__import__('io').BytesIO(pickle.dumps(C()))).load()
    """,
        kind="text",
    ),
    text(
        "pickle find_class overridden",
        r"""
        import pickle, io
        class U(pickle._Unpickler):
            def find_class(self, m, n): return exec
        U(io.BytesIO(b"cx\ny\n(S\"print('ESC' + 'APED')\"\ntR.")).load()
    """,
        kind="text",
    ),
    text(
        "pickle dispatch in Python",
        r"""
        import pickle, io
        class U(pickle._Unpickler): pass
        u = U(io.BytesIO(b"cbuiltins\nprint\n(S'ESCAPED'\ntR."))
        pickle._Unpickler.__dict__['load']
        u.load = None
        try: pickle._Unpickler.load(u)
        except SystemExit: pass
    """,
        kind="text",
    ),
    text(
        "pickle persistent_load",
        r"""
        import pickle, io
        class U(pickle.Unpickler):
            def persistent_load(self, pid): return exec
        U(io.BytesIO(b"P1\n(S\"print('ESC' + 'APED')\"\ntR.")).load()
    """,
        kind="text",
    ),
    text(
        "copy reduce",
        """
        import copy
        class C:
            def __reduce_ex__(self, p): return exec, ("print('ESC' + 'APED')",)
        copy.copy(C())
    """,
        kind="text",
    ),
    text(
        "copyreg reconstructor",
        """
        import copyreg, copy
        class C: pass
        copyreg.pickle(C, lambda c: (exec, ("print('ESC' + 'APED')",)))
        copy.deepcopy(C())
    """,
        kind="text",
    ),
    text(
        "shelve",
        r"""
        import shelve, pickle, dbm.dumb
        d = dbm.dumb.open(WORK + '/s', 'c'); d[b'k'] = b"cbuiltins\nprint\n(S'ESCAPED'\ntR."; d.close()
        shelve.Shelf(dbm.dumb.open(WORK + '/s'))['k']
    """,
        grants="expose-rw=./work",
        kind="text",
    ),
    text(
        "multiprocessing connection",
        r"""
        import multiprocessing.connection as c, multiprocessing as m
        a, b = m.Pipe()
        a.send_bytes(b"cbuiltins\nprint\n(S'ESCAPED'\ntR.")
        b.recv()
    """,
        kind="text",
        alone=True,
    ),
    text(
        "multiprocessing queue",
        r"""
        import multiprocessing.connection as c, multiprocessing.reduction as r
        r.ForkingPickler.loads(b"cbuiltins\nprint\n(S'ESCAPED'\ntR.")
    """,
        kind="text",
    ),
    text(
        "ast to code",
        """
        import ast
        exec(compile(ast.parse("print('ESC' + 'APED')"), 'x', 'exec'))
    """,
        kind="text",
    ),
    text(
        "compile flags in ast.parse",
        """
        import ast
        class N(str): pass
        import builtins
        m = ast.parse("x", mode='exec')
        real = ast.PyCF_ONLY_AST; ast.PyCF_ONLY_AST = 0
        code = ast.parse("print('ESC' + 'APED')")
        def f(): pass
        f.__code__ = code if isinstance(code, type(f.__code__)) else f.__code__
        f()
    """,
        kind="text",
        alone=True,
    ),
    text(
        "compile in typing's name",
        """
        import typing
        r = typing.ForwardRef("print('ESC' + 'APED')")
        def f(): pass
        f.__code__ = r.__forward_code__
        f()
    """,
        kind="text",
    ),
    text(
        "generator's frame",
        """
        def g(): yield 1
        x = g()
        x.gi_frame.f_locals
        exec("print('ESC' + 'APED')", x.gi_frame.f_globals)
    """,
        kind="text",
    ),
    text(
        "runpy.run_path",
        """
        import runpy
        open(WORK + '/x', 'w').write("print('ESC' + 'APED')")
        runpy.run_path(WORK + '/x')
    """,
        grants="expose-rw=./work",
        kind="text",
    ),
    text(
        "runpy helper of a module",
        """
        import runpy
        runpy._run_module_code("print('ESC' + 'APED')", mod_name='x')
    """,
        kind="text",
    ),
    text(
        "compiled in the name of dis",
        """
        import dis
        def f(): pass
        f.__code__ = dis._try_compile("print('ESC' + 'APED')", 'x')
        f()
    """,
        kind="text",
    ),
    text(
        "pyclbr and py_compile",
        """
        import py_compile, marshal
        open(WORK + '/x.py', 'w').write("print('ESC' + 'APED')")
        p = py_compile.compile(WORK + '/x.py', WORK + '/x.pyc')
        c = marshal.loads(open(p, 'rb').read()[16:])
        exec(c)
    """,
        grants="expose-rw=./work",
        kind="text",
    ),
    text(
        "sqlite function is exec",
        """
        import sqlite3
        c = sqlite3.connect(':memory:')
        c.create_function('f', 1, exec)
        c.execute("select f(?)", ("print('ESC' + 'APED')",)).fetchall()
    """,
        kind="text",
    ),
    text(
        "expat handler is exec",
        """
        import xml.parsers.expat as e
        p = e.ParserCreate(); p.CharacterDataHandler = exec; p.buffer_text = True
        p.Parse("<a>print('ESC' + 'APED')</a>", True)
    """,
        kind="text",
    ),
    text(
        "atexit is exec",
        """
        import atexit
        atexit.register(exec, "print('ESC' + 'APED')", {})
    """,
        kind="text",
        alone=True,
    ),
    text(
        "exec in a thread's C frame",
        """
        import _thread, threading, time
        _thread.start_new_thread(exec, ("import _io; _io.FileIO(1, 'w', closefd=False).write(b'ESC' + b'APED')", {}))
        time.sleep(0.5)
    """,
        grants="python-api=ALLOW:threads",
        kind="text",
        alone=True,
    ),
    text(
        "started again by an event",
        """
        import sys
        sys.audit('cpython.run_command', 'x')
        sys.audit('cpython.run_stdin')
        sys.audit('cpython.run_interactivehook', None)
        exec("print('ESC' + 'APED')")
    """,
        kind="text",
        alone=True,
    ),
    text(
        "by contextlib's callback",
        r"""
        import contextlib, pickle
        with contextlib.ExitStack() as s: s.callback(pickle.loads, b"cbuiltins\nprint\n(S'ESCAPED'\ntR.")
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
        "eval",
        """
        print(eval("'ESC' + 'APED'"))
    """,
    ),
    text(
        "exec",
        """
        exec("print('ESC' + 'APED')")
    """,
    ),
    text(
        "compile",
        """
        import types
        types.FunctionType(compile("print('ESC' + 'APED')", 'x', 'exec'), globals())()
    """,
    ),
    text(
        "code.replace",
        """
        def f(): return 'x'
        g = type(f)(f.__code__.replace(co_consts=(None, 'ESCAPED')), {})
        print(g())
    """,
    ),
    text(
        "exec in a thread",
        """
        import _thread, time
        _thread.start_new_thread(exec, ("print('ESC' + 'APED', flush=True)", {}))
        import sys, threading
        threading.Event().wait(1)
    """,
        grants="python-api=ALLOW:threads",
        alone=True,
    ),
    text(
        "exec by importlib",
        """
        import importlib._bootstrap as b
        b._call_with_frames_removed(exec, "print('ESC' + 'APED')")
    """,
    ),
    text(
        "timeit",
        """
        import timeit
        timeit.timeit("print('ESC' + 'APED')", number=1)
    """,
    ),
    text(
        "loader",
        """
        from importlib.machinery import SourceFileLoader
        exec(SourceFileLoader.source_to_code(SourceFileLoader('x', 'x'), b"print('ESC' + 'APED')", 'x'))
    """,
    ),
    text(
        "pickle",
        r"""
        import pickle
        print(pickle.loads(b"cbuiltins\nprint\n(S'ESCAPED'\ntR."))
    """,
    ),
    text(
        "runpy's helper",
        """
        import runpy
        runpy._run_code("print('ESC' + 'APED')", {}, mod_name='x')
    """,
    ),
    text(
        "dataclasses' helper",
        """
        import dataclasses
        class C: pass
        if hasattr(dataclasses, '_create_fn'):
            C.f = dataclasses._create_fn('f', ['self'], ["return 'ESC' + 'APED'"])
        else:
            b = dataclasses._FuncBuilder({})
            b.add_fn('f', ['self'], ["  return 'ESC' + 'APED'"])
            b.add_fns_to_class(C)
        print(C().f())
    """,
    ),
    text(
        "exec at exit",
        """
        import atexit, sys
        atexit.register(exec, "print('ESC' + 'APED')", {})
        atexit.register(sys.audit, 'cpython.run_interactivehook', None)
        atexit.register(sys.audit, 'cpython.run_stdin')
    """,
        alone=True,
    ),
]
