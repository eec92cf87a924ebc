"""Turn text or data into code. (Named so since a code.py would stand before the module of that name.)"""

from __future__ import annotations

from functools import partial

from attack import Attack

text = partial(Attack, "string")

CASES: list[Attack] = [
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
