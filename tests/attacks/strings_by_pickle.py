"""Run a string by way of unpickling and copying."""

from __future__ import annotations

from functools import partial

from attack import Attack

text = partial(Attack, "string")

CASES: list[Attack] = [
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
        "pickle",
        r"""
        import pickle
        print(pickle.loads(b"cbuiltins\nprint\n(S'ESCAPED'\ntR."))
    """,
    ),
]
