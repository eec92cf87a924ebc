"""Put wrong things where the interpreter and the standard library keep what they have found out, and have them believe it."""

from __future__ import annotations

from functools import partial

from attack import Attack

cache = partial(Attack, kind="state", alone=True)

#: A module in a folder that no rule exposes.
MODULE = "open(HIDDEN + '/concealed.py', 'w').write('TEXT = \"s3cret\"')"
#: Bytecode that no source stands for, where the program may write.
BYTECODE = """
import importlib.util, marshal
code = compile("print('ESC' + 'APED')", 'm.py', 'exec')
open(WORK + '/m.py', 'w').write('x = 1')
open(WORK + '/planted.pyc', 'wb').write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
"""
WORKING = "expose-rw=./work"


def child(name: str, prepare: str, environment: str, arguments: str = "'-c', 'pass'") -> Attack:
    """A granted child in whose environment a variable makes the interpreter run a file of the program's."""
    code = f"""
import os, subprocess, sys
reads = f"print(open({{SECRET!r}}).read())"
{prepare}
done = subprocess.run([sys.executable, {arguments}], env={{**os.environ, {environment}}}, capture_output=True, text=True, input='')
got(done.stdout)
"""
    return cache("read", f"{name} of a child", code, grants=WORKING + "\npython-api=ALLOW:subprocess.run", kind="library")


CASES: list[Attack] = [
    # ---- of imports
    cache(
        "read",
        "sys.path_importer_cache",
        """
        import sys, importlib.machinery as m
        nowhere = WORK + '/nowhere'
        sys.path_importer_cache[nowhere] = m.FileFinder(HIDDEN, (m.SourceFileLoader, ['.py']))
        sys.path.insert(0, nowhere)
        import concealed
        got(concealed.TEXT)
    """,
        plant=MODULE,
    ),
    cache(
        "read",
        "what a FileFinder has listed",
        """
        import sys, importlib.machinery as m
        finder = m.FileFinder(HIDDEN, (m.SourceFileLoader, ['.py']))
        finder._path_cache = {'concealed.py'}
        finder._path_mtime = float('inf')
        got(finder.find_spec('concealed').loader.get_data(HIDDEN + '/concealed.py'))
    """,
        plant=MODULE,
    ),
    cache(
        "text",
        "where importlib looks for bytecode",
        """
        import sys, importlib._bootstrap_external as b
        b.cache_from_source = lambda path, *a, **k: WORK + '/planted.pyc'
        b._validate_timestamp_pyc = lambda *a: None
        sys.path.insert(0, WORK)
        import m
    """,
        grants=WORKING,
        plant=BYTECODE,
    ),
    cache(
        "text",
        "what importlib makes code of",
        """
        import sys, importlib._bootstrap_external as b, types
        def f(): print('no')
        b._compile_bytecode = lambda data, **k: f.__code__.replace(co_consts=(None, 'ESCAPED'))
        b.cache_from_source = lambda path, *a, **k: WORK + '/planted.pyc'
        b._validate_timestamp_pyc = lambda *a: None
        sys.path.insert(0, WORK)
        import m
    """,
        grants=WORKING,
        plant=BYTECODE,
    ),
    # ---- of codecs
    cache(
        "read",
        "the alias of a codec",
        """
        import encodings, encodings.aliases, sys
        encodings.aliases.aliases['odd'] = 'concealed'
        encodings.__path__.append(HIDDEN)
        try: 'x'.encode('odd')
        except LookupError: pass
        got(sys.modules['encodings.concealed'].TEXT)
    """,
        plant=MODULE,
    ),
    # ---- of pickle, gettext and linecache
    cache(
        "text",
        "copyreg's extensions",
        """
        import copyreg, pickle
        text = b"print('ESC' + 'APED')"
        copyreg._inverted_registry[1] = ('builtins', 'exec')
        copyreg._extension_cache[1] = exec
        pickle.loads(b'\\x80\\x02\\x82\\x01(X' + len(text).to_bytes(4, 'little') + text + b'tR.')
    """,
        grants="python-api=ALLOW:pickle.loads",
    ),
    cache(
        "text",
        "what gettext has parsed",
        """
        import gettext
        gettext._parse = lambda *a: ("print('ESC' + 'APED') or 0", '')
        gettext.c2py('n')(1)
    """,
    ),
    cache(
        "read",
        "a stale entry of linecache",
        """
        import linecache
        linecache.cache[SECRET] = (0, 0, [], SECRET)
        linecache.checkcache(SECRET)
        got(''.join(linecache.getlines(SECRET)))
    """,
    ),
    # ---- of temporary files
    cache("write", "tempfile.tempdir", "import tempfile\ntempfile.tempdir = HIDDEN\ntempfile.mkstemp()", grants=WORKING),
    cache(
        "write",
        "TMPDIR, asked again",
        "import os, tempfile\nos.environ['TMPDIR'] = HIDDEN\ntempfile.tempdir = None\ntempfile.mkdtemp()",
        grants=WORKING,
    ),
    cache(
        "write",
        "the names of temporary files",
        "import tempfile\ntempfile._name_sequence = iter([HIDDEN + '/x'] * 9)\ntempfile.mkstemp(prefix='', dir=WORK)",
        grants=WORKING,
    ),
    # ---- of children
    child("PYTHONPATH and sitecustomize", "open(WORK + '/sitecustomize.py', 'w').write(reads)", "'PYTHONPATH': WORK"),
    child("PYTHONSTARTUP", "open(WORK + '/s.py', 'w').write(reads)", "'PYTHONSTARTUP': WORK + '/s.py'", "'-i'"),
    child(
        "PYTHONWARNINGS",
        "open(WORK + '/odd.py', 'w').write(reads)",
        "'PYTHONPATH': WORK, 'PYTHONWARNINGS': 'error::odd.Warning'",
    ),
    child(
        "PYTHONBREAKPOINT",
        "open(WORK + '/odd.py', 'w').write(reads)",
        "'PYTHONPATH': WORK, 'PYTHONBREAKPOINT': 'odd.f'",
        "'-c', 'breakpoint()'",
    ),
]
