"""The table that people read, and the JSON that is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from measure import How, Measure, Result, Summary

FORMAT = 1  # of the JSON


def amount(value: float, unit: str) -> str:
    """A time or a size with three digits and the unit that fits: ``12.3 ms``."""
    scale = [(1e6, "MB"), (1e3, "kB"), (1.0, "B")] if unit == "B" else [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")]
    for size, name in scale:
        if abs(value) >= size:
            return f"{value / size:.3g} {name}" if abs(value / size) < 1000 else f"{value / size:.0f} {name}"
    return f"{value:.0f} {unit}"


def figure(result: Result, value: float) -> str:
    """A result's figure: a ratio as ``1.30x``, a difference as an amount."""
    return amount(value, result.measure.unit) if result.measure.how is How.LESS else f"{value:.2f}x"


def side(summary: Summary | None, unit: str) -> str:
    """``p50 / p99``"""
    if summary is None:
        return "–"
    return f"{amount(summary.p50, unit)} / {amount(summary.p99, unit)}"


def header() -> str:
    titles = columns("", "ours p50 / p99", "peer p50 / p99", "figure", "quartiles", "goal", "verdict")
    return f"{titles}\n{'-' * len(titles)}"


def columns(name: str, ours: str, peer: str, value: str, spread: str, goal: str, verdict: str) -> str:
    return f"{name:40} {ours:>19} {peer:>19} {value:>9} {spread:>19} {goal:>8}  {verdict}"


def row(result: Result) -> str:
    measure = result.measure
    if result.value is None or result.low is None or result.high is None:
        return f"{measure.name:40} {result.verdict}: {result.note}"
    ours = side(result.sides.get(measure.ours), measure.unit)
    peer = side(result.sides.get(measure.peer), measure.unit)
    spread = f"{figure(result, result.low)} – {figure(result, result.high)}"
    goal = f"{figure(result, measure.goal)}" if measure.goal is not None else ""
    later = f" (later {figure(result, measure.later)})" if measure.later is not None else ""
    return columns(measure.name, ours, peer, figure(result, result.value), spread, goal, result.verdict + later)


def broken(group: str, error: Exception) -> Result:
    """What stands in the table where the rest of a group could not be measured."""
    rest = Measure(f"rest of {group}", "", "", How.RATIO, None, "")
    return Result(rest, note=f"{type(error).__name__}: {error}", failed=True)


def as_data(results: Mapping[str, Iterable[Result]], facts: Mapping[str, object]) -> dict[str, Any]:
    """What the JSON file holds; times in seconds, sizes in bytes."""
    return {
        "format": FORMAT,
        **facts,
        "measures": [
            {
                "group": group,
                **asdict(result.measure),
                "how": result.measure.how.value,
                "value": result.value,
                "quartiles": [result.low, result.high],
                "verdict": result.verdict,
                "note": result.note,
                "sides": {name: asdict(summary) for name, summary in result.sides.items()},
            }
            for group, some in results.items()
            for result in some
        ],
    }


def write(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
