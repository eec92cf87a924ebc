"""What SQL opens is judged by the Python layer, whatever the provider; the error is sqlite3's own and tells of the refusal."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sqlite3

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke
PROVIDERS = pytest.mark.parametrize("provider", ["landlock", "subprocess"])
PROFILE = "python-import=*\npython-api=ALLOW:threads\npython-api=ALLOW:os.fork\nexpose-rw=./work\nexpose-ro=./ro\n"


def database(place: Place, name: str) -> None:
    """A table t with the row 7."""
    (place.folder / name).parent.mkdir(exist_ok=True)
    with sqlite3.connect(place.folder / name) as made:
        made.execute("create table t(a)")
        made.execute("insert into t values (7)")
    made.close()


@pytest.fixture
def there(place: Place) -> Place:
    (place.folder / "work").mkdir()
    database(place, "out/base.db")
    database(place, "ro/base.db")
    place.profile(PROFILE)
    return place


# What is tried, the error of plain Python where the kernel refuses it, and the lines that the note offers.
REFUSED = {
    "attach": ("c.execute(\"attach 'out/base.db' as x\")", "unable to open database: out/base.db", ["expose-ro=./out/base.db", "expose-rw=./out/base.db"]),
    "attach, reading": (
        "c.execute(\"attach 'file:out/base.db?mode=ro' as x\")",
        "unable to open database: file:out/base.db?mode=ro",
        ["expose-ro=./out/base.db"],
    ),
    "a cursor": ("c.cursor().execute(\"attach 'file:out/base.db?mode=ro' as x\")", "unable to open database: file:out/base.db?mode=ro", ["expose-ro=./out/base.db"]),
    "vacuum into": ("c.execute(\"vacuum into 'out/new.db'\")", "unable to open database: out/new.db", ["expose-ro=./out/new.db", "expose-rw=./out"]),
    "connect": ("sqlite3.connect('out/base.db')", "unable to open database file", ["expose-ro=./out/base.db", "expose-rw=./out/base.db"]),
    "connect, reading": ("sqlite3.connect('file:out/base.db?mode=ro', uri=True)", "unable to open database file", ["expose-ro=./out/base.db"]),
    "connect, nothing there": ("sqlite3.connect('file:none/base.db?mode=ro', uri=True)", "unable to open database file", ["expose-ro=./none/base.db"]),
    "a path object": ("sqlite3.Connection(pathlib.Path('out/base.db'))", "unable to open database file", ["expose-ro=./out/base.db", "expose-rw=./out/base.db"]),
    "write what may be read": (
        "sqlite3.connect('ro/base.db').execute('insert into t values (1)')",
        "attempt to write a readonly database",
        ["expose-rw=./ro/base.db"],
    ),
    "a new one where nothing may be written": (
        "sqlite3.connect('ro/new.db').execute('create table x(a)')",
        "unable to open database file",
        ["expose-rw=./ro/new.db"],
    ),
}  # fmt: skip


@PROVIDERS
def test_the_error_is_sqlites_and_tells_of_the_refusal(there: Place, provider: str) -> None:
    there.provider = provider
    code = f"""
import json, pathlib, sqlite3, pysandboxes
c = sqlite3.connect("file:work/a.db", uri=True)
c.execute("create table t(a)")
for what in {[code for code, _, _ in REFUSED.values()]!r}:
    try:
        eval(what)
        print(json.dumps(["ran", []]))
    except sqlite3.OperationalError as e:
        assert type(e) is sqlite3.OperationalError and len(e.__notes__) == len(pysandboxes.denials(e))
        assert e.__context__ is None and e.__cause__ is None
        assert e.sqlite_errorname in ("SQLITE_CANTOPEN", "SQLITE_ERROR", "SQLITE_READONLY", "SQLITE_READONLY_DIRECTORY"), e.sqlite_errorname
        print(json.dumps([str(e), [line for d in pysandboxes.denials(e) for line in d.add]]))
"""
    (there.folder / ".py-sandboxes").write_text(PROFILE + "python-api=ALLOW:eval\n")
    done = there.run("-c", code)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert dict(zip(REFUSED, said, strict=True)) == {name: [error, add] for name, (_, error, add) in REFUSED.items()}, (
        done.stderr
    )


WORKS = """
import pathlib, sqlite3, threading, os
c = sqlite3.connect("work/a.db")
c.executescript("create table t(a); insert into t values (1); pragma journal_mode=wal; insert into t values (2)")
c.execute("attach 'work/b.db' as b"); c.execute("create table b.t as select a from t"); c.commit()
c.execute("attach 'ro/base.db' as r")
print(c.execute("select x.a, y.a from main.t x, r.t y").fetchall(), [row for row in c.execute("select a from b.t")])
c.execute("vacuum into 'work/v.db'")
target = sqlite3.connect(pathlib.Path("work/c.db")); c.backup(target); print(target.execute("select a from t").fetchall(), target.execute("pragma journal_mode=delete").fetchall())
m = sqlite3.connect(":memory:"); m.deserialize(target.serialize()); print(list(m.iterdump()))
m.create_function("twice", 1, lambda v: sqlite3.connect("ro/base.db").execute("select a * 2 from t").fetchone()[0])
print(m.execute("select twice(a) from t").fetchall())
class C(sqlite3.Connection):
    def __init__(self, *a, **k): super().__init__(*a, **k); self.extra = 1
print(sqlite3.connect("work/a.db", factory=C).extra, sqlite3.Connection(pathlib.Path("work/v.db")).execute("select count(*) from t").fetchall())
print(sqlite3.connect("file:work/d.db?vfs=unix-dotfile", uri=True).execute("create table x(a)").fetchall())
t = sqlite3.connect("work/t.db"); t.execute("create table t(a blob)"); t.execute("insert into t values (zeroblob(4))"); t.commit()
with t, t.blobopen("t", "a", 1) as blob: blob.write(b"abcd")
print(t.execute("select a from t").fetchall())
for bad in ("attach 'work/none/x.db' as n", "attach 'work' as n", "select * from nothing", "attach 'file:work/none.db?mode=ro' as n"):
    try: c.execute(bad)
    except sqlite3.Error as e: print(type(e).__name__, e, e.sqlite_errorname, getattr(e, "__notes__", None))
def many(name):
    x = sqlite3.connect("work/" + name)
    x.execute("pragma synchronous=off"); x.execute("create table t(a)")
    for _ in range(30): x.execute("insert into t values (1)"); x.commit()
threads = [threading.Thread(target=many, args=(name,)) for name in "123"]
for thread in threads: thread.start()
for thread in threads: thread.join()
print([sqlite3.connect("work/" + name).execute("select count(*) from t").fetchall() for name in "123"])
pid = os.fork()
if pid == 0:
    os._exit(len(sqlite3.connect(":memory:").execute("attach 'ro/base.db' as r").fetchall()))
print(os.waitpid(pid, 0)[1])
"""


@PROVIDERS
@pytest.mark.parametrize("ignore", [False, True])
def test_what_is_allowed_is_as_in_plain_python(there: Place, provider: str, ignore: bool) -> None:
    there.provider = provider
    if ignore:
        (there.folder / ".py-sandboxes").write_text(PROFILE + "ignore=*.key\nignore-best-effort=true\n")
    bare = there.bare("-W", "ignore", "-c", WORKS)
    for made in (there.folder / "work").iterdir():
        made.unlink()
    done = there.run("-W", "ignore", "-c", WORKS)
    assert bare.returncode == 0, bare.stderr
    assert (done.stdout, done.returncode) == (bare.stdout, 0), done.stderr


@PROVIDERS
def test_an_ignored_database(there: Place, provider: str) -> None:
    there.provider = provider
    database(there, "work/a.key")
    there.profile(PROFILE + "ignore=*.key\nignore-best-effort=true\n")
    done = there.run("-c", "import sqlite3\nsqlite3.connect(':memory:').execute(\"attach 'work/a.key' as x\")")
    assert "sqlite3.OperationalError: unable to open database: work/a.key" in done.stderr
    assert "the line ignore=*.key" in done.stderr


def test_temporary_files_go_where_they_may(there: Place) -> None:
    sort = (
        "import sqlite3\nc = sqlite3.connect(':memory:')\n"
        "c.executescript('pragma temp_store=1; pragma cache_size=1; create temp table q(a);'\n"
        "'with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) insert into q select hex(randomblob(50)) from n;')\n"
        "print(c.execute('select count(*) from q').fetchall())"
    )
    done = there.run("-c", sort)
    assert done.stdout == ""
    assert "disk I/O error" in done.stderr
    assert "expose-rw=" in done.stderr
    there.profile(PROFILE + "env=TMPDIR=./work\n")
    assert there.run("-c", sort).stdout.strip() == "[(20000,)]"


def test_without_a_sqlite_to_be_seen(there: Place) -> None:
    """The event alone, as it comes from a SQLite whose symbols are hidden: refused where no kernel holds what it opens."""
    raise_it = "import sys\nsys.audit('sqlite3.connect', ':memory:')\nprint('passed')"
    there.provider = "landlock"
    assert there.run("-c", raise_it).stdout == "passed\n"
    there.provider = "subprocess"
    done = there.run("-c", raise_it)
    assert done.stdout == ""
    assert "what SQL opens cannot be judged" in done.stderr
    assert "os-sandbox=landlock" in done.stderr


def test_an_error_of_a_hidden_sqlite_is_sqlites_too(there: Place) -> None:
    """Once a library that calls itself _sqlite3 cannot be held, the event judges for all of them."""
    other = importlib.util.find_spec("_queue")
    assert other and other.origin
    shutil.copy(other.origin, there.folder / "work/_sqlite3.so")
    there.provider = "landlock"
    there.profile(PROFILE + "python-api=ALLOW:native\n")
    done = there.run(
        "-c",
        "import ctypes, os, sqlite3, pysandboxes\n"
        "ctypes.CDLL(os.path.abspath('work/_sqlite3.so'))\n"
        "print(sqlite3.connect('work/new.db').execute('select 1').fetchall())\n"
        "try: sqlite3.connect('out/base.db')\n"
        "except sqlite3.Error as e: print(type(e).__name__, e, e.sqlite_errorcode, e.sqlite_errorname, pysandboxes.denials(e)[0].add, len(e.__notes__))\n",
    )
    assert done.stdout.splitlines() == [
        "[(1,)]",
        "OperationalError unable to open database file 14 SQLITE_CANTOPEN ('expose-ro=./out/base.db',) 1",
    ], done.stderr


def test_learned_from_sql(there: Place) -> None:
    """Only what is written is learned as written, although SQLite opens everything for writing."""
    there.file(
        "program.py",
        """
        import sqlite3
        c = sqlite3.connect(":memory:")
        c.execute("attach 'ro/base.db' as r")
        print(c.execute("select a from r.t").fetchall())
        c.execute("vacuum into 'work/copy.db'")
        c.execute("attach 'out/base.db' as o")
        c.execute("pragma o.journal_mode=off")
        c.execute("insert into o.t values (8)")
        c.commit()
        """,
    )
    (there.folder / ".py-sandboxes").unlink()
    done = there.run("--learn", "program.py")
    assert done.returncode == 0, done.stderr
    rules = [
        line.split("  #")[0] for line in (there.folder / ".py-sandboxes").read_text().splitlines() if line.startswith("expose")
    ]
    assert sorted(rules) == ["expose-ro=./ro", "expose-rw=./out", "expose-rw=./work"]
    (there.folder / "work/copy.db").unlink()
    assert there.run("program.py").stdout == "[(7,)]\n"
