"""Turn text or data into code. (Named so since a code.py would stand before the module of that name.)"""

from __future__ import annotations

from functools import partial

from attack import Attack

text = partial(Attack, "string")

CASES: list[Attack] = [
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
        "timeit",
        """
        import timeit
        timeit.timeit("print('ESC' + 'APED')", number=1)
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
