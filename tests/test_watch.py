"""To be told of a first import disturbs no other import, however far that has come."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.smoke

PROGRAM = """\
import sys
from pysandboxes._watch import Watch

told = []
watch = Watch({watched!r}, lambda: told.append(True))
watch.begin()

class Meanwhile:
    \"\"\"Stands for another thread: what it does happens while an import is among the finders.\"\"\"
    @staticmethod
    def find_spec(name, path=None, target=None):
        {what}

sys.meta_path.insert({place}, Meanwhile)
for name in sys.builtin_module_names:
    __import__(name)
import json
print(told)
"""


@pytest.mark.parametrize("what", ["watch.end()", "watch.begin()", "watch.end(); watch.begin()"])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("watched", ["json", "never"])
def test_an_import_under_way(what: str, place: int, watched: str) -> None:
    code = PROGRAM.format(what=what, place=place, watched=watched)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout in ("[]\n", "[True]\n" if watched == "json" else "[]\n")
