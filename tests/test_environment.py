"""A variable that no rule hands on is a KeyError as ever, which carries the line to add and says nothing of the host."""

from __future__ import annotations

import json

import pytest
from complete_mode import Place

pytestmark = pytest.mark.smoke

PROGRAM = """
import json, os

def attempt(function, *args):
    try:
        return [repr(function(*args))], [], []
    except Exception as e:
        notes, denials = e.__dict__.pop("__notes__", []), e.__dict__.pop("__sandbox_denials__", [])
        return [type(e).__name__, repr(e.args), e.__suppress_context__, repr(e.__cause__), repr(e.__dict__)], notes, denials

os.environ["DELETED"] = "1"
del os.environ["DELETED"]
own = os._Environ({}, os.environ.encodekey, os.environ.decodekey, os.environ.encodevalue, os.environ.decodevalue)
told = [attempt(os.environ.__getitem__, "NOT_SET")]
told += [attempt(lambda: os.environ["ON_THE_HOST"]), attempt(lambda: os.environb[b"NOT_SET"])]
odd = [attempt(lambda: os.environ[name]) for name in ("odd name", "a=b", "\\udcff")]
silent = [attempt(lambda: os.environ[name]) for name in ("GIVEN", "DELETED", "nul\\0", "", "x" * 5000, b"NOT_SET", 5)]
silent += [attempt(function, "NOT_SET") for function in (
    os.environ.get, os.getenv, os.environ.__contains__, os.environ.pop, os.environ.__delitem__, own.__getitem__)]
silent += [attempt(os.environ.pop, "NOT_SET", 3), attempt(os.path.expandvars, "$NOT_SET")]
silent += [attempt(os.environ.setdefault, "NEW", "1")]
print(json.dumps([told, odd, silent]))
"""
PROFILE = "python-import=json, os\nenv=GIVEN=x\nenv=DELETED=${DELETED}\n"


def outcome(text: str) -> list[list[object]]:
    return [one[0] for part in json.loads(text) for one in part]


def test_the_error_is_as_in_plain_python(place: Place) -> None:
    place.profile(PROFILE)
    place.environment.update(GIVEN="x", DELETED="y")
    program = place.file("program.py", PROGRAM)
    bare = place.bare(program)
    place.environment["ON_THE_HOST"] = "secret"
    done = place.run(program)
    assert bare.returncode == done.returncode == 0, done.stderr
    assert outcome(done.stdout) == outcome(bare.stdout)
    assert outcome(bare.stdout)[0] == ["KeyError", "('NOT_SET',)", True, "None", "{}"]


def test_what_it_carries(place: Place) -> None:
    profile = place.profile(PROFILE)
    place.environment.update(ON_THE_HOST="secret", DELETED="y")
    done = place.run("-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    told, odd, silent = json.loads(done.stdout)
    for (_, notes, denials), name in zip(told, ["NOT_SET", "ON_THE_HOST", "NOT_SET"], strict=True):
        line = f"env={name}=${{{name}}}"
        assert notes == [
            f"the variable {name} is refused: no env rule in {profile} hands it on.\nTo allow it, add:\n    {line}"
        ]
        assert [(d["family"], d["op"], d["subject"], d["add"], d["message"]) for d in denials] == [
            ("env", "getenv", name, [line], notes[0])
        ]
    for (_, notes, denials), name in zip(odd, ["odd name", "a=b", '"\\xff"'], strict=True):
        assert notes == [f"the variable {name} is refused: Its name has characters that no env rule can spell."]
        assert [d["add"] for d in denials] == [[]]
    assert [one[1:] for one in silent] == [[[], []]] * len(silent)
    assert "secret" not in done.stdout


def test_an_unhandled_one_ends_with_the_line(place: Place) -> None:
    place.profile("python-import=os\nunenv=TAKEN_*\n")
    done = place.run("-c", "import os\nos.environ['NOT_SET']")
    assert done.returncode == 1
    assert "\nKeyError: 'NOT_SET'\nthe variable NOT_SET is refused" in done.stderr
    assert done.stderr.endswith("\n    env=NOT_SET=${NOT_SET}\n")
    assert "the line unenv=TAKEN_* at " in place.run("-c", "import os\nos.environ['TAKEN_X']").stderr


def test_who_goes_on_without_it_has_no_refusal(place: Place) -> None:
    """Nothing is written down that another error of the program could be tied to."""
    place.profile("python-import=os, pysandboxes\n")
    code = """if True:
    import os, pysandboxes
    for _ in range(3):
        try: os.environ["NOT_SET"]
        except KeyError: pass
    try: open("/etc/shadow")
    except OSError as e: print([d.family for d in pysandboxes.denials(e)])
    print(len(pysandboxes._guard.denials()))
    """
    assert place.run("-c", code).stdout == "['file']\n1\n"
