"""``pysandboxes check | explain | diff | report | doctor``: is a profile sound, what does it allow and why, what works here.

The engine answers; ``_report`` words the answers. Exit status, the same for every command: 0 in order, 1 something to look
at (``check``: a finding of grade error, with ``--strict`` of grade warning too; ``explain``: refused; ``diff``: more is allowed
than before; ``doctor``: no provider with a kernel boundary), 2 no answer (a profile that does not load, a mistake in the call).
"""

# os.path: importing pathlib would cost more than all the rest of this package.
# ruff: noqa: PTH100, PTH109, PTH120

from __future__ import annotations

import os
import sys

from ._exceptions import SandBoxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from typing import Any

PROFILE = ".py-sandboxes"

QUESTIONS = """\
questions, as one text or as words:
  open PATH | read PATH | write PATH | list PATH | stat PATH
  connect HOST:PORT | udp HOST:PORT | bind HOST:PORT | listen HOST:PORT | resolve HOST | unix PATH
  import NAME | call FUNCTION | env NAME | eval | exec | code | compile
without a question: the policy in force, and what is readable without a rule

exit status: 0 allowed, 1 refused, 2 no answer"""


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    options = _parser().parse_args(argv)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except SandBoxError as exc:
        from . import _report

        _report.failure(options.json, exc)
        return 2
    except BrokenPipeError:
        # The reader of our output has enough; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    return status


def _parser() -> ArgumentParser:
    from argparse import SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter

    from ._guard import __version__

    parser = ArgumentParser(prog="pysandboxes", description="Look at profiles and at what this machine can enforce.")
    parser.add_argument("--version", action="version", version=f"pysandboxes {__version__}")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, help: str, epilog: str) -> ArgumentParser:
        made = commands.add_parser(
            name,
            help=help,
            description=help[0].upper() + help[1:] + ".",
            epilog=epilog,
            formatter_class=RawDescriptionHelpFormatter,
        )
        made.add_argument("--json", action="store_true", default=SUPPRESS, help="print the answer as JSON")
        made.set_defaults(run=run)
        return made

    command(
        "doctor",
        _doctor,
        "which OS providers work here, and why the others do not",
        "exit status: 0 a provider with a kernel boundary works, 1 none does, 2 no answer",
    )
    check = command(
        "check",
        _check,
        "load a profile as a start would; find mistakes, doubtful rules and risks",
        "exit status: 0 nothing of grade error, 1 an error (with --strict: or a warning), 2 it does not load",
    )
    check.add_argument("profile", nargs="?", default=PROFILE, help=f"the profile (default: {PROFILE})")
    check.add_argument("--strict", action="store_true", help="warnings count as errors do")
    check.add_argument("--keys", action="store_true", help="list the keys that a profile may hold, and stop")

    explain = command("explain", _explain, "which rule decides a question, per layer, and what would change it", QUESTIONS)
    explain.add_argument("profile", nargs="?", default=PROFILE, help=f"the profile (default: {PROFILE})")
    explain.add_argument("question", nargs="*", help='such as: "connect example.com:443"')

    diff = command(
        "diff",
        _diff,
        "compare two profiles by what their rules allow",
        "exit status: 0 nothing more is allowed, 1 more is allowed, 2 one does not load",
    )
    diff.add_argument("before", help="the profile that held")
    diff.add_argument("after", help="the profile that is to hold")

    report = command(
        "report",
        _page,
        "write a page for the person who reviews a profile",
        "exit status: 0 the page is written, 2 it is not",
    )
    report.add_argument("profile", nargs="?", default=PROFILE, help=f"the profile (default: {PROFILE})")
    report.add_argument("-o", "--output", metavar="PAGE", help="the HTML file to write (default: standard output)")
    report.add_argument("--before", metavar="FILE", help="the profile that held before (default: PROFILE.old, where it exists)")
    return parser


def _doctor(options: Namespace) -> int:
    from . import _binary, _report
    from ._native import ask

    answer = ask("Doctor", _place())
    try:
        answer["binary"] = _binary.find()
    except FileNotFoundError as exc:
        answer["binary"] = f"missing: {exc}"
    _report.show(options.json, answer, _report.doctor)
    boundary = [p for p in answer["providers"] if p["usable"] and p["name"] not in ("none", "subprocess")]
    return 0 if boundary else 1


def _check(options: Namespace) -> int:
    from . import _report
    from ._native import ask, call

    if options.keys:
        from json import loads

        _report.show(options.json, loads(call("Keys")), _report.keys)
        return 0
    answer = ask("CheckProfile", _request(options.profile))
    _report.show(options.json, answer, lambda a, paint: _report.check(options.profile, a, paint))
    counted = ("error", "warning") if options.strict else ("error",)
    return 1 if any(finding["grade"] in counted for finding in answer["findings"]) else 0


def _explain(options: Namespace) -> int:
    from . import _report
    from ._native import ask

    profile, question = options.profile, options.question
    if _asks(profile) and not os.path.lexists(profile):  # the profile in place, and the question first
        profile, question = PROFILE, [profile, *question]
    answer = ask("Explain", {**_request(profile), "question": question})
    _report.show(options.json, answer, _report.verdict if question else _report.policy)
    return 0 if answer.get("allow", True) else 1


def _asks(text: str) -> bool:
    """Whether a text begins as one of QUESTIONS does."""
    words = QUESTIONS.partition("\nwithout")[0].partition(":\n")[2].replace("|", "\n").split("\n")
    return text.split(" ")[0] in {line.split()[0] for line in words if line.strip()}


def _diff(options: Namespace) -> int:
    from . import _report
    from ._native import ask

    answer = ask("Diff", {**_request(options.before), "other": os.path.abspath(options.after)})
    _report.show(options.json, answer, _report.diff)
    return 1 if answer["opens"] else 0


def _page(options: Namespace) -> int:
    from . import _page, _report
    from ._native import ask

    before = options.before or f"{options.profile}.old"
    problem = ""
    if options.before or os.path.lexists(before):
        try:
            answer = ask("Report", {**_request(options.profile), "other": os.path.abspath(before)})
        except SandBoxError as exc:
            if options.before:
                raise
            answer, problem = ask("Report", _request(options.profile)), str(exc)
    else:
        answer, before = ask("Report", _request(options.profile)), ""
    if options.json:
        _report.show(True, answer, _report.policy)
        return 0
    from datetime import date

    page = _page.page(answer, before, problem, date.today().isoformat())
    if options.output is None:
        print(page, end="")
    else:
        _page.write(options.output, page)
        print(f"pysandboxes: look at {options.output}", file=sys.stderr)
    return 0


def _place() -> dict[str, Any]:
    """Where the question comes from: what ``${}`` reads, and which Python would run."""
    return {
        "env": dict(os.environ),
        "cwd": os.getcwd(),
        "interpreter": sys.executable,
        "package": os.path.dirname(os.path.abspath(__file__)),
    }


def _request(profile: str) -> dict[str, Any]:
    return {"profile": os.path.abspath(profile), **_place()}


if __name__ == "__main__":
    sys.exit(main())
