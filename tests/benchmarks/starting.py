"""What starting costs: importing the package, and a whole program under python-sb."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Callable, Iterator

from measure import NOTHING, How, Measure, Result, interleave, judge
from place import Place

MS = 1e-3
PASS, PASS_SANDBOXED = "python -c pass", "python-sb -c pass"
# `import pysandboxes` looks its names up on first use; what an application pays is the import of names that it uses.
NAMES = "from pysandboxes import sandbox, sandboxes, sandbox_denials"

MEASURES = {
    "package": Measure(
        "import pysandboxes",
        "import pysandboxes",
        PASS,
        How.LESS,
        10 * MS,
        "an application that merely mentions the package must not start slower",
    ),
    "names": Measure(
        "import of the public names",
        NAMES,
        PASS,
        How.LESS,
        10 * MS,
        "the names are loaded on first use: this is what an application pays that uses them",
    ),
    "in-process": Measure(
        "the same, clocked inside",
        "names, clocked inside",
        NOTHING,
        How.LESS,
        None,
        "without the interpreter's own end, which grows with what is loaded",
    ),
    "pass": Measure(
        "python-sb running pass",
        PASS_SANDBOXED,
        PASS,
        How.RATIO,
        2.0,
        "a drop-in for python is used for short commands too; the default provider's boundary stands",
    ),
    "asyncio": Measure(
        "python-sb -c 'import asyncio'",
        "python-sb -c 'import asyncio'",
        "python -c 'import asyncio'",
        How.RATIO,
        None,
        "a start that is mostly imports: a hundred modules of the standard library",
    ),
    "flask": Measure(
        "Flask, first request",
        "python-sb, landlock",
        "python",
        How.RATIO,
        None,
        "a web application from its start to its first answer, by app.test_client(): a few hundred modules",
    ),
    "flask-subprocess": Measure(
        "Flask, first request, subprocess",
        "python-sb, subprocess",
        "python",
        How.RATIO,
        None,
        "the same where the Python layer decides alone",
    ),
    "learning": Measure(
        "imports, learning",
        "python-sb --learn",
        "python",
        How.RATIO,
        2.0,
        "a learning run is told of each import, each file and each call of the kernel that a rule could name",
    ),
    "bubblewrap": Measure(
        "bubblewrap running pass",
        "bwrap python -c pass",
        PASS,
        How.RATIO,
        None,
        "a boundary without a policy: what others pay for theirs",
    ),
}
#: How often a round runs each side: one start is a short and noisy thing.
TURN = 3

#: A program, in a file as programs are. Werkzeug makes code for its routes, which is granted to it.
FLASK = """\
from flask import Flask

app = Flask("hello", root_path={folder!r})
app.add_url_rule("/", view_func=lambda: "Hello, world!", endpoint="hello")
answer = app.test_client().get("/")
assert (answer.status_code, answer.data) == (200, b"Hello, world!"), answer
"""
GRANT = "--python-api=ALLOW:dynamic-code"

#: A program that does nothing but import: some 1300 modules.
HEAVY = ("pandas", "matplotlib.pyplot", "sqlalchemy.orm", "flask", "httpx", "openpyxl")

CLOCKED = f"import time; t = time.perf_counter(); {NAMES}; print(time.perf_counter() - t)"


def run(place: Place) -> Iterator[Result]:
    turns: dict[str, Callable[[], list[float]]] = {
        PASS: _starts(place, place.bare("-c", "pass")),
        "import pysandboxes": _starts(place, place.bare("-c", "import pysandboxes")),
        NAMES: _starts(place, place.bare("-c", NAMES)),
        "names, clocked inside": lambda: [_clocked(place) for _ in range(place.count(TURN))],
        PASS_SANDBOXED: _starts(place, place.sandboxed("-c", "pass")),
        "python -c 'import asyncio'": _starts(place, place.bare("-c", "import asyncio")),
        "python-sb -c 'import asyncio'": _starts(place, place.sandboxed("-c", "import asyncio")),
    }
    bwrap = shutil.which("bwrap")
    if bwrap:
        walls = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all"]
        turns["bwrap python -c pass"] = _starts(place, [bwrap, *walls, *place.bare("-c", "pass")])
    rounds = interleave(turns, place.rounds)
    for name in ("package", "names", "in-process", "pass", "asyncio"):
        yield judge(MEASURES[name], rounds)
    yield from _flask(place)
    yield from _learning(place)
    if bwrap:
        yield judge(MEASURES["bubblewrap"], rounds)
    else:
        yield Result(MEASURES["bubblewrap"], note="bwrap is not installed")


def _flask(place: Place) -> Iterator[Result]:
    if importlib.util.find_spec("flask") is None:
        yield Result(MEASURES["flask"], note="flask is not installed (make bench does that)")
        return
    program = place.folder / "data" / "hello.py"
    program.write_text(FLASK.format(folder=str(program.parent)))
    turns: dict[str, Callable[[], list[float]]] = {"python": _starts(place, place.bare(str(program)))}
    for provider in ("landlock", "subprocess"):
        turns[f"python-sb, {provider}"] = _starts(place, place.sandboxed(GRANT, str(program), provider=provider))
    rounds = interleave(turns, max(1, place.rounds // 2))
    yield judge(MEASURES["flask"], rounds)
    yield judge(MEASURES["flask-subprocess"], rounds)


def _learning(place: Place) -> Iterator[Result]:
    missing = [name for name in HEAVY if importlib.util.find_spec(name.partition(".")[0]) is None]
    if missing:
        yield Result(MEASURES["learning"], note=f"{', '.join(missing)} not installed")
        return
    program = place.folder / "data" / "imports.py"
    program.write_text(f"import {', '.join(HEAVY)}\n")
    learned = place.folder / "learned"
    learn = place.sandboxed(f"--learn={learned}", str(program))

    def anew() -> float:
        learned.unlink(missing_ok=True)
        return place.time(learn)

    turns: dict[str, Callable[[], list[float]]] = {
        "python": lambda: [place.time(place.bare(str(program)))],
        "python-sb --learn": lambda: [anew()],
    }
    yield judge(MEASURES["learning"], interleave(turns, max(1, place.rounds // 2)))


def _starts(place: Place, command: list[str]) -> Callable[[], list[float]]:
    return lambda: [place.time(command) for _ in range(place.count(TURN))]


def _clocked(place: Place) -> float:
    return float(
        subprocess.run(
            place.bare("-c", CLOCKED), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True,
            cwd=place.folder, env=place.environment,
        ).stdout
    )  # fmt: skip
