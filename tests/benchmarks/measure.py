"""What a measure is, how its samples are taken, and what is made of them.

Machines are noisy, so nothing here trusts one figure: the sides of a measure take turns within each round of one run, every
round compares its own sides with each other, and the result is the median of those comparisons with its quartiles. A change
of the machine's speed then meets all sides alike.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

#: What one turn of a side gives: its samples, in seconds (or bytes, for memory).
Turn = Callable[[], Sequence[float]]
#: Side -> rounds -> samples of that round.
Rounds = dict[str, list[Sequence[float]]]


#: The peer of a measure whose figure stands for itself.
NOTHING = "nothing"


class How(Enum):
    """How a round's samples become one figure."""

    RATIO = "median of ours / median of the peer"
    LESS = "median of ours - median of the peer"
    TAIL = "p99 of ours / median of ours"


@dataclass(frozen=True)
class Measure:
    """One row of a group's table: what is compared with what, what is aimed at, and why anybody cares."""

    name: str
    ours: str  #: the side that is ours
    peer: str  #: the side it is compared with
    how: How
    goal: float | None  #: at most this; a ratio, or seconds (bytes) for LESS. None: reported, never judged
    why: str
    later: float | None = None  #: what a later version has to reach
    unit: str = "s"  #: of the samples: "s" or "B"


@dataclass(frozen=True)
class Summary:
    """All samples of one side."""

    count: int
    p50: float
    p99: float


@dataclass
class Result:
    """A measure with its figures; ``value`` is None where it could not be taken, and ``note`` says why."""

    measure: Measure
    value: float | None = None
    low: float | None = None  #: first quartile of the rounds' figures
    high: float | None = None  #: third quartile
    sides: dict[str, Summary] = field(default_factory=dict)
    note: str = ""
    failed: bool = False  #: should have been taken, and an error came instead

    @property
    def verdict(self) -> str:
        """``met``, ``missed``, with ``~`` where the goal lies within the quartiles; ``reported``, ``skipped``, ``failed``."""
        if self.failed:
            return "failed"
        if self.value is None or self.low is None or self.high is None:
            return "skipped"
        if self.measure.goal is None:
            return "reported"
        doubt = "~" if self.low <= self.measure.goal <= self.high and self.low != self.high else ""
        return ("met" if self.value <= self.measure.goal else "missed") + doubt


def quantile(samples: Sequence[float], share: float) -> float:
    """The sample at ``share`` (0..1) of the sorted ones, without interpolation."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summarise(rounds: Sequence[Sequence[float]]) -> Summary:
    samples = [sample for one in rounds for sample in one]
    return Summary(len(samples), statistics.median(samples), quantile(samples, 0.99))


def interleave(turns: Mapping[str, Turn], rounds: int, warm_up: int = 1) -> Rounds:
    """Let the sides take turns: each round every side once, each round starting with the next side.

    The first ``warm_up`` rounds fill caches and are dropped.
    """
    taken: Rounds = {side: [] for side in turns}
    order = list(turns)
    for number in range(warm_up + rounds):
        gc.collect()
        gc.disable()  # a collection of ours in the middle of one side's turn is nobody's time
        try:
            for side in order:
                samples = turns[side]()
                if number >= warm_up:
                    taken[side].append(samples)
        finally:
            gc.enable()
        order.append(order.pop(0))
    return taken


def judge(measure: Measure, rounds: Rounds) -> Result:
    """One measure's figures out of the rounds of a run that had its sides."""
    ours = rounds[measure.ours]
    peers = rounds[measure.peer] if measure.peer != NOTHING else [[0.0]] * len(ours)
    figures = [_figure(measure.how, one, peer) for one, peer in zip(ours, peers, strict=True)]
    quartiles = statistics.quantiles(figures, n=4, method="inclusive") if len(figures) > 1 else figures * 3
    sides = {side: summarise(rounds[side]) for side in (measure.ours, measure.peer) if side != NOTHING}
    return Result(measure, statistics.median(figures), quartiles[0], quartiles[2], sides)


def _figure(how: How, ours: Sequence[float], peer: Sequence[float]) -> float:
    match how:
        case How.RATIO:
            return statistics.median(ours) / statistics.median(peer)
        case How.LESS:
            return statistics.median(ours) - statistics.median(peer)
        case How.TAIL:
            return quantile(ours, 0.99) / statistics.median(ours)
