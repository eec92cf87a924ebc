"""Every function that the guard holds, where the profile allows it: bare Python is the oracle (tests/fidelity).

The registry says which functions there are. One that has no row fails, and so does a row that nothing guards.
"""

from __future__ import annotations

import fnmatch
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from complete_mode import Place

HERE = Path(__file__).resolve().parent
GUARD = HERE.parent / "bindings" / "guard"
sys.path.insert(0, str(HERE / "fidelity"))

from call_rows import CALL_ROWS, NOT_HERE  # noqa: E402
from known import ATTRIBUTES, KNOWN  # noqa: E402
from rows import ROWS  # noqa: E402

#: Rows by another name than the registry's.
SAME = {
    "open": "builtins.open",
    "_sqlite3.connect": "sqlite3.connect",
    "_socket.socket.listen": "socket.listen",
    "_socket.socket.connect": "socket.connect",
    "_socket.socket.connect_ex": "socket.connect",
    "_socket.socket.bind": "socket.bind",
    "_socket.socket.sendto": "socket.sendto",
    "_socket.socket.sendmsg": "socket.sendmsg",
    "_ssl._SSLContext.load_cert_chain": "ssl.SSLContext.load_cert_chain",
    "_ssl._SSLContext.load_verify_locations": "ssl.SSLContext.load_verify_locations",
}

pytestmark = [
    pytest.mark.skipif(not GUARD.exists(), reason="the tables are in the source"),
    pytest.mark.timeout(300),  # 1700 calls, most of them in a process of their own
]


def table(name: str) -> list[tuple[str, ...]]:
    """The rows of a table of registry.inc, their strings."""
    text = (GUARD / "registry.inc").read_text()
    body = re.search(rf"{name}\[\] = \{{\n(.*?)\{{NULL", text, re.S)
    assert body, name
    return [row for line in body[1].splitlines() if (row := tuple(re.findall(r'"([^"]*)"', line)))]


def functions() -> set[str]:
    """All that is guarded, by the names that rows have."""
    names = {row[0] for row in table("PSB_CALLS")} | {row[0] for row in table("PSB_FILE_EVENTS")}
    names |= {f"{module}.{attribute}" for module, attribute, *_ in table("PSB_FILE_SHIMS")}
    names |= set(re.findall(r'"(socket\.\w+)"', (GUARD / "hook.c").read_text()))
    methods = re.findall(r'\{"(\w+)", "(\w+)", "(\w+)", METH_', (GUARD / "methods.c").read_text())
    names |= {f"{m}.{t}.{f}" if t != "DirEntry" else "os.DirEntry" for m, t, f in methods}
    return {SAME.get(n, re.sub(r"^posix\.", "os.", n)) for n in names}


def test_every_function_has_a_row() -> None:
    rows = ROWS.keys() | CALL_ROWS.keys()
    names = functions()
    assert len(names) > 150
    assert names - rows - NOT_HERE.keys() == set()
    assert rows - names == set(), "nothing guards it"
    assert not rows & NOT_HERE.keys()


GRANTS = """\
env=*=${*}
expose-ro=/
expose-rw=/dev
expose-rw=/dev/ptmx
expose-rw=/dev/pts
expose-rw=./work
python-import=*
python-api=ALLOW:*
net=ALLOW|*|*|*|*
net=ALLOW|*|0.0.0.0|*|*
net=ALLOW|*|::|*|*
net=ALLOW|*|@private|*|*
net=ALLOW|*|@loopback|*|*
"""


def both(place: Place, *args: str) -> list[list[list[object]]]:
    """What the program says bare and sandboxed, side by side in two folders."""
    place.profile(GRANTS)
    program = HERE / "fidelity" / "program.py"
    bare = Place(place.folder / "bare")
    for folder in place.folder / "work", bare.folder / "work":
        folder.mkdir(parents=True)
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run, program, *args, timeout=250) for run in (bare.bare, place.run)]
        done = [r.result() for r in runs]
    for d in done:
        assert d.returncode == 0, d.stderr
    return [[json.loads(line) for line in d.stdout.splitlines()] for d in done]


@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
@pytest.mark.parametrize("part", ["rows.py", "call_rows.py"])
def test_calls_as_bare(part: str, provider: str, place: Place) -> None:
    place.provider = provider
    bare, held = both(place, part)
    assert len(bare) == len(held) > 300
    different = []
    for (name, expression, was), (_, _, now) in zip(bare, held, strict=True):
        if was != now and not any(fnmatch.fnmatchcase(f"{provider} {expression}", p) for p in KNOWN):
            different.append(f"{name}: {expression}\n    bare      {was}\n    sandboxed {now}")
    assert not different, "\n".join(different)


@pytest.mark.smoke
@pytest.mark.parametrize("provider", ["landlock", "subprocess"])
def test_functions_look_as_bare(provider: str, place: Place) -> None:
    place.provider = provider
    names = sorted({f"{m}:{a}" for m, a, *_ in table("PSB_CALL_SHIMS") + table("PSB_FILE_SHIMS")})
    bare, held = both(place, "attributes", *names)
    different = []
    for (name, was), (_, now) in zip(bare, held, strict=True):
        assert (was is None) == (now is None), name
        python = was and was["type"] == "<class 'function'>"
        known = ATTRIBUTES if python else set()
        looks = [k for k in was or () if was[k] != now[k] and k not in known and f"{name} {k}" not in known]
        different += [f"{name} {k}\n    bare      {was[k]}\n    sandboxed {now[k]}" for k in looks]
    assert not different, "\n".join(different)
