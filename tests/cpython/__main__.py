"""CPython's own test suite, bare and under python-sb where everything is allowed: what it says must be the same.

    python tests/cpython [--quick] [--provider landlock ...] [--json FILE] [MODULE ...]

The interpreter that runs this is the one that is compared; it has to ship `test`. Which modules: modules.txt. What may
differ, each with its reason: differences.toml. A difference that is not listed fails, and so does a listed one that is
none any more, a module that judged no event, and a sandbox that did not refuse the one function that its profile denies.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from compare import Module, Outcome, compare, modules, reviewed, unlisted
from running import profile, run


def judge(module: Module, provider: str, folder: Path) -> tuple[Outcome, Outcome, dict[str, tuple[str, str, str]]]:
    """Both runs of a module, side by side, and what differs: id -> (bare, sandboxed, words). What differs is run once
    more, apart from the rest, before it counts: a machine under load makes time limits of the suite's own run out."""
    with ThreadPoolExecutor(2) as both:
        runs = [both.submit(run, module, p, folder) for p in (None, provider)]
        bare, held = (r.result() for r in runs)
    different = compare(bare, held)
    again = [name for name in different if name in bare.outcomes and name in held.outcomes and "_ErrorHolder" not in name]
    again = [name for name in again if not unlisted({name: different[name]}, provider)[1]]
    if again and len(again) <= 40 and not module.patterns_name_ids:
        narrow = module.only(again)
        second = compare(run(narrow, None, folder), run(narrow, provider, folder))
        for name in again:
            if name not in second:
                del different[name]
    return bare, held, different


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/cpython", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the subset that make test runs")
    parser.add_argument("--provider", action="append", help="landlock, subprocess (default: both)")
    parser.add_argument("--json", type=Path, help="write what differs, with its words, to FILE")
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    options = parser.parse_args()
    chosen = modules(options.modules, options.quick)
    if not chosen:
        print("compat: this Python ships no tests", file=sys.stderr)
        return 0 if not options.modules else 2
    failures: list[str] = []
    report: dict[str, dict[str, tuple[str, str, str]]] = {}
    for provider in options.provider or ["landlock", "subprocess"]:
        print(f"Python {sys.version.split()[0]}, {provider}: passed/failed/skipped\n")
        print(f"{'module':36}{'bare':>16}{'sandboxed':>16}{'differences':>13}{'judged':>10}")
        used: set[int] = set()
        ran: set[str] = set()
        totals = [0, 0]
        for module in chosen:
            with tempfile.TemporaryDirectory(prefix="psb-compat-", ignore_cleanup_errors=True) as folder:
                profile(Path(folder))
                bare, held, different = judge(module, provider, Path(folder))
            ran |= bare.outcomes.keys() & held.outcomes.keys()
            totals = [totals[0] + len(bare.outcomes), totals[1] + len(held.outcomes)]
            bad, listed = unlisted(different, provider)
            used |= set(listed.values())
            report[f"{provider} {module.name}"] = different
            print(f"{module.name:36}{bare.counts():>16}{held.counts():>16}{len(different):>13}{held.judged:>10}", flush=True)
            if not held.outcomes:
                bad = {"(all)": ("run", "stopped", held.trouble)}
            for name, (was, now, words) in bad.items():
                failures.append(f"{provider}: {module.name}: {name}: {was} bare, {now} sandboxed")
                print(f"    ! {name}: {was} -> {now}")
                raised = [line for line in words.splitlines() if line and not line.startswith((" ", "To allow it"))]
                print("      | " + (raised or [""])[-1][:200])
            if held.trouble and not bad:
                failures.append(f"{provider}: {module.name}: {held.trouble}")
                print("    ! " + held.trouble)
        print(f"{'':36}{totals[0]:>16}{totals[1]:>16}\n")
        for index, entry in enumerate(reviewed(provider)):
            if index not in used and not entry.sometimes and entry.could_have_shown(ran) and not options.modules:
                failures.append(f"{provider}: differences.toml lists what is no difference any more: {entry.tests}")
    if options.json:
        options.json.write_text(json.dumps(report, indent=1))
    for failure in failures:
        print("compat: " + failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
