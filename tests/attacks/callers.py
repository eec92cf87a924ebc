"""Be taken for the standard library: whose code asks decides what is charged, and code can claim to be anybody's."""

from __future__ import annotations

from functools import partial

from attack import Attack

STANDARD = "python-import=os\npython-import=sys\npython-import=importlib\npython-import=forged\n"

forged = partial(Attack, "caller", kind="text", imports="types", grants=STANDARD)
#: Neither loaded at the start nor granted; whatever imports it was not charged.
deputy = partial(Attack, "caller", kind="library", imports="importlib")

LOADER = """
import importlib.machinery, importlib.util, os, sys
class Loader(importlib.machinery.SourceFileLoader):
    def get_data(self, path):
        if path != {path}: raise OSError(path)
        return b"import colorsys; print('ESCAPED')"
    def path_stats(self, path):
        return {{'mtime': 1, 'size': 1}}
    def set_data(self, path, data, *, _mode=0): pass
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == 'forged': return importlib.util.spec_from_file_location(name, {path}, loader=Loader(name, {path}))
sys.meta_path.insert(0, Finder)
import forged
"""

PLANT = """
import importlib._bootstrap_external as external, os
code = compile("import colorsys; print('ESCAPED')", os.__file__, 'exec')
pyc = bytes(external._code_to_timestamp_pyc(code))
"""

CASES: list[Attack] = [
    forged("a loader from memory at a new path", LOADER.format(path="os.path.dirname(os.__file__) + '/forged.py'")),
    forged("a loader from memory at a file's path", LOADER.format(path="os.__file__")),
    forged(
        "a loader from memory with dots", LOADER.format(path="os.path.dirname(os.__file__) + '/../' + os.path.abspath('x.py')")
    ),
    forged("a loader from memory, frozen", LOADER.format(path="'<frozen os>'")),
    forged("a loader from memory, importlib", LOADER.format(path="'<frozen importlib._bootstrap>'")),
    forged(
        ".pyc with another's name",
        """
        import sys
        sys.path.insert(0, WORK)
        import forged
    """,
        plant=PLANT + "open(WORK + '/forged.pyc', 'wb').write(pyc)",
        grants=STANDARD + "expose-ro=./work",
    ),
    forged(
        "zip with another's name",
        """
        import sys
        sys.path.insert(0, WORK + '/x.zip')
        import forged
    """,
        plant=PLANT + "import zipfile\nzipfile.ZipFile(WORK + '/x.zip', 'w').writestr('forged.pyc', pyc)",
        grants=STANDARD + "expose-ro=./work",
    ),
    forged(
        "compile",
        """
        import os
        exec(compile("import colorsys; print('ESCAPED')", os.__file__, 'exec'))
    """,
        grants=STANDARD + "python-api=ALLOW:dynamic-code",
    ),
    forged(
        "code.replace",
        """
        import os
        def f():
            import colorsys
            print('ESCAPED')
        f.__code__ = f.__code__.replace(co_filename=os.__file__)
        f()
    """,
        grants=STANDARD + "python-api=ALLOW:dynamic-code",
    ),
    forged(
        "code.replace that hides in the file's own names",
        """
        import os
        def f():
            import colorsys
            print('ESCAPED')
        real = os.walk.__code__
        f.__code__ = f.__code__.replace(co_filename=real.co_filename, co_name=real.co_name, co_qualname=real.co_qualname,
                                        co_firstlineno=real.co_firstlineno, co_linetable=real.co_linetable)
        f()
    """,
        grants=STANDARD + "python-api=ALLOW:dynamic-code",
    ),
    forged(
        "a constant of the file's own code replaced",
        """
        import os, bisect
        class Bytes(bytes):
            def __eq__(self, other): return True
            __hash__ = bytes.__hash__
        def f():
            import colorsys
            print('ESCAPED')
        f.__code__ = f.__code__.replace(co_filename=bisect.__file__, co_consts=f.__code__.co_consts + (Bytes(),))
        f()
    """,
        grants=STANDARD + "python-import=bisect\npython-api=ALLOW:dynamic-code",
    ),
    deputy(
        "a relative import in another package",
        """
        import sys, xml.sax.xmlreader as reader
        reader.__package__ = 'colorsys'
        try: reader.IncrementalParser().parse('')
        except Exception: pass
        print('ESCAPED' if 'colorsys' in sys.modules else 'no')
    """,
        grants="python-import=xml\npython-import=sys",
        kind="object",
    ),
    deputy(
        "the library's code in a function of other globals",
        """
        import sys, xml.sax.xmlreader as reader
        __package__ = 'colorsys'
        def parse(self, source): pass
        parse.__code__ = reader.IncrementalParser.parse.__code__
        try: parse(None, '')
        except Exception: pass
        print('ESCAPED' if 'colorsys' in sys.modules else 'no')
    """,
        grants="python-import=xml\npython-import=sys",
        kind="object",
    ),
    *(
        deputy(
            name,
            f"""
            import sys
            try:
                {code}
            except Exception as error:
                print(type(error), error)
            print('ESCAPED' if 'colorsys' in sys.modules else 'no')
        """,
            grants=f"python-import={module}\npython-import=sys",
        )
        for name, module, code in [
            ("importlib.import_module", "importlib", "import importlib; importlib.import_module('colorsys')"),
            ("pkgutil.resolve_name", "pkgutil", "import pkgutil; pkgutil.resolve_name('colorsys:rgb_to_hsv')"),
            ("pydoc.locate", "pydoc", "import pydoc; pydoc.locate('colorsys.rgb_to_hsv')"),
            ("pydoc.safeimport", "pydoc", "import pydoc; pydoc.safeimport('colorsys')"),
            ("unittest.loader", "unittest", "import unittest; unittest.TestLoader().loadTestsFromName('colorsys.x')"),
            ("unittest.mock", "unittest", "import unittest.mock; unittest.mock.patch('colorsys.rgb_to_hsv').start()"),
            ("logging.config", "logging", "import logging.config; logging.config.BaseConfigurator({}).resolve('colorsys.x')"),
            ("xml.sax", "xml", "import xml.sax; xml.sax.make_parser(['colorsys'])"),
            ("warnings category", "warnings", "import warnings; warnings._getcategory('colorsys.Warning')"),
            (
                "EntryPoint",
                "importlib",
                "import importlib.metadata as m; m.EntryPoint('a', 'colorsys:rgb_to_hsv', 'g').load()",
            ),
            (
                "finalize",
                "weakref",
                "import weakref; weakref.finalize(type('C', (), {})(), __import__, 'colorsys')",
            ),
            (
                "ExitStack",
                "contextlib",
                "import contextlib as c; s = c.ExitStack(); s.callback(__import__, 'colorsys'); s.close()",
            ),
            ("generator", "heapq", "import heapq; list(heapq.merge(['colorsys'], [], key=__import__))"),
        ]
    ),
    # ---- a function that the standard library may call for itself, called through it
    *(
        Attack("caller", f"{name} by weakref.finalize", f"import weakref\nclass C: pass\nkept = C()\n{code}", kind="library")
        for name, code in {
            "code.replace": """
def f(): return 'x'
f.__code__ = weakref.finalize(kept, f.__code__.replace, co_consts=(None, 'ESCAPED'))()
print(f())
""",
            "FunctionType": """
import types
print(weakref.finalize(kept, types.FunctionType, (lambda: 'ESCAPED').__code__, {})()())
""",
            "marshal.loads": """
import marshal
print('ESCAPED' if weakref.finalize(kept, marshal.loads, marshal.dumps(C.__init__.__doc__))() else 'no')
""",
            "runpy.run_path": """
import runpy
open(WORK + '/x.py', 'w').write("print('ESC' + 'APED')")
weakref.finalize(kept, runpy.run_path, WORK + '/x.py')()
""",
        }.items()
    ),
]
