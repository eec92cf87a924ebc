"""Measure pysandboxes beside its peers: ``python tests/benchmarks [--json FILE] [--rounds N] [--quick] [GROUP ...]``.

Prints a table as the figures come. The exit code says whether everything could be measured, never whether it was fast.
What the figures mean, and how to read them: docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import traceback
from pathlib import Path

import report
from measure import Result
from place import COMMAND, HERE, Place, machine

#: The groups, in the order they run (calling before asyncio is loaded); each is a module with run(place) that yields results.
GROUPS = ("starting", "calling", "large", "awaiting", "inside", "network", "memory", "evaluating")
ROUNDS = 20


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python tests/benchmarks", description="Measure pysandboxes beside its peers.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"which groups: {', '.join(GROUPS)}; all by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds of each measure (default {ROUNDS})")
    parser.add_argument("--quick", action="store_true", help="tiny turns: whether it works, not how fast")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.groups) - set(GROUPS))
    if unknown:
        parser.error(f"no group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    if options.rounds < 1:
        parser.error("--rounds: at least 1")
    if not COMMAND.exists():
        parser.error(f"{COMMAND} is missing: run this by the Python of an environment that has pysandboxes (make build)")

    facts = {"machine": machine(), "rounds": options.rounds, "quick": options.quick}
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    print(report.header(), flush=True)
    results = {group: measured(group, options.rounds, options.quick) for group in GROUPS if group in (options.groups or GROUPS)}
    if options.json:
        report.write(options.json, report.as_data(results, facts))
    return int(any(result.failed for some in results.values() for result in some))


def measured(group: str, rounds: int, quick: bool) -> list[Result]:
    """One group's results, printed as they come. What breaks a group is printed and marks it, and the next one runs."""
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="pysandboxes-bench-") as folder:
        try:
            for result in importlib.import_module(group).run(Place(Path(folder).resolve(), rounds, quick)):
                results.append(result)
                print(report.row(result), flush=True)
        except Exception as error:
            traceback.print_exc()
            results.append(report.broken(group, error))
            print(report.row(results[-1]), flush=True)
    return results


if __name__ == "__main__":
    sys.path[0] = str(HERE)  # absolute: children start in other folders
    sys.exit(main(sys.argv[1:]))
