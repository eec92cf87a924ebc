"""Import by a library that imports what its caller names."""

from __future__ import annotations

from functools import partial

from attack import Attack

imported = partial(Attack, "import")

CASES: list[Attack] = [
    imported(
        "runpy.run_module",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import runpy
        print('ESCAPED' if 'rgb_to_hsv' in runpy.run_module('colorsys') else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
    ),
    imported(
        "runpy.run_path",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import runpy, os
        print('ESCAPED' if 'rgb_to_hsv' in runpy.run_path(os.path.join(os.path.dirname(os.__file__), 'colorsys.py')) else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
    ),
    imported(
        "pkgutil.resolve_name",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import pkgutil
        pkgutil.resolve_name('colorsys:rgb_to_hsv')
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
    ),
    imported(
        "pkgutil importer",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import pkgutil, os
        s = pkgutil.get_importer(os.path.dirname(os.__file__)).find_spec('colorsys')
        s.loader.load_module('colorsys')
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
    ),
    imported(
        "pydoc.locate",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import pydoc, sys
        print('ESCAPED' if pydoc.locate('colorsys') and 'colorsys' in sys.modules else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
    ),
    imported(
        "pydoc.safeimport",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import pydoc, sys
        pydoc.safeimport('colorsys')
        print('ESCAPED' if 'colorsys' in sys.modules else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
    ),
    imported(
        "pydoc.importfile",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import pydoc, os
        pydoc.importfile(os.path.join(os.path.dirname(os.__file__), 'colorsys.py')).rgb_to_hsv
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
    ),
    imported(
        "unittest loader",
        """
        import unittest, sys
        unittest.TestLoader().loadTestsFromName('colorsys')
        print('ESCAPED' if 'colorsys' in sys.modules else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
        alone=True,
    ),
    imported(
        "logging.config",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import logging.config, sys
        try: logging.config.dictConfig(dict(version=1, handlers=dict(a={'()': 'colorsys.rgb_to_hsv'})))
        except Exception: pass
        print('ESCAPED' if 'colorsys' in sys.modules else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
    ),
    imported(
        "logging.config resolve",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import logging.config
        logging.config._resolve('colorsys.rgb_to_hsv')
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
    ),
    imported(
        "xml.sax",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import xml.sax, sys
        try: xml.sax.make_parser(['colorsys'])
        except Exception: pass
        print('ESCAPED' if 'colorsys' in sys.modules else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
    ),
    imported(
        "warnings category",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import warnings, sys
        try: warnings._getcategory('colorsys.rgb_to_hsv')
        except Exception: pass
        print('ESCAPED' if 'colorsys' in sys.modules else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
    ),
    imported(
        "EntryPoint.load",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import importlib.metadata
        importlib.metadata.EntryPoint('x', 'colorsys:rgb_to_hsv', 'g').load()
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
    ),
    imported(
        "pickle",
        r"""
        import sys; sys.modules.pop('colorsys', 0)
        import pickle
        pickle.loads(b'ccolorsys\nrgb_to_hsv\n.')
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys\npython-api=ALLOW:pickle.find_class",
        kind="library",
    ),
    imported(
        "copyreg extension",
        r"""
        import pickle, copyreg
        copyreg.add_extension('colorsys', 'rgb_to_hsv', 77)
        pickle.loads(b'\x80\x02\x82\x4d.')
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys\npython-api=ALLOW:pickle.find_class",
        kind="library",
        alone=True,
    ),
    imported(
        "zipimport",
        """
        import zipfile, sys, os
        with zipfile.ZipFile(WORK + '/x.zip', 'w') as z: z.write(os.path.join(os.path.dirname(os.__file__), 'colorsys.py'), 'colorsys.py')
        sys.path.insert(0, WORK + '/x.zip')
        import colorsys
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys\nexpose-rw=./work",
        kind="library",
        alone=True,
    ),
    imported(
        "zipimporter.load_module",
        """
        import zipfile, zipimport, os
        with zipfile.ZipFile(WORK + '/x.zip', 'w') as z: z.write(os.path.join(os.path.dirname(os.__file__), 'colorsys.py'), 'colorsys.py')
        zipimport.zipimporter(WORK + '/x.zip').load_module('colorsys')
        print('ESCAPED')
    """,
        grants="python-import=DENY:colorsys\nexpose-rw=./work",
        kind="library",
        alone=True,
    ),
    imported(
        "site.addsitedir",
        r"""
        import site, sys
        open(WORK + '/x.pth', 'w').write("import sys; sys.stdout.write('ESC' + 'APED')\n")
        site.addsitedir(WORK)
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    imported(
        "site.addpackage",
        r"""
        import site
        open(WORK + '/x.pth', 'w').write("import sys; sys.stdout.write('ESC' + 'APED')\n")
        site.addpackage(WORK, 'x.pth', set())
    """,
        grants="expose-rw=./work",
        kind="library",
        alone=True,
    ),
    imported(
        "test loader",
        """
        import doctest, sys
        doctest._normalize_module('colorsys') if hasattr(doctest, '_normalize_module') else 0
        try: doctest.testsource('colorsys', 'x')
        except Exception: pass
        print('ESCAPED' if 'colorsys' in sys.modules else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
        alone=True,
    ),
    imported(
        "ast and inspect",
        """
        import inspect, sys
        sys.argv = ['inspect', 'colorsys']
        try: inspect._main()
        except BaseException: pass
        print('ESCAPED' if 'colorsys' in sys.modules else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
        alone=True,
    ),
    imported(
        "LazyLoader",
        """
        import sys; sys.modules.pop('colorsys', 0)
        import importlib.util as u
        s = u.find_spec('colorsys')
        s.loader = u.LazyLoader(s.loader)
        m = u.module_from_spec(s); s.loader.exec_module(m)
        print('ESCAPED' if m.rgb_to_hsv else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="direct",
    ),
    imported(
        "codecs of a chosen module",
        """
        import encodings, encodings.aliases, codecs, sys
        encodings.aliases.aliases['mine'] = 'colorsys'
        sys.modules['encodings'].__path__.insert(0, __import__('os').path.dirname(__import__('os').__file__))
        try: codecs.lookup('mine')
        except LookupError: pass
        print('ESCAPED' if 'encodings.colorsys' in sys.modules else '')
    """,
        grants="python-import=DENY:colorsys",
        kind="library",
        alone=True,
        gap="import rules go by the name that is asked for: a file that another name leads to is not charged",
    ),
]
