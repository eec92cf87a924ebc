"""A Dask cluster on loopback whose worker has a pool of sandboxes for its executor."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
Program = Callable[..., subprocess.Popen[str]]


def test_tasks_of_a_worker_with_a_pool(program: Program, run_program: Callable[..., Any], profile: Path) -> None:
    """The control is a worker of the same cluster that has threads of its own."""
    process = program("", str(HERE / "dask_cluster.py"), str(profile))
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("tcp://127.0.0.1:"), process.communicate(timeout=30)
        done = run_program("", str(HERE / "dask_client.py"), address)
        assert done.returncode == 0, done.stderr
        _, err = process.communicate("", timeout=60)
        assert process.returncode == 0, err
        assert "Traceback (most recent call last)" not in err, err
    finally:
        process.kill()
        process.wait()
    played = json.loads(done.stdout)
    for found in played.values():
        assert (found["map"], found["chained"], found["graph"]) == ([*range(1, 41)], 7, 2 + 3 + 3 + 12 + 1)
        assert found["many"] == sum(range(1, 101))
        assert found["raised"][:1] + found["raised"][2:] == ["ValueError", "so", []]
    sandboxed, bare = played["sandboxed"], played["bare"]
    assert (sandboxed["where"][0], bare["where"]) == (True, [False, process.pid])
    for name in ("refused", "refused within"):
        kind, bases, message, told = sandboxed[name]
        assert kind == "RuleFileNotFoundError"
        assert {"FileNotFoundError", "SandBoxError"} <= set(bases)
        assert "expose-ro=/etc/passwd" in message
        assert told[0].endswith("expose-ro=/etc/passwd")
        assert bare[name][0] == "NoneType"
    assert (sandboxed["lambda"][0], bare["lambda"][0]) == ("SandBoxError", "NoneType")
    assert "a lambda" in sandboxed["lambda"][2]
    assert sandboxed["died"][0] == "SandBoxProtocolError"
    assert "exit code 3" in sandboxed["died"][2]
    assert sandboxed["after"][0] is True


def test_nothing_of_a_graph_is_called_outside() -> None:
    """A node of any kind, and what is nested in it, is called by ``invoke`` alone."""
    from dask import _task_spec as spec

    from pysandboxes import _dask

    def never(*_: object) -> None:
        raise AssertionError("called outside")

    invoked: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def invoke(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        invoked.append((function, args, kwargs))
        return "result"

    class Own(spec.Task):
        __slots__ = ()

    nested = spec.Task("n", never, 1)
    data = {"a": "value"}
    assert _dask.evaluate(spec.Task("k", never, spec.TaskRef("a"), 2, more=nested), data, invoke) == "result"
    assert invoked == [(never, (1,), {}), (never, ("value", 2), {"more": "result"})]
    assert _dask.evaluate(spec.List(nested, spec.TaskRef("a"), 3), data, invoke) == ["result", "value", 3]
    assert _dask.evaluate(spec.Tuple(nested, 3), data, invoke) == ("result", 3)
    assert _dask.evaluate(spec.Set(nested, 3), data, invoke) == {"result", 3}
    assert _dask.evaluate(spec.Dict({"k": nested, "a": spec.TaskRef("a")}), data, invoke) == {"k": "result", "a": "value"}
    assert _dask.evaluate(spec.Alias("k", "a"), data, invoke) == "value"
    assert _dask.evaluate(spec.DataNode("k", never), data, invoke) is never
    invoked.clear()
    own = Own("k", never, spec.TaskRef("a"))
    assert _dask.evaluate(own, data, invoke) == "result"
    assert invoked == [(own, ({"a": "value"},), {})]
