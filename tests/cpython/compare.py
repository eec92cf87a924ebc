"""What is run, what became of it, and which differences were reviewed. See __main__.py."""

from __future__ import annotations

import fnmatch
import importlib.util
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
GOOD = ("passed", "expected failure")
Different = dict[str, tuple[str, str, str]]


@dataclass(frozen=True)
class Module:
    name: str
    limit: float
    patterns: tuple[str, ...] = ()
    patterns_name_ids: bool = False

    def only(self, ids: list[str]) -> Module:
        kept = tuple(p for p in self.patterns if p.startswith("+"))
        return replace(self, patterns=kept + tuple(i.replace("[", "[[]") for i in ids), patterns_name_ids=True)


@dataclass
class Outcome:
    """One run of a module. ``trouble`` says how it ended where it did not end by itself."""

    outcomes: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    judged: int = 0
    refused: int = 0  # how often the one denied function was tried, and refused
    seconds: float = 0
    trouble: str = ""

    def counts(self) -> str:
        n = Counter(self.outcomes.values())
        return f"{sum(n[g] for g in GOOD)}/{sum(n.values()) - sum(n[g] for g in (*GOOD, 'skipped'))}/{n['skipped']}"


@dataclass(frozen=True)
class Reviewed:
    why: str
    tests: tuple[str, ...]
    provider: tuple[str, ...] = ("landlock", "subprocess")
    python: tuple[str, ...] = ("3.11", "3.12", "3.13")
    sometimes: bool = False  # depends on the machine: its load, who runs it, what is installed

    def could_have_shown(self, ran: set[str]) -> bool:
        return any(fnmatch.filter(ran, t) for t in self.tests)


def modules(names: list[str], quick: bool) -> list[Module]:
    """Those of modules.txt that this Python ships."""
    out = []
    for line in (HERE / "modules.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if not words or (names and words[0] not in names) or (quick and "quick" not in words):
            continue
        if importlib.util.find_spec("test." + words[0]) is not None:
            out.append(Module(words[0], float(words[1]), tuple(w for w in words[2:] if w != "quick")))
    return out


def compare(bare: Outcome, held: Outcome) -> Different:
    """What differs: id -> (bare, sandboxed, the words of the one that failed)."""
    out: Different = {}
    for name in sorted(bare.outcomes.keys() | held.outcomes.keys()):
        was, now = bare.outcomes.get(name, "missing"), held.outcomes.get(name, "missing")
        if was != now and {was, now} != {"failed", "error"}:
            words = held.words.get(name) or bare.words.get(name) or held.trouble or bare.trouble
            out[name] = was, now, words
    return out


@lru_cache
def entries() -> list[Reviewed]:
    listed = tomllib.loads((HERE / "differences.toml").read_text()).get("difference", [])
    return [Reviewed(**{k: tuple(v) if isinstance(v, list) else v for k, v in e.items()}) for e in listed]


def reviewed(provider: str) -> list[Reviewed]:
    return [e for e in entries() if provider in e.provider and VERSION in e.python]


def unlisted(different: Different, provider: str) -> tuple[Different, dict[str, int]]:
    """Those that no entry names, and for the others the index of theirs."""
    bad: Different = {}
    listed: dict[str, int] = {}
    for name, facts in different.items():
        for index, entry in enumerate(reviewed(provider)):
            if any(fnmatch.fnmatchcase(name, t) for t in entry.tests):
                listed[name] = index
                break
        else:
            bad[name] = facts
    return bad, listed
