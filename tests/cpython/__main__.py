"""CPython's own test suite, bare and under python-sb where everything is allowed: what it says must be the same.

    python tests/cpython [--quick] [--provider landlock ...] [--results FOLDER] [--jobs N] [MODULE ...]

The interpreter that runs this is the one that is compared; it has to ship `test`. Which modules: modules.txt. What may
differ, each with its reason: differences.toml. A difference that is not listed fails, and so does a listed one that is
none any more, a module that judged no event, and a sandbox that did not refuse the one function that its profile denies.
FOLDER keeps what came of each module, for report.py; a module that is there already is not run again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import apart
from compare import VERSION, Different, Module, Outcome, compare, modules, reviewed, unlisted
from results import Kept, Side
from running import profile, run


def again(module: Module, provider: str, folder: Path, bare: Outcome, held: Outcome) -> Different:
    """What differs. It is run once more, apart from the rest, before it counts: a machine under load makes time limits of the
    suite's own run out."""
    different = compare(bare, held)
    unsure = [name for name in different if name in bare.outcomes and name in held.outcomes and "_ErrorHolder" not in name]
    unsure = [name for name in unsure if not unlisted({name: different[name]}, provider)[1]]
    if unsure and len(unsure) <= 40 and not module.patterns_name_ids:
        narrow = module.only(unsure)
        second = compare(run(narrow, None, folder), run(narrow, provider, folder))
        for name in unsure:
            if name not in second:
                del different[name]
    return different


def judge(module: Module, providers: list[str], kept: Path | None) -> Kept:
    """A module bare and under each provider, side by side."""
    if kept and (found := Kept.read(kept, module.name)):
        return found
    with tempfile.TemporaryDirectory(prefix="psb-compat-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        profile(folder)
        with ThreadPoolExecutor(1 + len(providers)) as together:
            first = together.submit(run, module, None, folder)
            others = [together.submit(run, module, p, folder) for p in providers]
            bare = first.result()
            pairs = [(p, other.result()) for p, other in zip(providers, others, strict=True)]
        sides = {p: Side.of(held, again(module, p, folder, bare, held), bare) for p, held in pairs}
    made = Kept(module.name, sys.version.split()[0], Side.of(bare, {}, bare), sides)
    if kept:
        made.write(kept)
    return made


def complaints(kept: Kept, provider: str, used: set[int]) -> list[tuple[str, str]]:
    """What no entry explains, each with the words of the one that failed."""
    side = kept.sides[provider]
    bad, listed = unlisted(side.different, provider)
    used |= set(listed.values())
    out = [(f"{name}: {was} bare, {now} sandboxed", words) for name, (was, now, words) in bad.items()]
    if not side.ran:
        return [("did not run", side.trouble)]
    if side.trouble and not kept.bare.trouble and not out:
        out.append(("did not end", side.trouble))
    if not side.trouble and side.refused != 2:
        out.append((f"the denied function was refused {side.refused} times of 2", ""))
    return out


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/cpython", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the subset that make test runs")
    parser.add_argument("--provider", action="append", help="landlock, subprocess (default: both)")
    parser.add_argument("--results", type=Path, help="keep what came of each module in a folder of FOLDER")
    parser.add_argument("--jobs", type=int, default=1, help="modules at a time (each runs bare and sandboxed at once)")
    parser.add_argument(
        "--patience", type=float, default=1, help="multiplies the time limits, on a machine that has other work"
    )
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    options = parser.parse_args()
    chosen = modules(options.modules, options.quick)
    if not chosen:
        print("compat: this Python ships no tests", file=sys.stderr)
        return 0 if not options.modules else 2
    chosen = [replace(module, limit=module.limit * options.patience) for module in chosen]
    apart.enter()
    providers = options.provider or ["landlock", "subprocess"]
    if options.results:
        options.results.mkdir(parents=True, exist_ok=True)
        if not options.modules and not options.quick:
            (options.results / f"{VERSION}.chosen").write_text("\n".join(module.name for module in chosen))
    failures: list[str] = []
    used: dict[str, set[int]] = {p: set() for p in providers}
    ran: dict[str, set[str]] = {p: set() for p in providers}
    print(f"Python {sys.version.split()[0]}: passed/failed/skipped, differences (judged)\n")
    print(f"{'module':36}{'bare':>16}" + "".join(f"{p:>32}" for p in providers), flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        for kept in pool.map(lambda module: judge(module, providers, options.results), chosen):
            row = f"{kept.module:36}{kept.bare.counts():>16}"
            said: list[str] = []
            for provider in providers:
                side = kept.sides[provider]
                ran[provider] |= side.both
                row += f"{side.counts():>16}{len(side.different):>5} ({side.judged:>8})"
                for line, words in complaints(kept, provider, used[provider]):
                    failures.append(f"{provider}: {kept.module}: {line}")
                    said += [
                        f"    ! {provider}: {line}",
                        *([f"      | {words.strip().splitlines()[-1][:200]}"] if words.strip() else []),
                    ]
            print("\n".join([row, *said]), flush=True)
    for provider in providers:
        for index, entry in enumerate(reviewed(provider)):
            if (
                index not in used[provider]
                and not entry.sometimes
                and entry.could_have_shown(ran[provider])
                and not options.modules
            ):
                failures.append(f"{provider}: differences.toml lists what is no difference any more: {entry.tests}")
    for failure in failures:
        print("compat: " + failure, file=sys.stderr)
    sys.stderr.flush()
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
