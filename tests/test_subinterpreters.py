"""Sub-interpreters, with the process's GIL and with one of their own: the rules hold in each of them."""

from __future__ import annotations

import sys

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

GRANTS = """\
python-import=os, sys, importlib, string, _xxsubinterpreters, _interpreters
python-api=ALLOW:native
python-api=ALLOW:dynamic-code
expose-ro=./open
"""

PROGRAM = """
import sys
if sys.version_info < (3, 13):
    import _xxsubinterpreters as interpreters
    made = [interpreters.create(isolated=own) for own in (True, False)]
else:
    import _interpreters as interpreters
    made = [interpreters.create(kind) for kind in ("isolated", "legacy")]
for interpreter in made:
    error = interpreters.run_string(interpreter, INNER)
    if error:
        print(error)
    interpreters.destroy(interpreter)
"""

INNER = """
import importlib, os, string
def tried(f):
    try:
        return f()
    except Exception as e:
        found = [getattr(e, a, None) for a in ("errno", "filename", "name")]
        return type(e).__name__, *found, "To allow it, add" in str(e)
print(tried(lambda: os.stat("/etc/passwd")))
print(tried(lambda: open("/etc/passwd")))
print(tried(lambda: __import__("json")))
print(tried(lambda: importlib.import_module("json")))
print(tried(lambda: os.setsid()))
print(tried(lambda: os.popen("true")))
print(tried(lambda: open("open/file").read()), tried(lambda: os.stat("open/file").st_size), string.digits, os.popen.__name__)
"""

EXPECTED = """\
('FileNotFoundError', 2, '/etc/passwd', None, True)
('FileNotFoundError', 2, '/etc/passwd', None, True)
('ModuleNotFoundError', None, None, 'json', True)
('ModuleNotFoundError', None, None, 'json', True)
('PermissionError', 1, None, None, True)
('PermissionError', 1, None, None, True)
seen 4 0123456789 popen
"""


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
def test_the_rules_hold_in_a_sub_interpreter(provider: str, place: Place) -> None:
    place.provider = provider
    place.file("open/file", "seen")
    place.profile(GRANTS)
    done = place.run("-c", f"INNER = {INNER!r}\n{PROGRAM}")
    assert done.stdout == EXPECTED * 2, done.stderr
    bare = place.bare("-c", f"INNER = {INNER!r}\n{PROGRAM}")
    assert "json' from" in bare.stdout, bare.stderr
    assert "seen 4" in bare.stdout, "without a sandbox all of it is there"


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="a sub-interpreter of CPython 3.12 and 3.13 leaves a megabyte behind by itself"
)
def test_what_the_guard_puts_into_one_ends_with_it(place: Place) -> None:
    place.profile(GRANTS + "expose-ro=/proc/self\n")
    done = place.run(
        "-c",
        """
import os, _xxsubinterpreters as interpreters
def resident():
    return int(open("/proc/self/statm").read().split()[1])
sizes = []
for n in range(90):
    made = interpreters.create()
    interpreters.run_string(made, "import os; os.path.exists('/etc/passwd')")
    interpreters.destroy(made)
    sizes.append(resident())
print(sizes[-1] - sizes[29])
""",
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64, "pages that 60 sub-interpreters left behind"
