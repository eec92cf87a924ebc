"""``pysandboxes doctor | check | explain``: what works here, whether a profile is sound, which rule decides."""

# os.path: importing pathlib would cost more than all the rest of this package.
# ruff: noqa: PTH100, PTH109, PTH120

from __future__ import annotations

import json
import os
import sys

from ._exceptions import SandBoxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from typing import Any

PROFILE = ".py-sandboxes"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status: 0 well, 1 something was found or refused, 2 a mistake in the call."""
    options = _parser().parse_args(argv)
    try:
        status: int = options.run(options)
    except SandBoxError as exc:
        print(f"pysandboxes: {exc}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output has enough; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    return status


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser

    from ._guard import __version__

    parser = ArgumentParser(prog="pysandboxes", description="Look at profiles and at what this machine can enforce.")
    parser.add_argument("--version", action="version", version=f"pysandboxes {__version__}")
    parser.add_argument("--json", action="store_true", help="print what the engine says, as JSON")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    doctor = commands.add_parser("doctor", help="which OS providers work here, and why the others do not")
    doctor.set_defaults(run=_doctor)

    check = commands.add_parser("check", help="load a profile; report mistakes and warnings")
    check.add_argument("profile", nargs="?", default=PROFILE, help=f"the profile (default: {PROFILE})")
    check.set_defaults(run=_check)

    explain = commands.add_parser(
        "explain",
        help="which rule decides a question",
        description="Questions: open PATH | write PATH | import NAME | call FUNCTION | connect HOST:PORT | env NAME | "
        "eval. Without a question: what the profile allows.",
    )
    explain.add_argument("profile", help="the profile")
    explain.add_argument("question", nargs="*", help="such as: connect example.com:443")
    explain.set_defaults(run=_explain)
    return parser


def _doctor(options: Namespace) -> int:
    from . import _binary
    from ._native import call

    report = json.loads(call("Doctor"))
    try:
        report.setdefault("binary", _binary.find())
    except FileNotFoundError as exc:
        report.setdefault("binary", f"missing: {exc}")
    if options.json:
        _print_json(report)
    else:
        _print_doctor(report)
    return 0 if any(provider.get("usable") for provider in report.get("providers", ())) else 1


def _print_doctor(report: dict[str, Any]) -> None:
    for name, value in report.items():
        if name != "providers":
            print(f"{name:<12} {value if isinstance(value, str) else json.dumps(value)}")
    for provider in report.get("providers", ()):
        verdict = "usable" if provider.get("usable") else "not usable"
        print(f"{provider.get('name', '?'):<12} {verdict}{_tail(provider.get('why'))}")
        if provider.get("how"):
            print(f"{'':<12} to mend: {provider['how']}")
        for title in ("enforces", "gaps"):
            for line in provider.get(title) or ():
                print(f"{'':<12} {title}: {line}")


def _check(options: Namespace) -> int:
    from ._native import ask

    report = ask("CheckProfile", _profile_request(options.profile))
    if options.json:
        _print_json(report)
        return 0
    warnings = report.get("warnings") or []
    for warning in warnings:
        print(f"{warning.get('file') or options.profile}:{warning.get('line', 0)}: warning: {warning.get('message', '')}")
    rules = report.get("rules")
    print(f"{options.profile}: it loads{'' if rules is None else f', {rules} rules'}, {len(warnings)} warnings")
    return 0


def _explain(options: Namespace) -> int:
    from ._native import ask

    request = _profile_request(options.profile)
    request["question"] = options.question
    answer = ask("Explain", request)
    if options.json:
        _print_json(answer)
    else:
        print(answer.get("text") or json.dumps(answer, indent=2))
    return 0 if answer.get("allow", True) else 1


def _profile_request(profile: str) -> dict[str, Any]:
    return {
        "profile": os.path.abspath(profile),
        "env": dict(os.environ),
        "cwd": os.getcwd(),
        "interpreter": sys.executable,
        "package": os.path.dirname(os.path.abspath(__file__)),
    }


def _tail(text: object) -> str:
    return f": {text}" if text else ""


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
