"""Writes docs/assessment.md from the corpus; a part of ``make gen``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from attack import KINDS, Attack

PAGE = Path(__file__).resolve().parents[2] / "docs" / "assessment.md"
HEAD = """\
# Assessment: what attacks the sandbox holds

<!-- Made by `make gen` from the cases of tests/attacks; edit those. -->

Each case is a program that reaches its aim without a sandbox, and must not under a profile that grants imports but not the aim.
*Every provider*: the Python layer holds it, so that it holds under `os-sandbox=subprocess` too. *Kernel only*: the OS layer
holds it, so that nothing is claimed without one. *Not held*: a known gap, listed below; its test fails on the day it is mended.
"""


def page(cases: Iterable[Attack]) -> str:
    """The page for these cases."""
    kinds = list(KINDS)
    ordered = sorted(cases, key=lambda a: (a.objective, kinds.index(a.kind)))
    lines = [
        HEAD,
        "| objective | how | cases | every provider | kernel only | not held |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (objective, kind), found in groupby(ordered, lambda a: (a.objective, a.kind)):
        group = list(found)
        gaps = sum(bool(a.gap) for a in group)
        kernel = sum(a.layer == "os" and not a.gap for a in group)
        counts = (len(group), len(group) - gaps - kernel, kernel, gaps)
        lines.append(f"| {objective} | {KINDS[kind]} | " + " | ".join(map(str, counts)) + " |")
    lines += ["", f"{len(ordered)} cases in all.", "", "## Not held", "", "| objective | case | why |", "| --- | --- | --- |"]
    lines += [f"| {a.objective} | {a.name} | {a.gap} |" for a in ordered if a.gap]
    lines += ["", "## Held by the kernel only", "", "| objective | case |", "| --- | --- |"]
    lines += [f"| {a.objective} | {a.name} |" for a in ordered if a.layer == "os" and not a.gap]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from test_attacks import ALL

    PAGE.write_text(page(ALL))
