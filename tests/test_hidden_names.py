"""Lists of a folder do not name what ignore rules hide, and are in all else as in plain Python."""

from __future__ import annotations

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

IGNORE = "python-import=*\nexpose-rw=./data\nignore-best-effort=true\nignore=*.hid\nignore=./data/private/**/*.txt\n"


@pytest.fixture(params=["landlock", "subprocess"])
def there(place: Place, request: pytest.FixtureRequest) -> Place:
    place.provider = request.param
    for name in ("a.hid", "b.txt", "c", "dir.hid/x", "sub/e.hid", "sub/f", "private/g.txt", "private/h", "private/deep/i.txt"):
        place.file(f"data/{name}", name)
    return place


#: How a folder can be listed: an expression for the names, given the folder d.
LISTS = {
    "listdir": "os.listdir(d)",
    "listdir by keyword": "os.listdir(path=d)",
    "listdir of bytes": "[os.fsdecode(n) for n in os.listdir(os.fsencode(d))]",
    "listdir of a path": "os.listdir(pathlib.Path(d))",
    "listdir of a descriptor": "os.listdir(os.open(d, os.O_RDONLY))",
    "listdir of here": "(os.chdir(d), os.listdir())[1]",
    "listdir of None": "(os.chdir(d), os.listdir(None))[1]",
    "listdir through a link": "(os.symlink(here + '/' + d, 'data/l'), {*os.listdir('data/l')} - {'l'}, os.unlink('data/l'))[1]",
    "scandir": "[e.name for e in os.scandir(d)]",
    "scandir of bytes": "[os.fsdecode(e.name) for e in os.scandir(os.fsencode(d))]",
    "scandir of a descriptor": "[e.name for e in os.scandir(os.open(d, os.O_RDONLY))]",
    "scandir by next": "drained(os.scandir(d).__next__)",
    "scandir of the type": "(lambda it: drained(lambda: type(it).__next__(it)))(os.scandir(d))",
    "scandir after a change of folder": "(lambda it: (os.chdir('/'), [e.name for e in it])[1])(os.scandir(d))",
    "scandir in threads": "list(futures.ThreadPoolExecutor(1).submit(lambda: [e.name for e in os.scandir(d)]).result())",
    "walk": "[n for _, ds, fs in os.walk(d) if _ == d for n in ds + fs]",
    "fwalk": "[n for _, ds, fs, fd in os.fwalk(d) if _ == d for n in ds + fs]",
    "iterdir": "[p.name for p in pathlib.Path(d).iterdir()]",
    "Path.glob": "[p.name for p in pathlib.Path(d).glob('*')]",
    "glob": "[os.path.basename(n) for n in glob.glob(d + '/*')]",
}
CODE = """
import glob, os, pathlib
from concurrent import futures
def drained(step):
    names = []
    try:
        while True: names.append(step().name)
    except StopIteration: return names
here, found = os.getcwd(), {{}}
for d in ("data", "data/sub", "data/private", "data/private/deep"):
    os.chdir(here)
    found[d] = sorted({expression})
os.chdir(here)
print(found)
"""
ALL = {
    "data": ["a.hid", "b.txt", "c", "dir.hid", "private", "sub"],
    "data/sub": ["e.hid", "f"],
    "data/private": ["deep", "g.txt", "h"],
    "data/private/deep": ["i.txt"],
}
SHOWN = {"data": ["b.txt", "c", "private", "sub"], "data/sub": ["f"], "data/private": ["deep", "h"], "data/private/deep": []}


def test_no_list_names_what_is_hidden(there: Place) -> None:
    there.profile(IGNORE + "python-api=ALLOW:threads\n")
    every = "".join(CODE.format(expression=expression) for expression in LISTS.values())
    bare, done = there.bare("-c", every), there.run("-c", every)
    assert bare.stdout == f"{ALL}\n" * len(LISTS), bare.stderr
    assert dict(zip(LISTS, done.stdout.splitlines(), strict=False)) == dict.fromkeys(LISTS, str(SHOWN)), done.stderr


def test_a_folder_that_is_moved_while_it_is_listed(there: Place) -> None:
    there.profile(IGNORE)
    code = """
import os
try: os.rename('data/private', 'data/x')
except PermissionError as e: print(type(e).__name__)
it = os.scandir('data/private')
os.mkdir('data/y'); os.chdir('data/y'); os.mkdir('data'); os.mkdir('data/private')
print(sorted(e.name for e in it))
"""
    done = there.run("-c", code)
    assert done.stdout == "RulePermissionError\n['deep', 'h']\n", done.stderr


def test_more_names_than_one_question_holds(there: Place) -> None:
    for number in range(2600):
        there.file(f"data/many/{'n' * 90}{number}.{'hid' if number % 3 else 'txt'}")
    there.profile(IGNORE)
    code = """
import os
os.chdir('data/many')
print(len(os.listdir()), sum(1 for e in os.scandir()), len(next(os.walk('.'))[2]))
"""
    assert there.bare("-c", code).stdout == "2600 2600 2600\n"
    assert there.run("-c", code).stdout == "867 867 867\n"


def test_all_else_is_as_in_plain_python(there: Place) -> None:
    there.profile(IGNORE)
    code = """
import os, pathlib
def show(make):
    try: print(repr(make()))
    except Exception as e: print(type(e).__mro__[-4:-1], e.args, getattr(e, 'filename', 0))
class P:
    def __fspath__(self): return 'data/sub'
class S(str): pass
ODD = 'x' * 300, 'data\\0', 3.5, 10**30, True
def scan(*a, **k): return sorted((e.name, e.path, e.is_file(), e.stat().st_size) for e in os.scandir(*a, **k))
for f in os.listdir, scan:
    for a in ('data/sub', b'data/sub', P(), S('data/sub'), 'data/c', 'data/absent', b'data/absent', *ODD):
        show(lambda: [n for n in f(a) if 'e.hid' not in str(n)])
    show(lambda: f('data', 'data')); show(lambda: f(path='data/absent'))
    show(lambda: f(dir='data')); show(lambda: f(data=1, path=2))
it = os.scandir('data/sub')
print(type(it), type(it).__name__, type(it).__next__, [n for n in dir(it) if n[0] != '_'])
with it as same: print(same is it)
print(list(it), repr(next(it, 'ended')))
it.close(); it.close()
print(os.listdir.__text_signature__, os.scandir.__doc__ == __import__('posix').scandir.__doc__)
"""
    bare, done = there.bare("-c", code), there.run("-c", code)
    assert done.stdout == bare.stdout, done.stderr
    assert "No such file" in bare.stdout


def test_in_another_interpreter(there: Place) -> None:
    there.profile(IGNORE + "python-api=ALLOW:native\npython-api=ALLOW:dynamic-code\n")
    code = """
try: import _interpreters as i; run = i.exec
except ImportError: import _xxsubinterpreters as i; run = i.run_string
list(__import__('os').scandir('data'))
run(i.create(), "import os; print(sorted(e.name for e in os.scandir('data')), sorted(os.listdir('data')))")
"""
    shown = SHOWN["data"]
    done = there.run("-c", code)
    assert done.stdout == f"{shown} {shown}\n", done.stderr
