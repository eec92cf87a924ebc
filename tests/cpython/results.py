"""What came of a module, kept as one JSON file a module and Python: written by __main__.py, read by report.py."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from compare import GOOD, VERSION, Different, Outcome


def shown(words: str) -> str:
    """The line that says what was raised: the last one that is neither a frame nor the advice under a refusal."""
    raised = [line for line in words.splitlines() if line and not line.startswith((" ", "To allow it"))]
    return (raised or [""])[-1][:400]


@dataclass
class Side:
    """One run of a module, and how it differs from the bare one."""

    passed: int
    failed: int
    skipped: int
    judged: int
    refused: int
    seconds: float
    trouble: str
    different: Different
    both: set[str]  # the tests that ran here and bare

    @property
    def ran(self) -> int:
        return self.passed + self.failed + self.skipped

    def counts(self) -> str:
        return f"{self.passed}/{self.failed}/{self.skipped}"

    @classmethod
    def of(cls, outcome: Outcome, different: Different, bare: Outcome) -> Side:
        n = Counter(outcome.outcomes.values())
        good = sum(n[g] for g in GOOD)
        words = {name: (was, now, shown(said)) for name, (was, now, said) in different.items()}
        both = outcome.outcomes.keys() & bare.outcomes.keys()
        failed = sum(n.values()) - good - n["skipped"]
        return cls(
            good, failed, n["skipped"], outcome.judged, outcome.refused, outcome.seconds, outcome.trouble, words, set(both)
        )


@dataclass
class Kept:
    module: str
    python: str
    bare: Side
    sides: dict[str, Side]

    @property
    def version(self) -> str:
        return ".".join(self.python.split(".")[:2])

    def write(self, folder: Path) -> None:
        path = folder / f"{VERSION}-{self.module}.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps(asdict(self), default=sorted, indent=1))
        new.rename(path)

    @classmethod
    def read(cls, folder: Path, module: str) -> Kept | None:
        path = folder / f"{VERSION}-{module}.json"
        return cls.load(path) if path.exists() else None

    @classmethod
    def load(cls, path: Path) -> Kept:
        raw = json.loads(path.read_text())
        bare, sides = (raw["bare"]), raw["sides"]
        return cls(raw["module"], raw["python"], _side(bare), {p: _side(s) for p, s in sides.items()})


def _side(raw: dict[str, object]) -> Side:
    different = {name: tuple(facts) for name, facts in raw["different"].items()}  # type: ignore[attr-defined]
    return Side(**{**raw, "different": different, "both": set(raw["both"])})  # type: ignore[arg-type,call-overload]
