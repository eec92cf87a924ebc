"""Fuzzes the live guard: audit events, guarded functions and paths with hostile arguments, under python-sb.

``python tests/fuzz [--time 10s] [--seed N] [--cases N] [--provider subprocess] [GROUP ...]``; ``make fuzz`` runs it for every
Python there is. Groups:

events  every audit event of the registry and of CPython's documentation, raised by sys.audit with anything
calls   every sensitive function that no rule grants, called with anything: refused, or an error, never a value
paths   every function that takes paths: an allowed call does what it does without a sandbox (run bare beside it), and
        nothing that a call gives depends on whether the secret is there (run again without it)

Whatever happens: no crash, no hang, no SystemError, no text of the secret. A failure prints the line that gives it again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from complete_mode import Place  # noqa: E402
from events import DOCUMENTED  # noqa: E402
from worker import SECRET  # noqa: E402

REGISTRY = HERE.parent.parent / "bindings" / "guard" / "registry.inc"
#: Of the sensitive functions, what would hurt this machine if the guard failed.
SPARED = {"kill", "killpg", "pidfd_send_signal", "pthread_kill", "clock_settime", "clock_settime_ns"}
#: What gives a value although no rule grants it, and why that is right.
INNOCENT: dict[str, str] = {}

Outcome = tuple[str, str, str]  # name, kind, text


def table(name: str) -> list[list[str]]:
    """The text columns of one of the guard's tables."""
    rows = re.search(rf"{name}\[\] = \{{(.*?)\n    \{{NULL", REGISTRY.read_text(), re.S)
    assert rows, name
    return [re.findall(r'"([^"]*)"', line) for line in rows[1].splitlines() if line.strip()]


class Run:
    """One process on one group, from its first case to its last."""

    def __init__(self, group: str, folder: Path, options: argparse.Namespace, bare: bool, present: bool = True) -> None:
        self.place = Place(folder / f"{'bare' if bare else 'held'}-{present:d}", options.provider)
        self.place.folder.mkdir()
        root, secret = self.place.folder / "root", self.place.folder / "secret" / "key"
        root.mkdir()
        if present:
            secret.parent.mkdir()
            secret.write_text(SECRET)
            secret.chmod(0o600)
        self.place.file("stdin", "")
        facts = {
            "bare": bare,
            "present": present,
            "events": sorted(
                {*DOCUMENTED, *(row[0] for name in ("PSB_CALL_EVENTS", "PSB_FILE_EVENTS") for row in table(name))}
            ),
            "targets": [row[:2] for row in table("PSB_CALL_SHIMS") if row[1].rpartition(".")[2] not in SPARED],
        }
        self.place.file("facts.json", json.dumps(facts))
        self.place.profile(f"python-import=*\nexpose-rw=./root\nexpose-ro=./facts.json\nexpose-ro={HERE}\nexpose-ro=/proc\n")
        arguments = [
            *options.python,
            HERE / "worker.py",
            group,
            options.seed,
            options.seconds,
            options.cases,
            secret,
            "facts.json",
        ]
        run = self.place.bare if bare else self.place.run
        with (self.place.folder / "stdin").open() as stdin:
            try:
                done = run(*arguments, timeout=options.seconds + 60, stdin=stdin, errors="replace")
                self.status, out, self.err = done.returncode, done.stdout, done.stderr
            except subprocess.TimeoutExpired as late:
                self.status, self.err = -9, "it hangs"
                out = (late.stdout or b"").decode(errors="replace") if isinstance(late.stdout, bytes) else late.stdout or ""
        self.outcomes: dict[int, Outcome] = {}
        self.last: list[Any] | str = []
        for line in out.splitlines():
            try:
                self.last = json.loads(line)
            except ValueError:  # what a function under test printed
                continue
            if isinstance(self.last, list) and len(self.last) == 4:
                case, *rest = self.last
                self.outcomes[case] = (rest[0], rest[1], rest[2].replace(str(self.place.folder), "@"))
        self.leaked = [case for case, outcome in self.outcomes.items() if "s3cret" in outcome[2]]
        self.intact = not present or (bare or secret.read_text() == SECRET)


def unlike(held: Outcome, bare: Outcome) -> bool:
    """Does the call do something else than without a sandbox? Of several mistakes in its arguments, either may be named."""
    name, kind, text = held
    # Some of its answers are constants of the C library, which come for a name too long to be one, too.
    if name == "os.pathconf" and text.startswith("OSError 36 "):
        return False
    if kind == bare[1] == "error":
        (what, *errno), (twin, *its) = text.split()[:2], bare[2].split()[:2]
        if "TypeError" in (what, twin) or "asked" in text:
            return False
        # An argument that makes the call again: which of its levels is the last depends on how deep the stack is.
        if "RecursionError" in (what, twin):
            return False
        # What an argument raises: connect() has the other arguments asked before it looks at the path.
        if name == "sqlite3.connect" and "'first'" in text + bare[2]:
            return False
        # Left in errno by what an argument did when it was asked: ssl says that instead of what OpenSSL found.
        if name.startswith("ssl.") and what == "SSLError" and twin.endswith("Error"):
            return False
        # A path that cannot be one is named with its errno, before the call looks at anything else.
        return (what, errno) != (twin, its) and text.split()[:2] not in (
            ["OSError", "9"],
            ["OSError", "36"],
            ["OSError", "40"],
            ["NotADirectoryError", "20"],
        )
    if name == "os.pathconf" and text.startswith("OSError 40"):  # some limits the C library knows without a look at the path
        return False
    if (name.startswith("os.path.") or name == "os.access") and text == "False":  # refused, to what can only answer so
        return False
    return held != bare


def faults(group: str, folder: Path, options: argparse.Namespace) -> tuple[list[str], str]:
    """What was wrong, and a summary."""
    held = Run(group, folder, options, bare=False)
    wrong = []
    if held.status or held.last != "end":
        wrong.append(f"{held.last}: the process ended with {held.status}\n{held.err[-3000:]}")
    if not held.intact:
        wrong.append("the secret was changed")
    kinds = dict.fromkeys(("value", "error", "refused"), 0)
    for case, (name, kind, text) in held.outcomes.items():
        kinds[kind] = kinds.get(kind, 0) + 1
        if kind == "broken" or case in held.leaked or (group == "calls" and kind == "value" and name not in INNOCENT):
            wrong.append(f"case {case}: {name}: {kind} {text}")
    if group == "paths":
        bare, without = Run(group, folder, options, bare=True), Run(group, folder, options, bare=False, present=False)
        wrong += [
            f"{other.place.folder.name}: {other.last}: ended with {other.status}\n{other.err[-3000:]}"
            for other in (bare, without)
            if other.status or other.last != "end"
        ]
        agreed = 0
        for case, (name, kind, text) in held.outcomes.items():
            twin, blind = bare.outcomes.get(case), without.outcomes.get(case)
            if kind != "refused" and twin and unlike((name, kind, text), twin):
                wrong.append(f"case {case}: {name}: {kind} {text}\n    bare: {' '.join(twin[1:])}")
            if blind and (kind != blind[1] or (kind != "refused" and text != blind[2])):
                wrong.append(f"case {case}: {name}: {kind} {text}\n    without the secret: {' '.join(blind[1:])}")
            agreed += kind != "refused" and (name, kind, text) == twin
        kinds["as bare"] = agreed
        if len(held.outcomes) >= 200 and (agreed < 0.25 * len(held.outcomes) or kinds["refused"] < 0.05 * len(held.outcomes)):
            wrong.append(f"too few of one kind for this to say anything: {kinds}")
    return wrong, f"{group}: {len(held.outcomes)} cases, " + ", ".join(f"{n} {kind}" for kind, n in kinds.items())


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("groups", nargs="*", metavar="GROUP", default=["events", "calls", "paths"])
    parser.add_argument("--time", default="10s", help="of each group, as Go's fuzzers take it: 10s, 1m")
    parser.add_argument("--seed", type=int, default=0, help="0: a new one")
    parser.add_argument("--cases", type=int, default=10**9, help="at most so many of each group")
    parser.add_argument("--provider", default="subprocess", help="os-sandbox; by default the Python layer is alone")
    parser.add_argument(
        "--python", action="append", default=[], metavar="OPTION", help="an option of the interpreter, as in --python=-Xdev"
    )
    options = parser.parse_args()
    number, unit = re.fullmatch(r"(\d+)([smh]?)", options.time).groups()  # type: ignore[union-attr]
    options.seconds = int(number) * {"": 1, "s": 1, "m": 60, "h": 3600}[unit]
    options.seed = options.seed or random.SystemRandom().randrange(1, 10**6)
    options.python = [word for option in options.python for word in option.split()]
    failed = False
    for group in options.groups:
        with tempfile.TemporaryDirectory(prefix="psb-fuzz-") as folder:
            wrong, summary = faults(group, Path(folder), options)
        print(f"fuzz {sys.version.split()[0]} seed {options.seed} {summary}", flush=True)
        for text in wrong[:20]:
            print("  FAILED", text)
        if wrong:
            failed = True
            print(f"  again: {os.path.relpath(sys.executable)} tests/fuzz --seed {options.seed} --time {options.time} {group}")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
