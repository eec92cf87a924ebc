"""The texts of the ``pysandboxes`` command: what the engine answers, for a terminal or a pipe.

Each function takes the engine's answer (bindings/control describes the fields) and a painter, and yields lines. Colour is
for a terminal only, and never where ``NO_COLOR`` is set.
"""

# ruff: noqa: PTH109

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, TextIO

    from ._exceptions import SandBoxError

    Answer = dict[str, Any]
    Paint = Callable[[str, str], str]

#: Colours by meaning, as SGR parameters.
COLOURS = {
    "error": "1;31",
    "warning": "1;33",
    "note": "36",
    "high": "31",
    "medium": "33",
    "low": "2",
    "allowed": "32",
    "refused": "31",
    "wider": "31",
    "changed": "33",
    "narrower": "32",
    "same": "2",
    "title": "1",
    "faint": "2",
}


def show(as_json: bool, answer: Any, words: Callable[[Any, Paint], Iterable[str]]) -> None:
    """Print an answer to stdout, as JSON or in words."""
    if as_json:
        print(json.dumps(answer, indent=2))
        return
    paint = painter(sys.stdout)
    for line in words(answer, paint):
        # names may hold bytes that are no text, and signs that this terminal has not
        encoding = sys.stdout.encoding or "utf-8"
        print(line.encode(encoding, "backslashreplace").decode(encoding))


def failure(as_json: bool, error: SandBoxError) -> None:
    """Say why there is no answer: on stderr, or as JSON where that was asked for."""
    if not as_json:
        print(f"pysandboxes: {error}", file=sys.stderr)
        return
    fields = {"kind": type(error).__name__, "message": str(error)}
    fields.update({name: getattr(error, name) for name in ("filename", "lineno") if hasattr(error, name)})
    print(json.dumps({"error": fields}, indent=2))


def painter(stream: TextIO) -> Paint:
    """What colours a text by its meaning: nothing, where the stream is no terminal or ``NO_COLOR`` is set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return lambda text, meaning: text
    return lambda text, meaning: f"\033[{COLOURS[meaning]}m{text}\033[0m"


def check(profile: str, answer: Answer, paint: Paint) -> Iterator[str]:
    counts = {"error": 0, "warning": 0, "note": 0}
    for finding in answer["findings"]:
        grade = finding["grade"]
        counts[grade] += 1
        where = place(finding) or short(profile)
        first, *rest = finding["message"].splitlines()
        subject = f"{finding['rule']}: " if finding["rule"] else ""
        yield f"{where}: {paint(grade, grade)}[{finding['kind']}]: {subject}{first}"
        yield from (f"    {line.strip()}" for line in rest)
        if finding["hint"]:
            yield f"    {finding['hint']}"
    yield from _risks(answer["risks"], paint)
    rules = _count(answer["rules"], "rule")
    found = ", ".join(_count(number, grade) for grade, number in counts.items())
    locked = ", locked" if answer["locked"] else ""
    yield f"{short(profile)}: {rules}{locked}, os-sandbox is {answer['provider'] or 'not available'}; {found}"


def _risks(risks: list[Answer], paint: Paint) -> Iterator[str]:
    """Risk by rule, the highest first; what is ordinary is counted only."""
    shown = [risk for grade in ("high", "medium") for risk in risks if risk["risk"] == grade]
    if shown:
        yield paint("risk by rule", "title")
        width = max(len(risk["rule"]) for risk in shown) if len(shown) < 100 else 0
        for risk in shown:
            grade = paint(f"{risk['risk']:<6}", risk["risk"])
            yield f"  {grade}  {risk['rule']:<{min(width, 40)}}  {risk['why']} ({place(risk)})"
    low = len(risks) - len(shown)
    if low:
        yield paint(f"  low     {_count(low, 'rule')}", "faint")


def keys(answer: list[Answer], paint: Paint) -> Iterator[str]:
    family = ""
    for key in answer:
        if key["family"] != family:
            family = key["family"]
            yield paint(family, "title")
        yield f"  {key['grammar']}"
        yield f"      {key['meaning']}"


def verdict(answer: Answer, paint: Paint) -> Iterator[str]:
    word = "allowed" if answer["allow"] else "refused"
    yield f"{paint(word, word)}: {answer['question']}"
    if answer["rule"]:
        yield f"  rule    {answer['line']}  ({place(answer['rule'])})"
    elif answer["allow"]:
        yield "  rule    none is needed"
    else:
        yield f"  rule    none: {answer['text'].splitlines()[0]}"
    if answer["note"] and answer["note"] not in answer["text"].splitlines()[0]:
        yield f"  note    {answer['note']}"
    yield from map(_layer, answer["layers"])
    lines = answer["change"]
    yield f"  change  {answer['advice']}{':' if lines else ''}"
    yield from (f"      {line}" for line in lines)


def _layer(layer: Answer) -> str:
    return f"  {layer['name']:<6}  {layer['state']}{_after(layer['text'])}"


def policy(answer: Answer, paint: Paint) -> Iterator[str]:
    """The policy in force."""
    locked = ", locked by learn=false" if answer["locked"] else ""
    yield paint(f"{short(answer['profile'])}{locked}", "title")
    if answer["problem"]:
        yield f"{paint('error', 'error')}: it would not start: {answer['problem']}"
    yield paint("layers and limits", "title")
    for setting in answer["settings"]:
        value = setting["value"]
        if setting["key"] == "os-sandbox" and value == "auto":
            value = f"auto, which is {answer['provider'] or 'nothing'} here"
        source = place(setting["rule"]) if setting["rule"] else "default"
        yield f"  {setting['key']}={value}  {paint(f'({source})', 'faint')}"
    for family in answer["families"]:
        yield paint(family["name"], "title")
        for rule in family["rules"]:
            grade = "" if rule["risk"] == "low" else f"  {paint(rule['risk'], rule['risk'])}: {rule['why']}"
            yield f"  {rule['rule']}  {paint(f'({place(rule)})', 'faint')}{grade}"
        if not family["rules"]:
            yield f"  {family['default']}"
    if answer["environ"]:
        yield paint("variables that the program would have now", "title")
        yield f"  {', '.join(answer['environ'])}"
    yield paint("readable without a rule (the interpreter's own runtime)", "title")
    for name, paths in answer["runtime"].items():
        for path in paths:
            yield f"  {name:<11}  {path}"
    yield "All else is refused."


def diff(answer: Answer, paint: Paint) -> Iterator[str]:
    for change in answer["changes"]:
        effect = change["effect"]
        risk = f", {paint(change['risk'], change['risk'])} risk" if effect in ("wider", "changed") else ""
        yield f"{paint(effect, effect)}{risk}{_after(change['why'])}"
        for sign, rule, where in (("-", change["old"], change["from"]), ("+", change["new"], change["to"])):
            if rule:
                yield f"  {sign} {rule}  {paint(f'({place(where)})', 'faint')}"
    if not answer["changes"]:
        yield "The two profiles say the same."
    else:
        yield "More is allowed than before." if answer["opens"] else "Nothing more is allowed than before."


def doctor(answer: Answer, paint: Paint) -> Iterator[str]:
    python = answer["interpreter"]
    yield f"pysandboxes  {answer['version']} ({answer['go']}, {answer['architecture']})"
    yield f"program      {answer['binary']}"
    yield f"python       {' '.join(filter(None, (python['version'], python['executable'])))}"
    if python["problem"]:
        yield from (f"             {line}" for line in python["problem"].splitlines())
    yield f"kernel       {answer['kernel']}"
    yield paint("kernel features", "title")
    for feature in answer["features"]:
        word = paint("yes", "allowed") if feature["there"] else paint("no ", "refused")
        yield f"  {word}  {feature['name']:<22} {feature['value']}; {feature['meaning']}"
    yield f"network rules: {answer['network']}"
    yield f"files: {answer['files']}"
    yield f"names: {answer['names']}"
    yield f"limits: {answer['limits']}"
    why = ", the strongest that works here" if any(p["name"] == answer["auto"] for p in answer["providers"]) else ""
    yield paint(f"providers (os-sandbox=auto takes {answer['auto'].splitlines()[0].rstrip(':')}{why})", "title")
    for provider in answer["providers"]:
        word = paint("usable", "allowed") if provider["usable"] else paint("not usable", "refused")
        yield f"  {provider['name']}: {word}{_after(provider['why'])}"
        if provider["how"]:
            yield f"    to mend: {provider['how']}"
        for title in ("enforces", "gaps"):
            for line in provider[title] or ():
                yield f"    {title}: {line}"


def place(where: Answer) -> str:
    """``file:line``, the file as a person here would name it; the origin's name for rules that stand in no file."""
    if not where["line"]:
        return str(where["file"])
    return f"{short(where['file'])}:{where['line']}"


def short(path: str) -> str:
    """A path as a person here would name it."""
    here = os.getcwd() + "/"
    return path.removeprefix(here) if path.startswith(here) else path


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _after(text: str) -> str:
    return f": {text}" if text else ""
