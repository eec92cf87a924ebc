"""dbm and shelve: judged by the flag and by the names of the files that are really opened."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from complete_mode import Place

PROFILE = "python-import=*\npython-api=ALLOW:deserialization\nexpose-rw=./work\nexpose-ro=./ro\n"
PROVIDERS = pytest.mark.parametrize("provider", ["landlock", "subprocess"])
MODULES = ["dbm.dumb", "dbm.ndbm", "dbm.gnu", "dbm.sqlite3"]


def has(python: Path, module: str) -> bool:
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


@pytest.fixture
def there(place: Place, request: pytest.FixtureRequest) -> Place:
    """A place whose interpreter has the module: the tests' own, or the system's of the same version."""
    module = request.getfixturevalue("module")
    if not has(Path(sys.executable), module):
        place.bin = request.getfixturevalue("public_bin")
        if place.bin is None or not has(place.bin / "python", module):
            pytest.skip(f"no interpreter of this version has {module}")
    for folder in ("work", "ro", "out"):
        (place.folder / folder).mkdir()
        if folder != "work":
            assert (
                place.bare(
                    "-c", f"import {module} as m; d = m.open('{folder}/base', 'c'); d[b'k'] = b'v'; d.close()"
                ).returncode
                == 0
            )
    place.profile(PROFILE)
    return place


@PROVIDERS
@pytest.mark.parametrize("module", MODULES)
def test_what_is_allowed_is_as_in_plain_python(there: Place, provider: str, module: str) -> None:
    there.provider = provider
    code = f"""
import {module} as m, pathlib, shelve, os
class P:
    def __fspath__(self): return "work/p"
for name in ("work/a", b"work/b", pathlib.Path("work/c"), P()):
    for flag in "ncwr":
        try:
            with m.open(name, flag) as d:
                if flag != "r": d[b"k"] = b"v"
                print(type(name).__name__, flag, d[b"k"])
        except Exception as e: print(type(e).__name__, e)
with shelve.Shelf(m.open("work/s", "c")) as s: s["k"] = [1]; print(s["k"])
with m.open("ro/base", "r") as d: print(d[b"k"])
for bad in ((), (1,), ("work/none", "r"), ("work/none/x", "c"), ("work/a", "x"), ("work/a", ""), ("work/a", 5), ("work/a", "c", "m"), ("a\\0b", "c"), (None, "c")):
    try: print(type(m.open(*bad)))
    except BaseException as e: print(bad, type(e).__name__, e, getattr(e, "errno", None))
print(sorted(os.listdir("work")))
"""
    bare = there.bare("-c", code)
    assert bare.returncode == 0, bare.stderr
    for made in (there.folder / "work").iterdir():
        made.unlink()
    done = there.run("-c", code)
    assert (done.stdout, done.returncode) == (bare.stdout, 0), done.stderr


@PROVIDERS
@pytest.mark.parametrize("module", MODULES)
def test_what_is_not_is_refused_by_its_rule(there: Place, provider: str, module: str) -> None:
    there.provider = provider
    attempts = [("out/base", "r"), ("out/base", "w"), ("out/made", "c"), ("ro/base", "w"), ("ro/made", "n")]
    code = f"""
import {module} as m, pysandboxes
class Turning:
    n = 0
    def __fspath__(self):
        self.n += 1
        return "work/a" if self.n == 1 else "out/base"
for name, flag in {attempts}:
    try:
        d = m.open(name, flag); d[b"k"] = b"changed"; d.close()
        print(name, flag, "OPENED")
    except Exception as e:
        print(name, flag, [line.split("=")[0] for line in pysandboxes.denials(e)[-1].add])
try: print(m.open(Turning(), "c").keys())
except Exception as e: print("refused")
"""
    done = there.run("-c", code)
    assert "OPENED" not in done.stdout, done.stdout
    assert "b'k'" not in done.stdout, done.stdout
    assert done.stdout.count("expose-") == len(attempts), (done.stdout, done.stderr)
    read = there.bare("-c", f"import {module} as m\nfor n in ('out/base', 'ro/base'): print(m.open(n, 'r')[b'k'])")
    assert read.stdout == "b'v'\n" * 2, read.stderr
    assert not [*there.folder.glob("*/made*")]
