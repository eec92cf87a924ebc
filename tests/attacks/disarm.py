"""Undo or go round the guard."""

from __future__ import annotations

from functools import partial

from attack import Attack

disarm = partial(Attack, "disarm")

CASES: list[Attack] = [
    disarm(
        "builtins anew",
        """
        import sys
        del sys.modules['builtins']
        import builtins
        builtins.__import__('posix').stat(SECRET)
        print('ESCAPED')
    """,
        alone=True,
    ),
    disarm(
        "posix anew",
        """
        import sys
        del sys.modules['posix']
        import posix
        posix.stat(SECRET)
        print('ESCAPED')
    """,
        alone=True,
    ),
    disarm(
        "create_builtin",
        """
        import _imp, importlib.machinery as m
        posix = _imp.create_builtin(m.ModuleSpec('posix', None))
        _imp.exec_builtin(posix)
        posix.stat(SECRET)
        print('ESCAPED')
    """,
        alone=True,
    ),
    disarm(
        "reload os",
        """
        import importlib, os
        importlib.reload(os)
        os.stat(SECRET)
        print('ESCAPED')
    """,
        alone=True,
    ),
    disarm(
        "gc for the original",
        """
        import gc, types
        for o in gc.get_objects():
            if isinstance(o, types.BuiltinFunctionType) and o.__name__ == 'stat' and o.__module__ == 'posix':
                o(SECRET)
                print('ESCAPED')
    """,
        grants="python-api=ALLOW:introspection",
    ),
    disarm(
        "referents of the shim",
        """
        import gc, os
        found = [o for o in gc.get_referents(os.stat) if callable(o)] or [os.stat]
        found[0](SECRET)
        print('ESCAPED')
    """,
        grants="python-api=ALLOW:introspection",
    ),
    disarm(
        "attributes of the shim",
        """
        import os
        for n in ('__wrapped__', '__self__', '__func__', '__closure__', '__globals__', '__code__'):
            f = getattr(os.stat, n, None)
            if callable(f): f(SECRET)
        os.stat(SECRET)
        print('ESCAPED')
    """,
    ),
    disarm(
        "import after del of the shim",
        """
        import builtins, importlib
        del builtins.__import__
        importlib.import_module('os').stat(SECRET)
        print('ESCAPED')
    """,
        alone=True,
    ),
    disarm(
        "inspect replaced",
        """
        import sys, types, os
        got = []
        sys.modules['inspect'] = m = types.ModuleType('inspect')
        m.signature = lambda o: got.append(o)
        getattr(os.stat, '__signature__', None)
        (got or [os.stat])[0](SECRET)
        print('ESCAPED')
    """,
        alone=True,
    ),
    disarm(
        "original by a module of the same name",
        """
        import sys, types, importlib
        m = types.ModuleType('os'); real = sys.modules['posix']
        sys.modules['posix'] = types.ModuleType('posix'); sys.modules.pop('posix')
        import posix
        for f in (posix.stat, vars(posix)['stat'], getattr(posix, 'stat')): f(SECRET)
        print('ESCAPED')
    """,
        alone=True,
    ),
]
