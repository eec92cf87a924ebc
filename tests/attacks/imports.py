"""Import what the profile does not grant."""

from __future__ import annotations

from functools import partial

from attack import Attack

imported = partial(Attack, "import")

CASES: list[Attack] = [
    imported(
        "statement",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import colorsys
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="direct",
    ),
    imported(
        "import_module",
        """
        import importlib
        importlib.import_module('colorsys')
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="twin",
        alone=True,
    ),
    imported(
        "__import__",
        """
        import sys; sys.modules.pop('colorsys', 0)
        __import__('colorsys')
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="twin",
    ),
    imported(
        "__import__ by keyword",
        """
        import sys; sys.modules.pop('colorsys', 0)
        __import__(name='colorsys', level=0)
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="twin",
    ),
    imported(
        "importlib.__import__",
        """
        import importlib
        importlib.__import__('colorsys')
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="twin",
        alone=True,
    ),
    imported(
        "_gcd_import",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import importlib._bootstrap as b
        b._gcd_import('colorsys')
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="twin",
    ),
    imported(
        "_find_and_load",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import importlib._bootstrap as b
        b._find_and_load('colorsys', b._gcd_import)
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="twin",
    ),
    imported(
        "_find_and_load_unlocked",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import importlib._bootstrap as b
        b._find_and_load_unlocked('colorsys', b._gcd_import)
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="twin",
    ),
    imported(
        "_load of a spec",
        """
        import importlib._bootstrap as b, importlib.util as u
        b._load(u.find_spec('colorsys'))
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="twin",
        alone=True,
    ),
    imported(
        "spec under another name",
        """
        import importlib.util as u
        s = u.find_spec('colorsys')
        s = u.spec_from_file_location('x', s.origin)
        m = u.module_from_spec(s); s.loader.exec_module(m)
        print('ESCAPED' if m.rgb_to_hsv else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="direct",
        alone=True,
    ),
    imported(
        "load_module of a loader",
        """
        import importlib.machinery as m, os
        m.SourceFileLoader('colorsys', os.path.join(os.path.dirname(os.__file__), 'colorsys.py')).load_module('colorsys')
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="twin",
        alone=True,
    ),
    imported(
        "submodule of a module in disguise",
        """
        import sys, types, os
        m = types.ModuleType('x'); m.__path__ = [os.path.dirname(os.__file__)]; sys.modules['x'] = m
        import x.colorsys
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="state",
        alone=True,
        gap="import rules go by the name that is asked for: a file that another name leads to is not charged",
    ),
    imported(
        "finder of the program",
        """
        import sys, importlib.util as u
        s = u.find_spec('colorsys')
        class F:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == 'other': return u.spec_from_file_location(name, s.origin)
        sys.meta_path.insert(0, F)
        import other
        print('ESCAPED' if other.rgb_to_hsv else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="state",
        alone=True,
        gap="import rules go by the name that is asked for: a file that another name leads to is not charged",
    ),
    imported(
        "name that lies",
        """
        class S(str):
            def __eq__(self, o): return True
            def __hash__(self): return hash('colorsys')
            def __str__(self): return 'os'
        __import__(S('colorsys'))
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="object",
        alone=True,
    ),
    imported(
        "name that lies to importlib",
        """
        import importlib
        class S(str):
            def startswith(self, *a): return False
            def __str__(self): return 'os'
            def __repr__(self): return 'os'
        importlib.import_module(S('colorsys'))
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="object",
        alone=True,
    ),
    imported(
        "relative import from a package in disguise",
        """
        __import__('sax', dict(__package__='xml', __path__=[], __name__='xml'), {}, ['x'], 1).make_parser
        print('ESCAPED')
    """,
        grants="python-import=DENY:xml.sax",
        kind="state",
        alone=True,
    ),
    imported(
        "fromlist of a package",
        """
        import sys; [sys.modules.pop(n) for n in [*sys.modules] if n.startswith('xml.sax')]
        import xml; vars(xml).pop('sax', 0)
        from xml import sax
        print('ESCAPED')
    """,
        grants="python-import=DENY:xml.sax",
        kind="direct",
    ),
    imported(
        "handle_fromlist",
        """
        import sys; [sys.modules.pop(n) for n in [*sys.modules] if n.startswith('xml.sax')]
        import xml; vars(xml).pop('sax', 0)
        import importlib._bootstrap as b, xml
        b._handle_fromlist(xml, ['sax'], b._gcd_import)
        print('ESCAPED' if hasattr(xml, 'sax') else '')
    """,
        grants="python-import=DENY:xml.sax",
        kind="twin",
    ),
    imported(
        "builtin module by _imp",
        """
        import sys; sys.modules.pop('faulthandler', 0)
        import _imp, importlib.machinery as m
        f = _imp.create_builtin(m.ModuleSpec('faulthandler', None)); _imp.exec_builtin(f)
        print('ESCAPED' if f.enable else '')
    """,
        grants="python-import=DENY:faulthandler",
        kind="twin",
    ),
    imported(
        "frozen module by _imp",
        """
        import _imp
        print('ESCAPED' if _imp.get_frozen_object('__hello__') else '')
    """,
        grants="python-import=DENY:__hello__",
        kind="twin",
        alone=True,
    ),
    imported(
        "init_frozen",
        """
        import _imp
        print('ESCAPED' if _imp.init_frozen('__hello__') else '')
    """,
        grants="python-import=DENY:__hello__",
        kind="twin",
        alone=True,
    ),
    imported(
        "FrozenImporter",
        """
        import importlib.machinery as m, contextlib, io
        f = m.FrozenImporter
        s = f.find_spec('__phello__')
        import importlib.util as u
        x = u.module_from_spec(s); f.exec_module(x)
        print('ESCAPED')
    """,
        grants="python-import=DENY:__phello__",
        kind="twin",
        alone=True,
    ),
    imported(
        "BuiltinImporter",
        """
        import importlib.machinery as m, importlib.util as u
        s = m.BuiltinImporter.find_spec('faulthandler')
        x = u.module_from_spec(s); m.BuiltinImporter.exec_module(x)
        print('ESCAPED' if x.enable else '')
    """,
        grants="python-import=DENY:faulthandler",
        kind="twin",
        alone=True,
    ),
    imported(
        "BuiltinImporter.load_module",
        """
        import importlib.machinery as m
        print('ESCAPED' if m.BuiltinImporter.load_module('faulthandler').enable else '')
    """,
        grants="python-import=DENY:faulthandler",
        kind="twin",
        alone=True,
    ),
    imported(
        "extension by its loader",
        """
        import importlib.machinery as m, importlib.util as u
        s = u.find_spec('_bisect')
        x = s.loader.create_module(s); s.loader.exec_module(x)
        print('ESCAPED' if x.insort_left else '')
    """,
        grants="python-import=DENY:_bisect",
        kind="twin",
        alone=True,
    ),
    imported(
        "a loaded module from sys.modules by import",
        """
        import posixpath
        print('ESCAPED')
    """,
        grants="python-import=DENY:posixpath",
        kind="state",
        alone=True,
    ),
    imported(
        "loaded by import_module",
        """
        import importlib
        importlib.import_module('posixpath')
        print('ESCAPED')
    """,
        grants="python-import=DENY:posixpath",
        kind="twin",
        alone=True,
    ),
    imported(
        "deny by another case of dots",
        """
        import sys; [sys.modules.pop(n) for n in [*sys.modules] if n.startswith('xml.sax')]
        import xml; vars(xml).pop('sax', 0)
        import importlib
        importlib.import_module('.sax', 'xml')
        print('ESCAPED')
    """,
        grants="python-import=DENY:xml.sax",
        kind="direct",
    ),
    imported(
        "reload by a changed spec",
        """
        import importlib, importlib.util as u, sys, stat as m
        s = u.find_spec('colorsys')
        class F:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == 'stat': return u.spec_from_file_location('stat', s.origin)
        sys.meta_path.insert(0, F)
        importlib.reload(m)
        print('ESCAPED' if m.rgb_to_hsv else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="state",
        alone=True,
        gap="import rules go by the name that is asked for: a file that another name leads to is not charged",
    ),
    imported(
        "sys.modules subclass with missing",
        """
        import sys, importlib
        class D(dict):
            def __missing__(self, k): raise KeyError(k)
        sys.modules = D(sys.modules)
        importlib.import_module('colorsys')
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="state",
        alone=True,
    ),
]
