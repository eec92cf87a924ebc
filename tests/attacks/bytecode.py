"""Code that no rule has let through: objects of code that the standard library makes, and bytecode that the program wrote.

Text that becomes code needs a rule of dynamic-code; bytecode that no compiler made reads memory as it likes, so it is native code. An
object of code alone runs nothing: so each case is a way to make one for nothing, or a way to run it.
"""

from __future__ import annotations

from functools import partial

from attack import Attack

made = partial(Attack, "string", kind="text", alone=True)

#: An object of code that costs nothing: annotations are compiled when they are written.
REFERENCE = "__import__('typing').ForwardRef(\"print('ESC' + 'APED')\").__forward_code__"
#: What stands in a .pyc file.
PYC = """
import importlib.util, marshal
def evil(): print('ESCAPED')
pyc = importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(evil.__code__)
"""
CASES: list[Attack] = [
    made(
        "__code__ set by update_wrapper, which copies what it is told",
        f"""
        import functools, types
        def f(): pass
        functools.update_wrapper(f, types.SimpleNamespace(__code__={REFERENCE}), ('__code__',), ())
        f()
    """,
    ),
    made(
        "the prompt of asyncio, which makes functions of code",
        f"""
        import asyncio.__main__ as prompt, concurrent.futures, types
        prompt.futures, prompt.types = concurrent.futures, types
        prompt.loop = types.SimpleNamespace(call_soon_threadsafe=lambda f, *rest, **context: f())
        prompt.repl_future, prompt.repl_future_interrupted, prompt.keyboard_interrupted = None, False, False
        console = prompt.AsyncIOInteractiveConsole.__new__(prompt.AsyncIOInteractiveConsole)
        console.locals = {{}}
        try: console.runcode({REFERENCE})
        except Exception: pass
    """,
        before=(3, 13),
    ),
    made(
        "pkgutil.read_code() reads bytecode of memory",
        PYC
        + """
import io, pkgutil
def f(): pass
f.__code__ = pkgutil.read_code(io.BytesIO(pyc))
f()
""",
    ),
    made(
        "the statistics of a profile that is none",
        """
        import io, marshal, pstats
        def evil(): print('ESCAPED')
        pstats.open = lambda *ignored: io.BytesIO(marshal.dumps({(evil.__code__, 0, 'f'): (1, 1, 1, 1, {})}))
        def f(): pass
        f.__code__ = next(iter(pstats.Stats('x').stats))[0]
        f()
    """,
    ),
    made(
        "modulefinder reads bytecode that it does not run",
        PYC
        + """
import io, modulefinder
class Finder(modulefinder.ModuleFinder):
    def scan_code(self, code, module): f.__code__ = code
def f(): pass
Finder().load_module('x', io.BytesIO(pyc), 'x', ('', 'rb', modulefinder._PY_COMPILED))
f()
""",
    ),
    made(
        "modulefinder puts code into what it takes for a module",
        f"""
        import io, modulefinder
        class Finder(modulefinder.ModuleFinder):
            def add_module(self, name): return f
            def scan_code(self, code, module): pass
        def f(): pass
        modulefinder.compile = lambda *ignored: {REFERENCE}
        Finder().load_module('x', io.BytesIO(b'pass'), 'x', ('', 'rb', modulefinder._PY_SOURCE))
        f()
    """,
    ),
    made(
        "modulefinder replaces constants of code",
        """
        import modulefinder
        def f():
            def g(): return 'no'
            return g
        def other(): return 'ESCAPED'
        class Finder(modulefinder.ModuleFinder):
            def replace_paths_in_code(self, code): return other.__code__
        code = modulefinder.ModuleFinder.replace_paths_in_code(Finder(), f.__code__)
        print(*[c.co_consts[1] for c in code.co_consts if hasattr(c, 'co_consts')])
    """,
    ),
    made(
        "bytecode that the program wrote",
        PYC
        + """
import sys
open(WORK + '/forged.pyc', 'wb').write(pyc)
sys.path.insert(0, WORK)
import forged
""",
        grants="expose-rw=./work",
    ),
    made(
        "bytecode in an archive that the program wrote",
        PYC
        + """
import sys, zipfile
with zipfile.ZipFile(WORK + '/x.zip', 'w') as archive: archive.writestr('forged.pyc', pyc)
sys.path.insert(0, WORK + '/x.zip')
import forged
""",
        grants="expose-rw=./work",
    ),
    made(
        "bytecode that the program wrote beside a source",
        """
        import importlib._bootstrap_external as external, importlib.util, os, sys
        def evil(): print('ESCAPED')
        source = WORK + '/forged.py'
        open(source, 'w').write('pass')
        os.mkdir(WORK + '/__pycache__')
        known = os.stat(source)
        pyc = external._code_to_timestamp_pyc(evil.__code__, int(known.st_mtime), known.st_size)
        open(importlib.util.cache_from_source(source), 'wb').write(pyc)
        sys.path.insert(0, WORK)
        import forged
    """,
        grants="expose-rw=./work",
    ),
    Attack(
        "template",
        "the properties of multiprocessing, their template changed while the module runs",
        """
        import sys, weakref
        real = weakref.WeakKeyDictionary
        def evil():
            text = "print('ESC' + 'APED'); value = raw = 1 #%s%s%s%s%s%s%s"
            sys.modules['multiprocessing.sharedctypes'].template = text
            return real()
        weakref.WeakKeyDictionary = evil
        import multiprocessing.sharedctypes
    """,
        kind="text",
        alone=True,
    ),
]
