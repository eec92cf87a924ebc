"""The package in a program under python-sb: what it imports for itself is not the program's to ask for."""

from __future__ import annotations

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

USES = """\
import pysandboxes
for name in pysandboxes.__all__:
    getattr(pysandboxes, name)
from pysandboxes import *
def initialise():
    print("initialised")
@sandbox
def double(n):
    return 2 * n
with sandboxes(initialise):
    print(is_in_sandbox(), double(4))
with SandboxPoolExecutor(2) as pool:
    print(pool.submit(double, 5).result())
"""
# Code that says it is the package's: its file does not hold it.
FORGES = """\
from pysandboxes import _context
code = compile("import sqlite3", "f", "exec").replace(co_filename=_context.__file__)
exec(code, {"__package__": "pysandboxes", "__name__": "pysandboxes._context"})
"""


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
def test_it_is_imported_and_used_without_a_rule(place: Place, provider: str) -> None:
    place.provider = provider
    place.profile("python-api=ALLOW:threads\n")
    place.file("uses.py", USES)
    done = place.run("uses.py")
    assert (done.stdout, done.returncode) == ("initialised\nTrue 8\n10\n", 0), done.stderr


def test_learning_writes_no_rule_for_it(place: Place) -> None:
    place.file("uses.py", USES.partition("with SandboxPool")[0])
    done = place.run("--learn=learned", "uses.py")
    assert done.returncode == 0, done.stderr
    learned = place.folder / "learned"
    lines = learned.read_text().splitlines() if learned.exists() else []
    assert [line for line in lines if line.startswith(("python-import", "python-api", "expose"))] == []


def test_code_that_bears_its_name_is_the_program_s(place: Place) -> None:
    place.profile("python-api=ALLOW:dynamic-code\npython-import=types\n")
    place.file("forges.py", FORGES)
    done = place.run("forges.py")
    assert "importing sqlite3 is refused" in done.stderr, done.stderr
    bare = place.bare("forges.py")
    assert (bare.returncode, bare.stderr) == (0, ""), "without a sandbox it works"
