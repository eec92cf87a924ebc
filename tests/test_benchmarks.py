"""The benchmarks run, and give figures of the shape that docs/benchmarks.md describes. No time is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).with_name("benchmarks")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCHMARKS), *map(str, arguments)], capture_output=True, text=True, timeout=110, check=False
    )


def measured(tmp_path: Path, *groups: str) -> dict[str, dict[str, Any]]:
    """Name -> measure, of one tiny round; every one is printed, too."""
    result = run("--rounds", "1", "--quick", "--json", tmp_path / "bench.json", *groups)
    assert result.returncode == 0, result.stdout + result.stderr
    data = json.loads((tmp_path / "bench.json").read_text())
    assert data["format"] == 1 and data["rounds"] == 1 and data["quick"] is True
    assert {"cpu", "cpus", "kernel", "load", "python"} <= data["machine"].keys()
    for measure in data["measures"]:
        assert measure["group"] in groups
        assert f"\n{measure['name']} " in result.stdout
        shape(measure)
    return {measure["name"]: measure for measure in data["measures"]}


def shape(measure: dict[str, Any]) -> None:
    assert measure["why"] and measure["ours"] and measure["peer"]
    if measure["verdict"] == "skipped":
        assert measure["note"] and measure["value"] is None and not measure["sides"]
        return
    assert measure["verdict"].rstrip("~") in ("met", "missed", "reported"), measure
    assert (measure["goal"] is None) == (measure["verdict"] == "reported")
    low, high = measure["quartiles"]
    assert low <= measure["value"] <= high
    assert set(measure["sides"]) == {measure["ours"], measure["peer"]} - {"nothing"}
    for side in measure["sides"].values():
        assert side["count"] >= 1 and 0 < side["p50"] <= side["p99"]


def test_starting(tmp_path: Path) -> None:
    measures = measured(tmp_path, "starting")
    assert measures["import pysandboxes"]["goal"] == 0.01
    assert measures["python-sb running pass"]["goal"] == 2
    assert "Flask, first request" in measures


def test_calling(tmp_path: Path) -> None:
    measures = measured(tmp_path, "calling")
    assert measures["sandboxes() to the first result"]["goal"] == 1
    assert measures["sync call, small"]["goal"] == 1
    assert "8 threads calling" in measures


def test_large(tmp_path: Path) -> None:
    measures = measured(tmp_path, "large")
    assert measures["result of 1 MB"]["later"] == 0.25
    assert measures["call behind one that blocks"]["how"].startswith("median of ours - ")


def test_awaiting(tmp_path: Path) -> None:
    measures = measured(tmp_path, "awaiting")
    assert "async call, small" in measures and measures["its tail"]["how"] == "p99 of ours / median of ours"
    assert measures["200 async calls at once, each"]["peer"] == "nothing"


def test_inside_and_memory(tmp_path: Path) -> None:
    measures = measured(tmp_path, "inside", "memory")
    assert measures["open+close, landlock"]["goal"] == 1.6
    for operation in ("open+close", "os.open+close", "os.stat", "os.listdir", "cached import", "connect+close"):
        for provider in ("landlock", "subprocess"):
            assert set(measures[f"{operation}, {provider}"]["sides"]) == {"bare", provider}
    memory = measures["memory of a python-sb run"]
    assert memory["unit"] == "B" and memory["value"] > 0


def test_network(tmp_path: Path) -> None:
    measures = measured(tmp_path, "network")
    for what in ("native connect+close", "100 MB by HTTP", "gRPC unary call", "start with net rules"):
        for mode in ("walled", "unwalled"):
            assert f"{what}, {mode}" in measures
    assert measures["native connect+close, walled"]["goal"] == 4


def test_evaluating(tmp_path: Path) -> None:
    measures = measured(tmp_path, "evaluating")
    assert measures["first, a line"]["goal"] == 10 and measures["repeated, 20 lines"]["goal"] == 1
    for case in ("loop", "calls of its functions", "calls of builtins", "calls of methods", "comprehension"):
        assert measures[case]["goal"] == 1.5 and set(measures[case]["sides"]) == {"guarded_eval", "eval"}
    assert all(measure["goal"] is None for name, measure in measures.items() if name.endswith(("eval", "Python", "agents")))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["elsewhere"], "no group elsewhere; there are starting, calling"), (["--rounds", "0"], "--rounds: at least 1")],
)
def test_bad_arguments(arguments: list[str], complaint: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert complaint in result.stderr


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """benchmarks/measure.py: the arithmetic."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    import measure

    return measure


def a_measure(measure: ModuleType, how: str, goal: float | None, peer: str = "peer") -> Any:
    return measure.Measure("name", "ours", peer, measure.How[how], goal, "why")


def test_verdicts(measure: ModuleType) -> None:
    rounds = {"ours": [[2.0, 2.0, 9.0], [4.0], [3.0]], "peer": [[1.0], [2.0], [1.0]]}
    result = measure.judge(a_measure(measure, "RATIO", 2.0), rounds)
    assert result.value == 2.0 and result.verdict == "met~", "two rounds at 2x and one at 3x: the goal lies in the quartiles"
    assert measure.judge(a_measure(measure, "RATIO", 4.0), rounds).verdict == "met"
    assert measure.judge(a_measure(measure, "RATIO", 1.0), rounds).verdict == "missed"
    assert measure.judge(a_measure(measure, "RATIO", None), rounds).verdict == "reported"
    assert measure.judge(a_measure(measure, "LESS", 1.5), rounds).value == 2.0
    assert measure.judge(a_measure(measure, "TAIL", None, measure.NOTHING), rounds).high == pytest.approx(2.75)
    assert measure.Result(a_measure(measure, "RATIO", 2.0), note="no such tool").verdict == "skipped"
    assert measure.Result(a_measure(measure, "RATIO", 2.0), note="it broke", failed=True).verdict == "failed"


def test_sides_take_turns(measure: ModuleType) -> None:
    order: list[str] = []

    def side(name: str) -> Any:
        return lambda: (order.append(name), [float(len(order))])[1]

    rounds = measure.interleave({"a": side("a"), "b": side("b")}, rounds=3)
    assert order == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert rounds == {"a": [[4.0], [5.0], [8.0]], "b": [[3.0], [6.0], [7.0]]}, "the first round is dropped"
