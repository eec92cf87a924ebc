"""``pysandboxes report``: a profile as one HTML page, for the person who has to judge it.

The page holds all that it shows. It has no script, loads nothing, and its Content-Security-Policy forbids both; it works by
keyboard alone, in light and dark, and prints. Rules, comments and names of files may come from a program that was
learned, and so from an attacker: every text passes ``_text``, which escapes what HTML reads and spells out what is drawn
otherwise than it stands (control characters, marks of direction, blanks that look alike).
"""

# ruff: noqa: PTH105, PTH108, PTH123

from __future__ import annotations

import base64
import hashlib
import os
from html import escape

from . import _report
from ._exceptions import SandBoxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    Answer = dict[str, Any]

#: The first bytes of each page: what stands in a file that a page may replace.
MARK = "<!doctype html>\n<!-- pysandboxes report -->\n"

GRADES = ("high", "medium", "low")

STYLE = """
:root { color-scheme: light dark; --ink: #1c1f23; --faint: #59616b; --paper: #fff; --panel: #f4f6f8; --line: #d3d9e0;
  --high: #a4161a; --medium: #8a5300; --low: #3d5a45; --more: #a4161a; --less: #1f6b3a; --focus: #0b57d0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --faint: #a3adb8; --paper: #14171a; --panel: #1d2226;
  --line: #3a424a; --high: #ff8a8a; --medium: #f2b45c; --low: #9cc7a8; --more: #ff8a8a; --less: #86d39f; --focus: #8ab4f8; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 1.5rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
code { font: .9rem/1.45 ui-monospace, monospace; overflow-wrap: anywhere; }
.faint, .where { color: var(--faint); font-size: .875rem; }
.skip { position: absolute; left: -99rem; }
.skip:focus { position: static; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
nav ul, .counts { display: flex; flex-wrap: wrap; gap: .4rem 1.2rem; list-style: none; padding: 0; margin: .6rem 0; }
a { color: inherit; }
fieldset { border: 1px solid var(--line); border-radius: .4rem; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem;
  margin: 1rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .45rem .6rem .45rem 0; text-align: left; vertical-align: top; }
thead th { color: var(--faint); font-size: .8rem; font-weight: 600; }
tbody th { font-weight: 400; }
.risk { font-weight: 600; white-space: nowrap; }
.risk.high, .error { color: var(--high); } .risk.medium, .warning { color: var(--medium); } .risk.low { color: var(--low); }
.wider, .changed { color: var(--more); } .narrower { color: var(--less); }
td:nth-child(2) { min-width: 16rem; }
td ul { margin: 0; padding-left: 1rem; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .6rem 0; background: var(--panel); }
summary { cursor: pointer; padding: .5rem .8rem; font-weight: 600; } details > div { padding: 0 .8rem .6rem; }
.notice { border-left: .3rem solid var(--medium); background: var(--panel); padding: .5rem .8rem; }
body:has(#only-high:checked) :is(tr.medium, tr.low), body:has(#from-medium:checked) tr.low { display: none; }
@media print { .filter, nav, .skip { display: none; } details > div { display: block; } }
"""


def page(answer: Answer, before: str, problem: str, today: str) -> str:
    """The page of what the engine's Report answered; lone surrogates are spelled out, so that it is UTF-8.

    ``before`` is the file that it was compared with, "" for none; ``problem``, why a comparison could not be made.
    """
    hashed = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'; img-src data:; base-uri 'none'; form-action 'none'"
    name = answer["profile"].rpartition("/")[2]
    return (
        f'{MARK}<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="referrer" content="no-referrer">\n'
        f'<link rel="icon" href="data:,">\n<title>{_text(name)}: review</title>\n<style>{STYLE}</style>\n</head>\n<body>\n'
        + "\n".join(_body(answer, before, problem, today))
        + "\n</body>\n</html>\n"
    )


def _body(answer: Answer, before: str, problem: str, today: str) -> Iterator[str]:
    rules = [rule for family in answer["families"] for rule in family["rules"] if not rule["deny"]]
    yield '<a class="skip" href="#rules">To the rules</a>\n<header>'
    yield f"<h1>{_text(answer['profile'])}</h1>"
    provider = answer["provider"] or "none that works here"
    locked = "locked by learn=false" if answer["locked"] else "not locked: a learning run may add to it"
    yield f'<p class="faint">Reviewed {_text(today)}. OS layer here: {_text(provider)}. The file is {locked}.</p>'
    yield '<ul class="counts">'
    for grade in GRADES:
        yield f'<li><span class="risk {grade}">{sum(rule["risk"] == grade for rule in rules)} {grade} risk</span></li>'
    yield "</ul>"
    if answer["problem"]:
        yield f'<p class="notice"><strong class="error">It would not start:</strong> {_text(answer["problem"])}</p>'
    yield '</header>\n<nav aria-label="Sections"><ul>'
    families = [family["name"] for family in answer["families"]]
    for title in (*(["compared"] if before else []), "findings", *families, "layers and limits", "without a rule"):
        yield f'<li><a href="#{_anchor(title)}">{_text(title)}</a></li>'
    yield "</ul></nav>\n<main>"
    if before:
        yield from _comparison(answer["compared"], before, problem)
    yield from _findings(answer["findings"])
    yield from _filter()
    for family in answer["families"]:
        yield from _family(family)
    yield from _settings(answer)
    yield from _runtime(answer)
    yield '</main>\n<footer class="faint"><p>What no rule names is refused. A risk is of the rule, not of the program;'
    yield "SECURITY.md says what each layer holds.</p></footer>"


def _heading(title: str) -> str:
    return f'<h2 id="{_anchor(title)}">{_text(title)}</h2>'


def _comparison(compared: Answer | None, before: str, problem: str) -> Iterator[str]:
    yield f'<section aria-labelledby="compared">\n<h2 id="compared">Compared with {_text(_report.short(before))}</h2>'
    if compared is None:
        yield f'<p class="notice">Not compared: {_text(problem)}</p>'
    elif not compared["changes"]:
        yield "<p>The two profiles say the same.</p>"
    else:
        yield f"<p><strong>{'More is' if compared['opens'] else 'Nothing more is'} allowed than before.</strong></p>"
        yield from _table(("effect", "before", "now", "risk"), map(_change, compared["changes"]))
    yield "</section>"


def _change(change: Answer) -> str:
    opening = change["effect"] in ("wider", "changed")
    return _row(
        _marked(change["effect"]),
        _rule(change["old"], change["from"]),
        _rule(change["new"], change["to"]),
        f"{_risk(change['risk']) if opening else ''} {_text(change['why'])}",
    )


def _findings(findings: list[Answer]) -> Iterator[str]:
    yield f'<section aria-labelledby="findings">\n{_heading("findings")}'
    if findings:
        yield from _table(("grade", "line", "what"), map(_finding, findings))
    else:
        yield "<p>Nothing that is wrong or doubtful was found.</p>"
    yield "</section>"


def _finding(found: Answer) -> str:
    line = _rule(found["rule"], found) or _where(found)
    hint = f'<br><span class="faint">{_text(found["hint"])}</span>' if found["hint"] else ""
    return _row(_marked(found["grade"]), line, _text(found["message"]) + hint)


def _filter() -> Iterator[str]:
    yield '<fieldset class="filter" id="rules"><legend>Show rules</legend>'
    for identity, words in (("all", "all"), ("from-medium", "of medium and high risk"), ("only-high", "of high risk")):
        checked = " checked" if identity == "all" else ""
        yield f'<label><input type="radio" name="show" id="{identity}"{checked}> {words}</label>'
    yield "</fieldset>"


def _family(family: Answer) -> Iterator[str]:
    title = family["name"]
    yield f'<section aria-labelledby="{_anchor(title)}">\n{_heading(title)}'
    if family["rules"]:
        order = sorted(family["rules"], key=lambda rule: (rule["deny"], GRADES.index(rule["risk"])))
        yield from _table(("risk", "rule", "why it matters", "opens here", "the line says"), map(_grant, order))
    else:
        yield f"<p>No rule: {_text(family['default'])}.</p>"
    yield "</section>"


def _grant(rule: Answer) -> str:
    opens = "".join(f"<li>{_text(opened)}</li>" for opened in rule["opens"] or ())
    return _row(
        _risk("takes away" if rule["deny"] else rule["risk"]),
        _rule(rule["rule"], rule),
        _text(rule["why"]),
        f"<ul>{opens}</ul>" if opens else "",
        f'<span class="faint">{_text(rule["comment"])}</span>',
        shown="deny" if rule["deny"] else rule["risk"],
    )


def _settings(answer: Answer) -> Iterator[str]:
    yield f'<section aria-labelledby="layers-and-limits">\n{_heading("layers and limits")}'
    yield from _table(("key", "value", "from"), map(_setting, answer["settings"]))
    yield "</section>"


def _setting(setting: Answer) -> str:
    source = _where(setting["rule"]) if setting["rule"] else '<span class="where">default</span>'
    return _row(f"<code>{_text(setting['key'])}</code>", f"<code>{_text(setting['value'])}</code>", source)


def _runtime(answer: Answer) -> Iterator[str]:
    yield f'<section aria-labelledby="without-a-rule">\n{_heading("without a rule")}'
    yield "<details><summary>Readable: the interpreter's own runtime</summary><div><ul>"
    for name, paths in answer["runtime"].items():
        yield from (f'<li><code>{_text(path)}</code> <span class="faint">{_text(name)}</span></li>' for path in paths or ())
    yield "</ul></div></details>"
    if answer["environ"]:
        yield "<details><summary>Variables that the program would have now</summary><div><p>"
        yield ", ".join(f"<code>{_text(name)}</code>" for name in answer["environ"])
        yield "</p></div></details>"
    yield "</section>"


def _table(titles: tuple[str, ...], rows: Iterable[str]) -> Iterator[str]:
    cells = "".join(f'<th scope="col">{title}</th>' for title in titles)
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{", ".join(titles)}">'
    yield f"<table><thead><tr>{cells}</tr></thead><tbody>"
    yield from rows
    yield "</tbody></table></div>"


def _row(*cells: str, shown: str = "") -> str:
    """A row of cells that are HTML already; ``shown`` is the grade that the filter goes by."""
    return f'<tr class="{_word(shown)}">' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _rule(text: str, where: Answer | None) -> str:
    return f"<code>{_text(text)}</code><br>{_where(where) if where else ''}" if text else ""


def _where(where: Answer) -> str:
    return f'<span class="where">{_text(_report.place(where))}</span>'


def _risk(grade: str) -> str:
    return f'<span class="risk {_word(grade)}">{_text(grade)}</span>'


def _marked(word: str) -> str:
    return f'<span class="{_word(word)}">{_text(word)}</span>'


def _word(grade: str) -> str:
    """A word of the engine as the name of a class: never more than a word."""
    return "".join(c for c in grade if c.isascii() and c.isalpha())


def _anchor(title: str) -> str:
    return title.replace(" ", "-")


def _text(text: str) -> str:
    return escape("".join(map(_plain, text)))


def _plain(character: str) -> str:
    return character if character.isprintable() or character == "\n" else character.encode("unicode_escape").decode()


def write(path: str, page: str) -> None:
    """Put a page in place of a file, all of it or nothing.

    Raises SandBoxError: the place cannot be written, or holds what is no page of ours.
    """
    whole = os.path.realpath(path)
    beside = f"{whole}.{os.getpid()}"
    try:
        if os.path.lexists(whole):
            with open(whole, encoding="utf-8", errors="replace") as there:
                if there.read(len(MARK)) != MARK:
                    raise SandBoxError(f"{path} is there and is no page of ours; it stays as it is. Name another file with -o")
        try:
            with open(beside, "x", encoding="utf-8") as made:
                made.write(page)
            os.replace(beside, whole)
        finally:
            if os.path.lexists(beside):
                os.unlink(beside)
    except OSError as exc:
        raise SandBoxError(f"{path} cannot be written: {exc.strerror or exc}") from None
