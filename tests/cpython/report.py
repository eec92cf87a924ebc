"""Writes docs/compatibility.md from what __main__.py kept.

    python tests/cpython/report.py FOLDER

Also the check across Pythons that a single run cannot make: a pattern of differences.toml that matched nothing in any of
them, though its tests ran, is stale, unless its entry says `sometimes`.
"""

from __future__ import annotations

import fnmatch
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from compare import Reviewed, entries  # noqa: E402
from results import Kept, Side  # noqa: E402

PAGE = HERE.parent.parent / "docs" / "compatibility.md"
HEAD = """\
# Compatibility: CPython's own tests

<!-- Made by tests/cpython/report.py from a run of `make compat`. -->

CPython's test suite runs twice: bare, and under `python-sb` with a profile that allows everything but one function
(`os.login_tty`), which is tried before and after the tests of each module and has to be refused. A test counts as a
difference when its outcome is another one, in either direction. Every difference below was looked at; anything else fails
`make compat`.

The modules are those of `tests/cpython/modules.txt`: what touches files, processes, threads, sockets, imports, code and the
interpreter's own workings. Left out are tests that need a terminal, the network or minutes, and those that set the clock or
the host's name. As root, both runs are in namespaces of their own, so that the machine stays as it is.
"""


def cell(side: Side) -> str:
    return f"{side.passed}/{side.failed}/{side.skipped}"


def of(kept: list[Kept], version: str) -> list[Kept]:
    return [k for k in kept if k.version == version]


def totals(kept: list[Kept], versions: list[str]) -> list[str]:
    out = [
        "## In all",
        "",
        "passed / failed / skipped; *judged* are the audit events that the guard decided in the tests' own process.",
        "",
    ]
    out += [
        "| Python | | modules | tests | result | differences | judged | denials tried, refused |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for version in versions:
        mine = of(kept, version)
        full = mine[0].python
        bare = [k.bare for k in mine]
        out.append(f"| {full} | bare | {len(mine)} | {sum(b.ran for b in bare)} | {summed(bare)} | | | |")
        for provider in ("landlock", "subprocess"):
            sides = [k.sides[provider] for k in mine]
            differ, judged, refused = (
                sum(n) for n in zip(*((len(s.different), s.judged, s.refused) for s in sides), strict=True)
            )
            tried = sum(2 for s in sides if not s.trouble)
            numbers = f"{len(sides)} | {sum(s.ran for s in sides)} | {summed(sides)} | {differ} | {judged} | {tried}, {refused}"
            out.append(f"| | `{provider}` | {numbers} |")
    return out


def unreached(folder: Path, kept: list[Kept], versions: list[str]) -> list[str]:
    """Modules that a Python ships and an interrupted run has not come to."""
    out = []
    for version in versions:
        chosen = (folder / f"{version}.chosen").read_text().split()
        if missing := sorted(set(chosen) - {k.module for k in of(kept, version)}):
            out += ["", f"Not reached on {version}: {', '.join(m.removeprefix('test_') for m in missing)}."]
    return out


def summed(sides: list[Side]) -> str:
    return f"{sum(s.passed for s in sides)}/{sum(s.failed for s in sides)}/{sum(s.skipped for s in sides)}"


def named(entry: Reviewed, name: str, provider: str, version: str) -> bool:
    return provider in entry.provider and version in entry.python and any(fnmatch.fnmatchcase(name, t) for t in entry.tests)


def reasons(kept: list[Kept], versions: list[str]) -> list[str]:
    """The reviewed reasons with how many tests each explains, and what none explains."""
    counts: dict[str, dict[tuple[str, str], int]] = defaultdict(lambda: defaultdict(int))
    modules: dict[str, set[str]] = defaultdict(set)
    for k in kept:
        for provider, side in k.sides.items():
            for name in side.different:
                why = next(
                    (" ".join(e.why.split()) for e in entries() if named(e, name, provider, k.version)), "**not explained**"
                )
                counts[why][k.version, provider] += 1
                modules[why].add(k.module)
    out = ["## What differs, and why", "", "Number of tests, `landlock` / `subprocess`.", ""]
    out += ["| reason | modules | " + " | ".join(versions) + " |", "| --- | --- |" + " --- |" * len(versions)]
    for why in sorted(counts, key=lambda w: -sum(counts[w].values())):
        cells = [f"{counts[why][v, 'landlock']} / {counts[why][v, 'subprocess']}" for v in versions]
        out.append(f"| {why} | {', '.join(sorted(modules[why]))} | {' | '.join(cells)} |")
    return out


def table(kept: list[Kept], versions: list[str]) -> list[str]:
    out = ["## By module", "", "Bare passed/failed/skipped, and how many tests differ under `landlock` and `subprocess`.", ""]
    out += ["| module | " + " | ".join(versions) + " |", "| --- |" + " --- |" * len(versions)]
    rows: dict[str, dict[str, str]] = defaultdict(dict)
    for k in kept:
        differ = [len(k.sides[p].different) for p in ("landlock", "subprocess")]
        said = f", {differ[0]} and {differ[1]} differ" if any(differ) else ""
        unended = " (not to its end)" if k.bare.trouble or any(s.trouble for s in k.sides.values()) else ""
        rows[k.module][k.version] = f"{cell(k.bare)}{said}{unended}"
    return out + [
        f"| {m.removeprefix('test_')} | " + " | ".join(rows[m].get(v, "") for v in versions) + " |" for m in sorted(rows)
    ]


def stale(kept: list[Kept]) -> list[str]:
    out = []
    for entry in entries():
        if entry.sometimes:
            continue
        for pattern in entry.tests:
            scope = [(k, k.sides[p]) for k in kept for p in entry.provider if p in k.sides and k.version in entry.python]
            ran = any(fnmatch.filter(side.both, pattern) for _, side in scope)
            if ran and not any(fnmatch.filter(side.different, pattern) for _, side in scope):
                out.append(pattern)
    return out


def main() -> int:
    folder = Path(sys.argv[1])
    kept = sorted((Kept.load(p) for p in folder.glob("*.json")), key=lambda k: (k.version, k.module))
    versions = sorted({k.version for k in kept}, key=lambda v: [int(n) for n in v.split(".")])
    first = totals(kept, versions) + unreached(folder, kept, versions)
    parts = [first, reasons(kept, versions), table(kept, versions)]
    PAGE.write_text(HEAD + "".join("\n" + "\n".join(part) + "\n" for part in parts))
    for pattern in stale(kept):
        print(f"compat: differences.toml lists what is no difference any more: {pattern}", file=sys.stderr)
    return 1 if stale(kept) else 0


if __name__ == "__main__":
    raise SystemExit(main())
